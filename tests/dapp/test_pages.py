"""The page's files as they go over the line."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.dapp.server import dapp_for, settings_for
from tests.dapp.yard import Yard

_SCRIPT = "export const words = 'the same again and again';\n" * 100


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("static")
    (folder / "assets").mkdir()
    (folder / "index.html").write_text("<!doctype html><title>Trainyard</title>" * 10)
    (folder / "assets" / "app-1234.js").write_text(_SCRIPT)
    (folder / "icon.png").write_bytes(bytes(4000))
    return folder


@pytest.fixture(scope="module")
def page(
    played: Yard, static: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    settings = settings_for(played, tmp_path_factory.mktemp("dapp"))
    with (
        dapp_for(settings, static=static) as client,
        httpx.Client(base_url=client.base_url.join("/"), trust_env=False) as found,
    ):
        yield found


def get(page: httpx.Client, path: str, accepted: str, **more: str) -> tuple[httpx.Response, bytes]:
    """The answer, and its bytes as they came."""
    headers = {"Accept-Encoding": accepted, **more}
    with page.stream("GET", path, headers=headers) as answer:
        return answer, b"".join(answer.iter_raw())


@pytest.mark.parametrize("accepted", ["gzip", "br;q=1.0, GZIP;q=0.8", "deflate, gzip, br, zstd"])
def test_texts_are_compressed_for_whoever_takes_that(page: httpx.Client, accepted: str) -> None:
    answer, sent = get(page, "/assets/app-1234.js", accepted)

    assert gzip.decompress(sent).decode() == _SCRIPT
    assert len(sent) < len(_SCRIPT) / 10
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-length"] == str(len(sent))
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize("accepted", ["identity", "", "br", "gzip;q=0", "gzip; q=0.000"])
def test_texts_are_as_they_are_for_others(page: httpx.Client, accepted: str) -> None:
    answer, sent = get(page, "/assets/app-1234.js", accepted)

    assert sent.decode() == _SCRIPT
    assert "content-encoding" not in answer.headers
    assert answer.headers["vary"] == "Accept-Encoding"


def test_each_form_has_a_tag_of_its_own(page: httpx.Client, static: Path) -> None:
    packed, plain = (get(page, "/", one)[0].headers["etag"] for one in ("gzip", "identity"))
    assert packed != plain

    again, sent = get(page, "/some/route", "gzip", **{"If-None-Match": packed})
    assert (again.status_code, sent, again.headers["etag"]) == (304, b"", packed)

    (static / "index.html").write_text("another page")
    changed, sent = get(page, "/", "gzip", **{"If-None-Match": packed})
    assert (changed.status_code, gzip.decompress(sent)) == (200, b"another page")
    assert changed.headers["etag"] != packed


def test_pictures_are_not_compressed_twice(page: httpx.Client) -> None:
    answer, sent = get(page, "/icon.png", "gzip")

    assert sent == bytes(4000)
    assert "content-encoding" not in answer.headers
    assert "vary" not in answer.headers


def test_a_look_at_the_headers_alone_sends_no_more(page: httpx.Client) -> None:
    answer = page.head("/assets/app-1234.js", headers={"Accept-Encoding": "gzip"})

    assert (answer.status_code, answer.headers["content-encoding"]) == (200, "gzip")


def test_what_the_api_says_is_not_compressed(page: httpx.Client) -> None:
    answer, _ = get(page, "/api/v1/tasks", "gzip")

    assert answer.status_code == 200
    assert "content-encoding" not in answer.headers
