"""Names and paths, of which none may lead anywhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.content.cid import Cid
from trainyard.content.errors import InvalidCidError, InvalidPathError
from trainyard.content.names import ContentPath, check_name

ROOT = "bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354"


@pytest.mark.parametrize(
    "text",
    [
        f"{ROOT}/a/b",
        f"/ipfs/{ROOT}/a/b",
        f"ipfs://{ROOT}/a/b",
        f"iptf://ipfs/{ROOT}/a/b",
        f"{ROOT}//a/./b/",
    ],
)
def test_a_path_is_read_in_all_its_forms(text: str) -> None:
    path = ContentPath.parse(text)

    assert path == ContentPath(Cid.parse(ROOT), ("a", "b"))
    assert str(path) == f"{ROOT}/a/b"


@pytest.mark.parametrize("name", ["..", "", ".", "a/b", "/", "a\0", "\0", "é" * 128])
def test_a_name_that_could_lead_out_is_refused(name: str) -> None:
    with pytest.raises(InvalidPathError):
        check_name(name)


@pytest.mark.parametrize("name", ["...", "..a", "a b", "ü", "-rf", "~", "\\", "\udcff", "C:"])
def test_odd_names_are_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("rest", ["..", "a/..", "../a", "a/../../b"])
def test_a_path_goes_down_only(rest: str) -> None:
    with pytest.raises(InvalidPathError):
        ContentPath.parse(f"{ROOT}/{rest}")


@pytest.mark.parametrize("text", ["", "/", "ipfs://", "/ipns/name", "http://host/ipfs/x"])
def test_a_path_begins_with_a_cid(text: str) -> None:
    with pytest.raises(InvalidCidError):
        ContentPath.parse(text)


def test_a_url_is_decoded() -> None:
    path = ContentPath.parse_url(f"/ipfs/{ROOT}/a%20b/%C3%BC/100%25")

    assert path.names == ("a b", "ü", "100%")


@pytest.mark.parametrize("rest", ["a%2Fb", "%2e%2e", "%2E%2e/x", "a%00", "x/%2F"])
def test_what_a_url_hides_is_refused(rest: str) -> None:
    with pytest.raises(InvalidPathError):
        ContentPath.parse_url(f"/ipfs/{ROOT}/{rest}")


@given(st.lists(st.text(max_size=30), max_size=4))
def test_whatever_parses_stays_below_its_root(parts: list[str]) -> None:
    try:
        path = ContentPath.parse("/".join([ROOT, *parts]))
    except InvalidPathError:
        return
    assert all(name not in ("", ".", "..") and "/" not in name for name in path.names)
    assert ContentPath.parse(str(path)) == path
