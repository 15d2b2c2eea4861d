"""What names a run: its own CID, or that of the document behind a claim."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath
from trainyard.engine.claims import run_named
from trainyard.engine.errors import OtherRunError
from trainyard.engine.results import Asked
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.results import LARGEST_RESULT_BYTES, Result, ResultError

MANIFEST, ROOT, OTHER = "a" * 64, "b" * 64, "c" * 64


@pytest.fixture
def content(tmp_path: Path) -> Iterator[Content]:
    content = Content(EmbeddedStore(tmp_path / "store"))
    yield content
    content.close()


def add(content: Content, folder: Path, data: bytes) -> ContentPath:
    path = folder / "document"
    path.write_bytes(data)
    return ContentPath(content.add(path).cid)


@pytest.fixture
def run(content: Content, tmp_path: Path) -> ContentPath:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_bytes(b"{}")
    return ContentPath(content.add(tmp_path / "run").cid)


def result_of(run: ContentPath | str) -> bytes:
    return Result(manifest=MANIFEST, root=ROOT, evidence="", run=str(run)).canonical


def test_a_run_is_named_by_itself(content: Content, run: ContentPath) -> None:
    asked = Asked(root=OTHER)

    assert run_named(content, run, asked) == (run, asked)


@pytest.mark.parametrize("asked", [Asked(), Asked(MANIFEST.upper()), Asked(MANIFEST, f"0x{ROOT}")])
def test_a_result_leads_to_its_run_and_says_what_that_has_to_be(
    content: Content, run: ContentPath, tmp_path: Path, asked: Asked
) -> None:
    named = add(content, tmp_path, result_of(run))

    assert run_named(content, named, asked) == (run, Asked(MANIFEST, ROOT))


def test_who_signs_is_asked_still(content: Content, run: ContentPath, tmp_path: Path) -> None:
    named = add(content, tmp_path, result_of(run))

    assert run_named(content, named, Asked(signers=("0xab",)))[1].signers == ("0xab",)


@pytest.mark.parametrize("asked", [Asked(OTHER), Asked(None, OTHER), Asked(MANIFEST, OTHER)])
def test_a_result_of_another_run_than_was_asked_for_is_refused(
    content: Content, run: ContentPath, tmp_path: Path, asked: Asked
) -> None:
    with pytest.raises(OtherRunError, match=f"and {OTHER} was asked for"):
        run_named(content, add(content, tmp_path, result_of(run)), asked)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[" * 1000, b"\xff", b" " * (LARGEST_RESULT_BYTES + 1)]
)
def test_a_file_that_is_no_result_is_refused(content: Content, tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ResultError):
        run_named(content, add(content, tmp_path, data), Asked())


@pytest.mark.parametrize("run", ["", "nonsense", "/"])
def test_a_result_without_a_place_is_refused(content: Content, tmp_path: Path, run: str) -> None:
    with pytest.raises(TrainyardError):
        run_named(content, add(content, tmp_path, result_of(run)), Asked())
