"""What a stranger's manifest may have an auditor fetch: no more than the auditor allows."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.engine.nets import manifest_of, write_data
from tests.unit.sets import digits, source_of
from tests.unit.test_engine_evidence import STATES
from trainyard.cli.app import app
from trainyard.content.bounded import BoundedContent
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import IsADirectoryContentError, LimitExceededError
from trainyard.content.names import ContentPath
from trainyard.datasets import write_shards
from trainyard.datasets.index import INDEX_NAME
from trainyard.engine.evidence import TraceList
from trainyard.engine.sources import fetch_source
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.trace import Trace

REMEDY = "ask for more"


@pytest.fixture
def content(tmp_path: Path) -> Iterator[Content]:
    opened = Content(EmbeddedStore(tmp_path / "store"))
    yield opened
    opened.close()


def test_files_are_fetched_up_to_what_is_allowed(content: Content, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(1000))
    path = ContentPath(content.add(tmp_path / "file").cid)
    bounded = BoundedContent.of(content, 2500, REMEDY)

    for name in "ab":
        bounded.get(path, tmp_path / name)
    with pytest.raises(
        LimitExceededError, match=r"1,000 bytes, .* 2,000 .* 2,500 .*: ask for more"
    ):
        bounded.get(path, tmp_path / "c")

    bounded.fetcher.close()
    assert (tmp_path / "b").stat().st_size == 1000
    assert not (tmp_path / "c").exists()


def test_a_folder_is_not_fetched_by_a_limit(content: Content, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(bytes(1000))
    path = ContentPath(content.add(tmp_path / "folder").cid)
    bounded = BoundedContent.of(content, 10, REMEDY)

    with pytest.raises(IsADirectoryContentError):
        bounded.get(path, tmp_path / "copy")

    bounded.fetcher.close()
    assert not (tmp_path / "copy").exists()


def manifest_at(cid: object) -> Manifest:
    document = json.loads(manifest_of("mlp").canonical)
    document["data"]["train"]["path"] = f"ipfs://{cid}"
    return Manifest.of(document)


def test_of_data_that_is_too_much_nothing_is_fetched(content: Content, tmp_path: Path) -> None:
    """Not even those files of it that would be within the limit."""
    files = write_data(tmp_path / "data")
    sizes = [path.stat().st_size for path in files.train.iterdir()]
    source = manifest_at(content.add(files.train).cid).data.train
    bounded = BoundedContent.of(content, sum(sizes) - 1, REMEDY)

    with pytest.raises(LimitExceededError, match=f"has {sum(sizes):,} bytes"):
        fetch_source(source, bounded, tmp_path / "fetched")

    bounded.fetcher.close()
    assert not list((tmp_path / "fetched").rglob("*.npy"))
    enough = BoundedContent.of(content, sum(sizes), REMEDY)
    assert fetch_source(source, enough, tmp_path / "fetched").is_dir()
    enough.fetcher.close()


def test_of_shards_that_are_too_much_none_is_fetched(content: Content, tmp_path: Path) -> None:
    source = source_of("tfrecord", digits(), write_shards(content, digits(), shards=3, seed=1).cid)
    bounded = BoundedContent.of(content, 6000, REMEDY)

    with pytest.raises(LimitExceededError, match=REMEDY):
        fetch_source(source, bounded, tmp_path / "fetched")

    bounded.fetcher.close()
    fetched = [path.name for path in (tmp_path / "fetched").rglob("*") if path.is_file()]
    assert sorted(name for name in fetched if not name.endswith(".lock")) == [INDEX_NAME]


def test_an_audit_refuses_and_says_how_to_allow_more(content: Content, tmp_path: Path) -> None:
    data = content.add(write_data(tmp_path / "data").train).cid
    run = tmp_path / "run"
    (run / "states").mkdir(parents=True)
    (run / "manifest.json").write_bytes(manifest_at(data).canonical)
    trace = TraceList.of(Trace([state.hash for state in STATES]))
    (run / "trace.json").write_text(trace.model_dump_json())
    cid = content.add(run).cid
    content.close()

    ended = CliRunner().invoke(
        app,
        [
            *("audit", str(cid), "--segment", "0", "--store", str(tmp_path / "store")),
            *("--cache", str(tmp_path / "cache"), "--most-gb", "0.00001"),
        ],
    )

    assert ended.exit_code == 1
    assert "allow more with --most-gb" in ended.output
    assert not list((tmp_path / "cache").rglob("*.npy"))
