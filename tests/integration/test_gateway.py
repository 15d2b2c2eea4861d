"""Our Trustless Gateway: what it answers and what it refuses."""

import io

import pytest

from tests.integration.gateway_world import ABSENT, CHUNK, DATA, Asker
from trainyard.content.car import read_car
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.dag import Link
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import BlockNotFoundError
from trainyard.content.names import ContentPath
from trainyard.content.nodes import put_node
from trainyard.content.unixfs import Kind, UnixFs

pytest_plugins = ("tests.integration.gateway_server",)


# --- Raw blocks


def test_a_raw_block_is_sent_with_its_headers(ask: Asker, file_cid: Cid, content: Content) -> None:
    answer = ask(f"{file_cid}?format=raw")

    assert answer.status == 200
    assert answer.data == content.store.fetch(file_cid)
    headers = answer.headers
    assert headers["content-type"] == "application/vnd.ipld.raw"
    assert headers["content-disposition"] == f'attachment; filename="{file_cid}.bin"'
    assert headers["etag"] == f'"{file_cid}.raw"'
    assert "immutable" in headers["cache-control"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "content-location" not in headers


def test_the_header_asks_as_the_query_does(ask: Asker, file_cid: Cid) -> None:
    answer = ask(f"{file_cid}", Accept="application/vnd.ipld.raw")

    assert answer.status == 200
    assert answer.headers["content-location"] == f"/ipfs/{file_cid}?format=raw"


def test_head_says_the_same_without_a_body(ask: Asker, file_cid: Cid) -> None:
    whole, head = ask(f"{file_cid}?format=raw"), ask(f"{file_cid}?format=raw", "HEAD")

    assert (head.status, head.data) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.data))
    assert head.headers["etag"] == whole.headers["etag"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_probe_is_answered(ask: Asker, method: str) -> None:
    for query in ("", "?format=raw"):
        answer = ask(f"bafkqaaa{query}", method)
        assert (answer.status, answer.data) == (200, b"")
    assert ask("bafkqaaa?format=car", method).status == 200


def test_the_probe_as_a_car_has_a_root_and_no_block(ask: Asker) -> None:
    assert ask.car("bafkqaaa?format=car") == []


@pytest.mark.parametrize("form", ["raw", "car"])
def test_what_the_other_side_has_is_not_sent_again(ask: Asker, file_cid: Cid, form: str) -> None:
    etag = ask(f"{file_cid}?format={form}").headers["etag"]

    for condition in (etag, f'"other", {etag}', "*"):
        answer = ask(f"{file_cid}?format={form}", If_None_Match=condition)
        assert (answer.status, answer.data) == (304, b"")
        assert answer.headers["etag"] == etag
    assert ask(f"{file_cid}?format={form}", If_None_Match='"other"').status == 200


# --- CARs


def test_a_car_holds_all_blocks_once_and_depth_first(
    ask: Asker, file_cid: Cid, content: Content
) -> None:
    answer = ask(f"{file_cid}?format=car")
    blocks = list(read_car(io.BytesIO(answer.data)))

    kind = "application/vnd.ipld.car; version=1; order=dfs; dups=n"
    assert answer.headers["content-type"] == kind
    assert answer.headers["content-disposition"] == f'attachment; filename="{file_cid}.car"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert all(cid.matches(block) for cid, block in blocks)
    assert len(dict(blocks)) == len(blocks)
    leaves = [block for cid, block in blocks if cid.codec is Codec.RAW]
    assert b"".join(leaves) == DATA
    assert blocks[0][0] == file_cid


def test_duplicates_are_sent_on_request(ask: Asker, content: Content) -> None:
    zeros = content.add(io.BytesIO(bytes(1000)), chunker=CHUNK).cid

    assert len(ask.car(f"{zeros}?format=car&car-dups=n")) == 2
    assert len(ask.car(f"{zeros}?format=car&car-dups=y")) == 11
    asked = ask(f"{zeros}", Accept="application/vnd.ipld.car;dups=y")
    assert asked.headers["content-type"].endswith("dups=y")
    assert "car-dups=y" in asked.headers["content-location"]


@pytest.mark.parametrize("scope", ["block", "entity", "all"])
def test_the_blocks_on_the_way_prove_the_path(
    ask: Asker, tree_cid: Cid, content: Content, scope: str
) -> None:
    """A reader with nothing but the CAR finds the file by its path."""
    blocks = ask.car(f"{tree_cid}/sub%20dir/%C3%BCmlaut?format=car&dag-scope={scope}")
    path = ContentPath(tree_cid, ("sub dir", "ümlaut"))

    assert len(blocks) == 3 + (0 if scope == "block" else 3)
    reader = Content(_Car(blocks))  # type: ignore[arg-type]
    assert reader.stat(path).size == 250
    if scope != "block":
        assert b"".join(map(bytes, reader.cat(path))) == DATA[:250]


def test_a_path_through_shards_is_proven(ask: Asker, tree_cid: Cid) -> None:
    blocks = ask.car(f"{tree_cid}/many/file%2001234?format=car&dag-scope=entity")

    assert 4 <= len(blocks) <= 5
    reader = Content(_Car(blocks))  # type: ignore[arg-type]
    assert b"".join(map(bytes, reader.cat(ContentPath(tree_cid, ("many", "file 01234"))))) == b"4"


def test_a_folder_as_entity_can_be_listed_and_no_more(
    ask: Asker, tree_cid: Cid, content: Content
) -> None:
    blocks = ask.car(f"{tree_cid}/many?format=car&dag-scope=entity")

    assert all(cid.codec is Codec.DAG_PB for cid, _ in blocks)
    assert len(blocks) > 250
    assert len(ask.car(f"{tree_cid}?format=car&dag-scope=entity")) == 1


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("0:*", 0, 40_000),
        ("0:0", 0, 1),
        ("150:250", 150, 251),
        ("-150:*", 39_850, 40_000),
        ("39900:99999", 39_900, 40_000),
        ("100:-39700", 100, 301),
    ],
)
def test_a_range_brings_the_blocks_that_prove_it_and_no_more(
    ask: Asker, file_cid: Cid, asked: str, start: int, end: int
) -> None:
    blocks = ask.car(f"{file_cid}?format=car&entity-bytes={asked}")

    leaves = b"".join(block for cid, block in blocks if cid.codec is Codec.RAW)
    first, last = start // 100 * 100, -(-end // 100) * 100
    assert leaves == DATA[first:last]
    reader = Content(_Car(blocks))  # type: ignore[arg-type]
    read = reader.cat(ContentPath(file_cid), start, end - start)
    assert b"".join(map(bytes, read)) == DATA[start:end]


