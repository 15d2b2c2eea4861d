"""Adding what cannot be read: the error names the file, and blames no disk of ours."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.rights import without_roots_rights
from trainyard.content.adding import add_path, bytes_in
from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import InvalidPathError


def forget(cid: Cid, block: bytes) -> None:
    """A store that keeps nothing."""


@pytest.fixture
def tree() -> Iterator[Path]:
    """A folder that anybody may look into, which none below pytest's own is."""
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made)
        (tree / "open").mkdir()
        (tree / "open" / "file").write_bytes(b"file")
        for folder in (tree, tree / "open"):
            folder.chmod(0o755)
        yield tree
        (tree / "open").chmod(0o755)


@pytest.mark.parametrize("closed", ["open/file", "open"])
def test_what_may_not_be_read_is_named(tree: Path, closed: str) -> None:
    (tree / closed).chmod(0)

    with without_roots_rights(), pytest.raises(InvalidPathError) as caught:
        add_path(tree, forget, None, lambda count: None)

    assert str(caught.value) == f"cannot read {tree / closed}: permission denied"


def test_the_size_of_what_may_not_be_read_is_not_known(tree: Path) -> None:
    assert bytes_in(tree) == 4
    (tree / "open").chmod(0o444)

    with without_roots_rights():
        assert bytes_in(tree) is None


def test_a_file_that_fails_while_it_is_read_is_named(tmp_path: Path) -> None:
    """No process has memory at its address 0: to read it there is an I/O error."""
    content = Content(EmbeddedStore(tmp_path / "store"))

    with pytest.raises(InvalidPathError, match="cannot read /proc/self/mem: input/output error"):
        content.add(Path("/proc/self/mem"))

    assert content.store.usage().blocks == 0


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    content = Content(EmbeddedStore(tmp_path / "store"))

    with pytest.raises(InvalidPathError, match=r"absent: no such file or directory"):
        content.add(tmp_path / "absent")
