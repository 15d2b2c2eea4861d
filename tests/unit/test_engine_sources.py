"""Data by its address: copies of the user's own, and files too large to be it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.engine.nets import manifest_of, write_data
from tests.unit.sets import digits, source_of
from trainyard.cli.app import app
from trainyard.content.chunking import Chunker, FixedChunker, GearChunker
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.engine.errors import CorruptDataError, DataError, DataMismatchError
from trainyard.engine.material import Own, fetch_files
from trainyard.engine.sources import check_own, fetch_source
from trainyard.protocol.manifest import Manifest


@pytest.fixture
def content(tmp_path: Path) -> Iterator[Content]:
    opened = Content(EmbeddedStore(tmp_path / "store"))
    yield opened
    opened.close()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Content]:
    """A store of somebody's who has the data, where the user's has not."""
    opened = Content(EmbeddedStore(tmp_path / "elsewhere"))
    yield opened
    opened.close()


def manifest_at(cid: object, **test: Any) -> Manifest:
    document = json.loads(manifest_of("mlp").canonical)
    document["data"]["train"]["path"] = f"ipfs://{cid}"
    if test:
        document["data"]["test"] = {**document["data"]["train"], **test}
    return Manifest.of(document)


def test_a_state_to_begin_with_is_fetched_into_a_folder_that_is_made_for_it(
    content: Content, tmp_path: Path
) -> None:
    """As an agent has it, which fetches that before anything else."""
    (tmp_path / "first").write_bytes(b"weights")
    state = content.add(tmp_path / "first").cid
    data = content.add(write_data(tmp_path / "data").train).cid
    document = json.loads(manifest_at(data).canonical) | {"initial_state": str(state)}

    files = fetch_files(Manifest.of(document), content, tmp_path / "task" / "data")

    assert files.initial_state is not None
    assert files.initial_state.read_bytes() == b"weights"


class TestOwnCopies:
    @pytest.mark.parametrize(
        "chunker", [None, FixedChunker(1 << 20), GearChunker()], ids=["as Kubo", "large", "gear"]
    )
    def test_are_taken_where_they_are(
        self, content: Content, elsewhere: Content, tmp_path: Path, chunker: Chunker | None
    ) -> None:
        folder = write_data(tmp_path / "data", 4000).train
        manifest = manifest_at(elsewhere.add(folder, chunker=chunker).cid)

        files = fetch_files(manifest, content, tmp_path / "files", own=Own(train=folder))

        assert files.train == folder
        assert not (tmp_path / "files").exists()

    def test_may_be_a_part_of_what_was_added(self, content: Content, tmp_path: Path) -> None:
        folder = write_data(tmp_path / "sets" / "digits").train
        root = content.add(tmp_path / "sets").cid

        check_own(manifest_at(f"{root}/digits").data.train, content, folder)

    def test_are_refused_if_one_byte_is_another(
        self, content: Content, elsewhere: Content, tmp_path: Path
    ) -> None:
        folder = write_data(tmp_path / "data").train
        named = elsewhere.add(folder).cid
        labels = np.load(folder / "label.npy")
        labels[5] += 1
        np.save(folder / "label.npy", labels)
        found = elsewhere.add(folder).cid

        with pytest.raises(DataMismatchError, match=f"is {found}, and the manifest names {named}"):
            fetch_files(manifest_at(named), content, tmp_path / "files", own=Own(train=folder))

    def test_of_what_the_manifest_has_not_are_refused(
        self, elsewhere: Content, tmp_path: Path
    ) -> None:
        folder = write_data(tmp_path / "data").train
        manifest = manifest_at(elsewhere.add(folder).cid)

        with pytest.raises(DataError, match=r"no records for the test: leave .* out"):
            fetch_files(manifest, elsewhere, tmp_path / "files", own=Own(train=folder, test=folder))

    def test_are_checked_before_anything_is_trained(self, content: Content, tmp_path: Path) -> None:
        folder = write_data(tmp_path / "data").train
        (tmp_path / "manifest.json").write_bytes(manifest_of("mlp").canonical)
        command = ["engine", "run", str(tmp_path / "manifest.json"), "--data", str(folder)]
        kept = ["--folder", str(tmp_path / "run"), "--store", str(tmp_path / "store")]

        ended = CliRunner().invoke(app, [*command, *kept])

        assert ended.exit_code == 2
        assert f"{folder} is {content.add(folder).cid}, and the manifest names" in ended.stderr
        assert "leave the option out and it is fetched" in ended.stderr
        assert not (tmp_path / "run" / "journal.jsonl").exists()


class TestArchives:
    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    def test_of_the_stated_size_are_fetched(
        self, content: Content, tmp_path: Path, save: Callable[..., None]
    ) -> None:
        """Also if they cannot be compressed."""
        arrays = digits(5_000)
        save(tmp_path / "a.npz", **arrays)
        source = source_of("npz", arrays, content.add(tmp_path / "a.npz").cid)

        copy = fetch_source(source, content, tmp_path / "scratch")

        assert copy.read_bytes() == (tmp_path / "a.npz").read_bytes()

    def test_larger_than_stated_are_not_fetched(self, content: Content, tmp_path: Path) -> None:
        arrays = digits(5_000)
        np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
        source = source_of("npz", arrays, content.add(tmp_path / "a.npz").cid, records=10)

        with pytest.raises(CorruptDataError, match="are the most that the manifest's features"):
            fetch_source(source, content, tmp_path / "scratch")

        assert [path.suffix for path in (tmp_path / "scratch").iterdir()] == [".lock"]