def test_an_empty_range_brings_the_root(ask: Asker, file_cid: Cid) -> None:
    assert [cid for cid, _ in ask.car(f"{file_cid}?format=car&entity-bytes=9:5")] == [file_cid]


def test_a_range_of_a_folder_is_ignored(ask: Asker, tree_cid: Cid) -> None:
    assert len(ask.car(f"{tree_cid}?format=car&entity-bytes=0:5")) == 1


def test_marks_differ_by_what_is_asked(ask: Asker, tree_cid: Cid, file_cid: Cid) -> None:
    queries = ("", "&dag-scope=block", "&dag-scope=entity", "&entity-bytes=0:5", "&car-dups=y")
    marks = [ask(f"{file_cid}?format=car{query}", "HEAD").headers["etag"] for query in queries]

    assert len(set(marks)) == len(marks)


def test_a_dag_that_is_no_file_can_be_sent(ask: Asker, content: Content) -> None:
    leaf = Cid.of(Codec.RAW, b"leaf")
    with content.store.batch() as batch:
        batch.put(leaf, b"leaf")
        built = put_node(batch.put, [Link(leaf, "x", 4)], UnixFs(Kind.METADATA), 0)

    assert len(ask.car(f"{built.cid}?format=car")) == 2
    assert len(ask.car(f"{built.cid}?format=car&dag-scope=entity")) == 1


# --- Refusals


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("no-cid?format=raw", 400),
        ("?format=raw", 400),
        ("{tree}/..?format=car", 400),
        ("{tree}/%2e%2e?format=car", 400),
        ("{tree}/a%2Fb?format=car", 400),
        ("{tree}/a%00?format=car", 400),
        ("{tree}/sub%20dir?format=raw", 400),
        ("{file}?format=car&dag-scope=half", 400),
        ("{file}?format=car&entity-bytes=x", 400),
        ("{file}?format=car&entity-bytes=40000:*", 400),
        ("{file}", 400),
        ("{file}?format=tar", 406),
        ("{file}?format=car&car-version=2", 406),
        ("{absent}?format=raw", 404),
        ("{absent}?format=car", 404),
        ("{tree}/nothing?format=car", 404),
        ("{file}/below?format=car", 404),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_cannot_be_answered_is_refused(
    ask: Asker, file_cid: Cid, tree_cid: Cid, path: str, status: int, method: str
) -> None:
    answer = ask(path.format(file=file_cid, tree=tree_cid, absent=ABSENT), method)

    assert answer.status == status
    assert answer.headers["cache-control"] == "no-store"


def test_a_browser_is_told_what_to_ask_for(ask: Asker, file_cid: Cid) -> None:
    answer = ask(f"{file_cid}", Accept="text/html,application/xhtml+xml")

    assert answer.status == 406
    assert b"?format=raw or ?format=car" in answer.data


def test_nothing_can_be_written(ask: Asker, file_cid: Cid) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert ask(f"{file_cid}?format=raw", method).status == 405


def test_only_what_is_here_counts_where_so_asked(ask: Asker) -> None:
    answer = ask(f"{ABSENT}?format=raw", "HEAD", Cache_Control="only-if-cached")

    assert answer.status == 412


def test_no_refusal_says_where_the_store_is(ask: Asker, content: Content, file_cid: Cid) -> None:
    store = content.store
    assert isinstance(store, EmbeddedStore)
    assert str(store.root) not in ask(f"{ABSENT}?format=raw").data.decode()


class _Car:
    """The blocks of a CAR as a store of their own."""

    name = "car"

    def __init__(self, blocks: list[tuple[Cid, bytes]]) -> None:
        self._blocks = dict(blocks)

    def has(self, cid: Cid) -> bool:
        return cid in self._blocks

    def fetch(self, cid: Cid) -> bytes:
        if cid not in self._blocks:
            raise BlockNotFoundError(cid, self.name)
        return self._blocks[cid]
