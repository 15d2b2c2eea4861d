"""Our CIDs and Kubo's, for the same input."""

import io
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kubo_adds import kubo_add, kubo_cid
from trainyard.content.build import build_directory, build_file
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.dag import decode_node
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.kubo import KuboStore
from trainyard.content.kubo_node import KuboNode
from trainyard.content.limits import KIB, MIB
from trainyard.content.names import ContentPath
from trainyard.content.nodes import Built
from trainyard.content.reading import EntryKind
from trainyard.content.unixfs import Kind, decode_unixfs

pytest_plugins = ("tests.kubo_nodes",)

V1 = ("--cid-version=1", "--raw-leaves")
# 174 links a node, and two levels of them.
FULL_TREE = 174 * 174


def our_cid(content: bytes, chunk: int) -> Cid:
    return build_file(io.BytesIO(content), lambda cid, block: None, FixedChunker(chunk)).cid


def pattern(size: int) -> bytes:
    """Bytes of which no two blocks are alike."""
    return b"".join(number.to_bytes(8, "big") for number in range(size // 8 + 1))[:size]


@pytest.mark.parametrize("chunk", [256 * KIB, MIB])
@pytest.mark.parametrize("chunks", [0, 1, 2, 3])
@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_files_around_the_chunk_sizes_in_use(
    kubo_node: KuboNode, chunk: int, chunks: int, extra: int
) -> None:
    content = pattern(max(0, chunks * chunk + extra))

    assert our_cid(content, chunk) == kubo_cid(kubo_node, content, ("chunker", f"size-{chunk}"))


@pytest.mark.parametrize("chunk", [256 * KIB, MIB])
@pytest.mark.parametrize("chunks", [174, 175])
def test_files_around_a_full_node_at_the_chunk_sizes_in_use(
    kubo_node: KuboNode, chunk: int, chunks: int
) -> None:
    content = bytes(chunk - 1) + bytes(chunks * chunk - chunk) + b"end"[:1]

    assert our_cid(content, chunk) == kubo_cid(kubo_node, content, ("chunker", f"size-{chunk}"))


@pytest.mark.parametrize("chunk", [64, 1024])
@pytest.mark.parametrize("chunks", [1, 173, 174, 175, 348, 349, FULL_TREE, FULL_TREE + 1])
@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_trees_of_many_levels(kubo_node: KuboNode, chunk: int, chunks: int, extra: int) -> None:
    if chunks >= FULL_TREE and chunk > 64:
        chunk = 32  # the shape is what counts, not the bytes
    content = pattern(chunks * chunk + extra)

    assert our_cid(content, chunk) == kubo_cid(kubo_node, content, ("chunker", f"size-{chunk}"))


@settings(
    deadline=None,
    derandomize=True,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(content=st.binary(max_size=8 * KIB), chunk=st.integers(1, 4 * KIB))
def test_any_bytes_cut_at_any_size(kubo_node: KuboNode, content: bytes, chunk: int) -> None:
    assert our_cid(content, chunk) == kubo_cid(kubo_node, content, ("chunker", f"size-{chunk}"))


def test_nested_directories_with_names_of_all_kinds(
    kubo_binary: Path, kubo_node: KuboNode, tmp_path: Path
) -> None:
    names = [
        "z",
        "a",
        "B",
        "a b",
        "ü",
        unicodedata.normalize("NFD", "ü"),
        "日本語",
        "🚂",
        "100%",
        "a.b",
    ]
    for name in names:
        (tmp_path / "top" / name / "deep").mkdir(parents=True)
        (tmp_path / "top" / name / "deep" / f"{name}.txt").write_text(name, encoding="utf-8")
        (tmp_path / "top" / name / "empty file").touch()
    (tmp_path / "top" / "empty directory").mkdir()
    (tmp_path / "top" / "large").write_bytes(pattern(700 * KIB))
    ours = Content(EmbeddedStore(tmp_path / "store")).add(tmp_path / "top").cid

    assert ours == kubo_add(kubo_binary, kubo_node, tmp_path / "top", *V1)


def test_an_empty_directory(kubo_binary: Path, kubo_node: KuboNode, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ours = build_directory([], lambda cid, block: None).cid

    assert ours == kubo_add(kubo_binary, kubo_node, tmp_path / "empty", *V1)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crowd")
    for number in range(7000):
        (folder / f"entry {number}.txt").write_text(str(number % 7))
    return folder


def test_a_directory_so_large_that_it_is_sharded(
    kubo_binary: Path, kubo_node: KuboNode, crowd: Path, tmp_path: Path
) -> None:
    content = Content(EmbeddedStore(tmp_path / "store"))
    ours = content.add(crowd).cid

    assert ours == kubo_add(kubo_binary, kubo_node, crowd, *V1)
    assert decode_unixfs(decode_node(content.store.fetch(ours)).data).kind is Kind.HAMT_SHARD


def test_kubos_sharded_directory_is_read_name_by_name_and_whole(
    kubo_binary: Path, kubo_node: KuboNode, crowd: Path
) -> None:
    root = kubo_add(kubo_binary, kubo_node, crowd, *V1)
    content = Content(KuboStore(kubo_node.api_url))
    path = ContentPath(root)

    assert content.stat(path).kind is EntryKind.DIRECTORY
    assert b"".join(content.cat(path.child("entry 4321.txt"))) == str(4321 % 7).encode()
    names = {entry.name for entry in content.ls(path)}
    assert names == {f"entry {number}.txt" for number in range(7000)}
    content.close()


@pytest.mark.parametrize("over", [0, 1])
def test_the_size_at_which_a_directory_is_sharded(
    kubo_binary: Path, kubo_node: KuboNode, tmp_path: Path, over: int
) -> None:
    """Kubo counts 36 bytes of CID and the name for each entry, and shards past 256 KiB."""
    folder = tmp_path / "edge"
    folder.mkdir()
    names = [f"{number:0164d}" for number in range(1310)]  # 200 bytes an entry
    names.append("x" * (256 * KIB - 1310 * 200 - 36 + over))
    for name in names:
        (folder / name).write_bytes(b"same")
    leaf = build_file(io.BytesIO(b"same"), lambda cid, block: None)
    blocks: dict[Cid, bytes] = {}
    ours = build_directory([(name, leaf) for name in names], blocks.__setitem__)

    assert ours.cid == kubo_add(kubo_binary, kubo_node, folder, *V1)
    assert (len(blocks) > 1) == bool(over)


@pytest.mark.parametrize(
    "options", [(), ("--raw-leaves",), ("--trickle",), ("--cid-version=1", "--raw-leaves=false")]
)
@pytest.mark.parametrize("size", [0, 1, 256 * KIB, 256 * KIB + 1, 1200 * KIB])
def test_what_kubo_adds_in_older_forms_can_be_read(
    kubo_binary: Path, kubo_node: KuboNode, tmp_path: Path, size: int, options: tuple[str, ...]
) -> None:
    data = pattern(size)
    (tmp_path / "file").write_bytes(data)
    root = kubo_add(kubo_binary, kubo_node, tmp_path / "file", *options)
    content = Content(KuboStore(kubo_node.api_url))

    assert b"".join(content.cat(ContentPath(root))) == data
    assert b"".join(content.cat(ContentPath(root), size // 2, 100)) == data[size // 2 :][:100]
    content.close()


def test_a_version_0_directory_can_be_read(
    kubo_binary: Path, kubo_node: KuboNode, tmp_path: Path
) -> None:
    (tmp_path / "old" / "inner").mkdir(parents=True)
    (tmp_path / "old" / "inner" / "file").write_bytes(pattern(600 * KIB))
    root = kubo_add(kubo_binary, kubo_node, tmp_path / "old")
    content = Content(KuboStore(kubo_node.api_url))
    content.get(ContentPath(root), tmp_path / "got")

    assert root.version == 0
    assert (tmp_path / "got" / "inner" / "file").read_bytes() == pattern(600 * KIB)
    content.close()


def test_sizes_that_parents_are_told_are_kubos(kubo_node: KuboNode) -> None:
    """A directory's CID holds the stored size of each entry, so this is part of being equal."""
    store = KuboStore(kubo_node.api_url)
    built: Built = Content(store).add(io.BytesIO(pattern(700 * KIB)))
    stat = store._rpc.ask("files/stat", ("arg", f"/ipfs/{built.cid}"))

    assert (stat["Size"], stat["CumulativeSize"]) == (built.size, built.total_bytes)
