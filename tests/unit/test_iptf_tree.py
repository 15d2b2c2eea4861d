"""Paths, listings and patterns over both kinds of content."""

from pathlib import Path

import pytest

from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import (
    InvalidCidError,
    InvalidPathError,
    NotADirectoryContentError,
    NotFoundError,
)
from trainyard.content.names import ContentPath
from trainyard.iptf.codes import ReadOnlyError
from trainyard.iptf.mfs import Mfs
from trainyard.iptf.tree import MutablePath, Top, Tree, mutable, parse_uri

CID = Cid.of(Codec.RAW, b"x")


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        (f"ipfs://{CID}", ContentPath(CID)),
        (f"ipfs://{CID}/", ContentPath(CID)),
        (f"ipfs://{CID}//a/./b/", ContentPath(CID, ("a", "b"))),
        (f"iptf://ipfs/{CID}/a", ContentPath(CID, ("a",))),
        ("iptf://mfs", MutablePath()),
        ("iptf://mfs/a//b/", MutablePath(("a", "b"))),
        ("iptf://", Top(("ipfs", "mfs"))),
        ("iptf://ipfs", Top(())),
        ("iptf://ipfs/", Top(())),
    ],
)
def test_a_uri_leads_to_one_place(uri: str, place: object) -> None:
    assert parse_uri(uri) == place


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("ipfs://", InvalidCidError),
        ("ipfs://not-a-cid/a", InvalidCidError),
        (f"ipfs://{CID}/../a", InvalidPathError),
        ("iptf://mfs/../../etc/passwd", InvalidPathError),
        ("iptf://mfs/a\0b", InvalidPathError),
        ("iptf://elsewhere/a", InvalidPathError),
        ("iptf:/mfs/a", InvalidPathError),
        ("/etc/passwd", InvalidPathError),
        ("gs://bucket/a", InvalidPathError),
    ],
)
def test_a_uri_that_leads_nowhere_is_refused(uri: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_uri(uri)


@pytest.mark.parametrize("uri", [f"ipfs://{CID}/a", "iptf://ipfs/nonsense", "iptf://"])
def test_only_mfs_can_be_changed(uri: str) -> None:
    with pytest.raises(ReadOnlyError, match="iptf://mfs"):
        mutable(uri)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    mfs = Mfs(tmp_path / "mfs")
    for path in ("a/x1.txt", "a/x2.txt", "b/x1.txt", "b/[odd].txt", "top.txt"):
        (mfs.root / path).parent.mkdir(exist_ok=True)
        (mfs.root / path).write_text(path)
    return Tree(Content(EmbeddedStore(tmp_path / "store")), mfs)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["a", "b", "top.txt"]),
        ("*.txt", ["top.txt"]),
        ("*/x1.txt", ["a/x1.txt", "b/x1.txt"]),
        ("a/*", ["a/x1.txt", "a/x2.txt"]),
        ("?/x[2-9]*", ["a/x2.txt"]),
        ("b/\\[odd\\].txt", ["b/[odd].txt"]),
        ("*/*/*", []),
        ("c/*", []),
        ("top.txt/*", []),
        ("a/x1.txt", ["a/x1.txt"]),
        ("a/x3.txt", []),
    ],
)
def test_patterns_find_the_same_in_both(tree: Tree, pattern: str, found: list[str]) -> None:
    cid = tree.content.add(tree.mfs.root).cid
    for base in ("iptf://mfs", f"ipfs://{cid}", f"iptf://ipfs/{cid}"):
        assert tree.match(f"{base}/{pattern}") == [f"{base}/{name}" for name in found]


def test_a_pattern_for_a_cid_is_refused(tree: Tree) -> None:
    for pattern in ("ipfs://baf*/a", "iptf://ipfs/*"):
        with pytest.raises(InvalidPathError, match="CID"):
            tree.match(pattern)


def test_what_is_under_a_cid_is_looked_up_once(tree: Tree) -> None:
    cid = tree.content.add(tree.mfs.root).cid
    names = [name for name, _ in tree.ls(f"ipfs://{cid}/a")]
    for path in (tree.mfs.root.parent / "store" / "blocks").glob("*/*"):
        path.unlink()

    assert names == ["x1.txt", "x2.txt"]
    assert tree.stat(f"ipfs://{cid}/a/x1.txt").size == len("a/x1.txt")


def test_many_names_of_one_directory_are_found_by_reading_it_once(tree: Tree) -> None:
    for number in range(20):
        (tree.mfs.root / "a" / f"n{number}").write_text("n" * number)
    cid = tree.content.add(tree.mfs.root).cid
    base = f"ipfs://{cid}/a"

    sizes = [tree.stat(f"{base}/n{number}").size for number in range(20)]

    assert sizes == list(range(20))
    folder = tree.stat(base).cid
    assert folder is not None
    name = folder.digest.hex()
    (tree.mfs.root.parent / "store" / "blocks" / name[:2] / name).unlink()
    assert tree.stat(f"{base}/x1.txt").size == len("a/x1.txt"), "found without the directory"
    with pytest.raises(NotFoundError, match="'nothing'"):
        tree.stat(f"{base}/nothing")
    with pytest.raises(NotADirectoryContentError):
        tree.stat(f"{base}/n1/below")
    assert tree.names(base) == sorted(["x1.txt", "x2.txt", *(f"n{n}" for n in range(20))])
    with pytest.raises(NotADirectoryContentError):
        tree.names(f"{base}/n1")
