"""The commands about content: what they print, and how they end."""

import io
import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

from trainyard.cli.app import app
from trainyard.cli.failing import ExitCode, exit_code
from trainyard.cli.output import printable
from trainyard.content.cid import Cid
from trainyard.content.errors import (
    BlockNotFoundError,
    CorruptBlockError,
    InvalidCidError,
    LimitExceededError,
    MalformedBlockError,
    NotFoundError,
    SourceTimeoutError,
    StoreError,
    UnavailableError,
)
from trainyard.datasets.errors import CorruptRecordError, MismatchError
from trainyard.protocol.errors import TrainyardError

HELLO = "bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq"  # b"hello"
ABSENT = str(Cid.parse(HELLO)).replace("bafkreibm", "bafkreibn")


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


class Trainyard:
    """The command with a store of its own."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self._runner = CliRunner(env={"TRAINYARD_STORE": str(store), "TRAINYARD_KUBO": None})

    def __call__(self, *arguments: str | Path, stdin: bytes | None = None) -> Ran:
        ran = self._runner.invoke(app, ["content", *map(str, arguments)], input=stdin)
        if ran.exception is not None and not isinstance(ran.exception, SystemExit):
            raise ran.exception
        return Ran(ran.exit_code, ran.stdout, ran.stderr)

    def add(self, source: Path) -> str:
        ran = self("add", source)
        assert ran.code == 0, ran.err
        return ran.out.strip()

    def damage(self, cid: str) -> Path:
        digest = Cid.parse(cid).digest.hex()
        block = self.store / "blocks" / digest[:2] / digest
        data = bytearray(block.read_bytes())
        data[0] ^= 1
        block.write_bytes(data)
        return block


@pytest.fixture
def trainyard(tmp_path: Path) -> Trainyard:
    return Trainyard(tmp_path / "store")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three files, two of them alike, the larger ones of several blocks."""
    root = tmp_path / "tree"
    (root / "below").mkdir(parents=True)
    large = random.Random(4).randbytes(600_000)
    (root / "one.bin").write_bytes(large)
    (root / "below" / "same.bin").write_bytes(large)
    (root / "hello.txt").write_bytes(b"hello")
    return root


def test_add_prints_the_cid_and_nothing_else(trainyard: Trainyard, tree: Path) -> None:
    ran = trainyard("add", tree / "hello.txt")

    assert ran == (0, HELLO + "\n", "")
    assert trainyard("pin", "--list").out == HELLO + "\n"


def test_stdin_is_added_as_it_comes_and_under_a_name(trainyard: Trainyard) -> None:
    assert trainyard("add", "-", stdin=b"hello").out == HELLO + "\n"

    named = trainyard("add", "-", "--name", "greeting.txt", "--json", stdin=b"hello").document

    assert named["path"] == f"{named['cid']}/greeting.txt"
    assert trainyard("cat", named["path"]).out == "hello"


def test_tree_comes_back_as_it_was(trainyard: Trainyard, tree: Path, tmp_path: Path) -> None:
    cid = trainyard.add(tree)

    got = trainyard("get", cid, "-o", tmp_path / "copy", "--json").document

    assert got == {
        "cid": cid,
        "kind": "directory",
        "bytes": 1_200_005,
        "target": str(tmp_path / "copy"),
    }
    for file in ("one.bin", "below/same.bin", "hello.txt"):
        assert (tmp_path / "copy" / file).read_bytes() == (tree / file).read_bytes()


def test_get_writes_to_the_last_name_of_the_path(
    trainyard: Trainyard, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cid = trainyard.add(tree)
    monkeypatch.chdir(tmp_path)

    assert trainyard("get", f"ipfs://{cid}/hello.txt").code == 0
    assert (tmp_path / "hello.txt").read_bytes() == b"hello"


def test_cat_writes_the_bytes_that_were_asked_for(trainyard: Trainyard, tree: Path) -> None:
    cid = trainyard.add(tree)

    assert trainyard("cat", f"/ipfs/{cid}/hello.txt").out == "hello"
    assert trainyard("cat", f"{cid}/hello.txt", "--offset", "1", "--length", "3").out == "ell"


def test_ls_lists_names_sizes_and_cids(trainyard: Trainyard, tree: Path) -> None:
    cid = trainyard.add(tree)

    listed = trainyard("ls", cid, "--json").document["entries"]
    lines = trainyard("ls", cid).out.splitlines()

    assert [(entry["name"], entry["kind"], entry["bytes"]) for entry in listed] == [
        ("below", "directory", 0),
        ("hello.txt", "file", 5),
        ("one.bin", "file", 600_000),
    ]
    assert lines[0].endswith("       0  below/")
    assert lines[1] == f"{HELLO}       5  hello.txt"


def test_names_of_strangers_cannot_drive_the_terminal(trainyard: Trainyard, tree: Path) -> None:
    (tree / "\x1b[2Jx\n").write_bytes(b"")
    cid = trainyard.add(tree)

    listed = trainyard("ls", cid).out

    assert "\x1b" not in listed
    assert len(listed.splitlines()) == 4
    assert "\\x1b[2Jx\\n" in listed
    assert printable("Zürich \udcff") == "Zürich \\udcff"


def test_stat_counts_a_block_once_however_often_it_is_used(
    trainyard: Trainyard, tree: Path
) -> None:
    cid = trainyard.add(tree)

    of_tree = trainyard("stat", cid, "--json").document
    whole = trainyard("stat", "--json").document

    assert (of_tree["files"], of_tree["logical_bytes"]) == (3, 1_200_005)
    assert 600_005 < of_tree["physical_bytes"] < 601_000
    assert of_tree["ratio"] == pytest.approx(2.0, abs=0.01)
    assert (whole["pins"], whole["logical_bytes"]) == (1, 1_200_005)
    assert whole["physical_bytes"] == of_tree["physical_bytes"]
    assert "logical bytes   1200005  (1.2 MB)" in trainyard("stat", cid).out


def test_new_version_costs_only_what_changed(trainyard: Trainyard, tree: Path) -> None:
    trainyard.add(tree)
    before = trainyard("stat", "--json").document
    (tree / "hello.txt").write_bytes(b"hello again")
    trainyard.add(tree)

    after = trainyard("stat", "--json").document

    assert after["logical_bytes"] == 2 * before["logical_bytes"] + 6
    assert after["physical_bytes"] - before["physical_bytes"] < 1_000


def test_gear_chunker_keeps_blocks_of_data_that_shifts(
    trainyard: Trainyard, tmp_path: Path
) -> None:
    data = random.Random(8).randbytes(400_000)
    file = tmp_path / "log"
    file.write_bytes(data)
    assert trainyard("add", file, "--chunker", "gear-16384").code == 0
    before = trainyard("stat", "--json").document["physical_bytes"]
    file.write_bytes(b"one line in front\n" + data)
    assert trainyard("add", file, "--chunker", "gear-16384").code == 0

    assert trainyard("stat", "--json").document["physical_bytes"] - before < 100_000


def test_unpinned_content_is_collected_and_pinned_is_not(trainyard: Trainyard, tree: Path) -> None:
    cid = trainyard.add(tree)
    hello = trainyard.add(tree / "hello.txt")
    assert trainyard("unpin", cid, "--json").document == {"unpinned": cid}

    freed = trainyard("gc", "--json").document

    assert freed["removed_bytes"] > 600_000
    assert trainyard("cat", hello).out == "hello"
    assert trainyard("ls", cid).code == ExitCode.UNAVAILABLE


def test_not_pinned_content_lives_until_the_next_collection(trainyard: Trainyard) -> None:
    assert trainyard("add", "-", "--no-pin", stdin=b"hello").code == 0
    assert trainyard("pin", "--list", "--json").document == {"pins": []}
    assert trainyard("pin", HELLO, "--json").document == {"pinned": [HELLO]}
    assert trainyard("gc", "--json").document == {"removed_blocks": 0, "removed_bytes": 0}


def test_verify_says_what_is_whole(trainyard: Trainyard, tree: Path) -> None:
    cid = trainyard.add(tree)

    assert trainyard("verify").out.startswith("whole: ")
    document = trainyard("verify", cid, "--json").document
    assert (document["whole"], document["trees"], document["faults"]) == (True, 1, [])


def test_verify_names_the_damaged_block_and_the_cure(trainyard: Trainyard, tree: Path) -> None:
    trainyard.add(tree)
    trainyard.damage(HELLO)

    ran = trainyard("verify")
    document = trainyard("verify", "--json")

    assert ran.code == document.code == ExitCode.CORRUPT
    assert f"{HELLO} is damaged in store" in ran.out
    assert "no source has it; give --gateway ADDRESS" in ran.out
    assert document.document["faults"] == [
        {"cid": HELLO, "ailment": "damaged", "source": None, "healed": False}
    ]


def test_original_added_again_replaces_what_was_discarded(trainyard: Trainyard, tree: Path) -> None:
    cid = trainyard.add(tree)
    trainyard.damage(HELLO)

    assert trainyard("verify", "--discard", "--json").document["discarded"] == 1
    assert trainyard("verify").code == ExitCode.UNAVAILABLE
    assert trainyard.add(tree) == cid
    assert trainyard("verify").code == 0


def test_corrupt_content_is_never_written(trainyard: Trainyard, tree: Path) -> None:
    trainyard.add(tree)
    trainyard.damage(HELLO)

    ran = trainyard("cat", HELLO)

    assert (ran.code, ran.out) == (ExitCode.CORRUPT, "")
    assert f"sent a corrupt block for {HELLO}" in ran.err


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "code", "said"),
        [
            (["cat", "nonsense"], ExitCode.WRONG_USE, "'nonsense' is no CID"),
            (["ls", HELLO + "/../x"], ExitCode.WRONG_USE, "cannot be a name"),
            (["cat", ABSENT], ExitCode.UNAVAILABLE, "name somebody who has it with --gateway"),
            (["unpin", HELLO], ExitCode.UNAVAILABLE, "is not pinned"),
            (["add", "/no/such/file"], ExitCode.WRONG_USE, "/no/such/file does not exist"),
            (["add", "a", "b"], ExitCode.WRONG_USE, "one file or directory at a time"),
            (["add", "-", "--chunker", "rabin"], ExitCode.WRONG_USE, "no chunker 'rabin'"),
            (["add", "-", "--chunker", "size-9999999"], ExitCode.WRONG_USE, "a chunk has 1 to"),
            (["add", "x", "--name", "y"], ExitCode.WRONG_USE, "--name is for stdin"),
            (["pin"], ExitCode.WRONG_USE, "give what to pin, or --list"),
            (["pin", HELLO, "--list"], ExitCode.WRONG_USE, "give what to pin, or --list"),
            (["gc", "--store", ".", "--kubo", "x"], ExitCode.WRONG_USE, "not in both"),
            (["cat", HELLO, "--json"], ExitCode.WRONG_USE, "bytes are no JSON"),
            (["add", "--arrays", "x.npy"], ExitCode.WRONG_USE, "NAME=FILE.npy"),
            (["shard", "x=/no.npy", "--shards", "1", "--seed", "0"], 2, "/no.npy is no file"),
        ],
        ids=str,
    )
    def test_are_one_line_with_an_exit_code(
        self, trainyard: Trainyard, arguments: list[str], code: int, said: str
    ) -> None:
        ran = trainyard(*arguments)

        assert ran.code == code
        assert ran.err.startswith("trainyard: ")
        assert said in ran.err
        assert ran.err.count("\n") == 1

    def test_are_a_document_too_where_that_is_wanted(self, trainyard: Trainyard) -> None:
        ran = trainyard("ls", "nonsense", "--json")

        assert ran.code == 2
        assert ran.document["exit_code"] == 2
        assert "'nonsense' is no CID" in ran.document["error"]

    def test_of_the_disk_name_the_file(self, trainyard: Trainyard, tree: Path) -> None:
        trainyard.add(tree / "hello.txt")

        ran = trainyard("get", HELLO, "-o", tree / "no" / "such" / "folder")

        assert ran.code == ExitCode.FAILED
        assert "no/such/folder" in ran.err
        assert ran.err.count("\n") == 1

    def test_of_settings_name_the_variable(
        self, trainyard: Trainyard, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TRAINYARD_TIMEOUT_S", "-1")

        ran = trainyard("gc")

        assert ran.code == ExitCode.WRONG_USE
        assert "TRAINYARD_TIMEOUT_S: Input should be greater than 0" in ran.err

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (UnavailableError(Cid.parse(HELLO), [BlockNotFoundError(Cid.parse(HELLO), "a")]), 3),
            (UnavailableError(Cid.parse(HELLO), [CorruptBlockError(Cid.parse(HELLO), "a", "")]), 4),
            (SourceTimeoutError("a", "slow"), 3),
            (NotFoundError("x"), 3),
            (InvalidCidError("x"), 2),
            (MalformedBlockError("x"), 4),
            (CorruptRecordError("x"), 4),
            (MismatchError("x"), 2),
            (LimitExceededError("x"), 1),
            (StoreError("x"), 1),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_of_each_kind_have_their_exit_code(self, error: TrainyardError, code: int) -> None:
        assert exit_code(error) == code


class TestArrays:
    @pytest.fixture
    def arrays(self, tmp_path: Path) -> dict[str, Path]:
        np.save(tmp_path / "x.npy", np.arange(40, dtype=np.float32).reshape(10, 4))
        np.save(tmp_path / "y.npy", np.arange(10))
        np.savez(tmp_path / "both.npz", x=np.load(tmp_path / "x.npy"), y=np.arange(10))
        return {name: tmp_path / name for name in ("x.npy", "y.npy", "both.npz")}

    def test_are_added_as_a_directory(self, trainyard: Trainyard, arrays: dict[str, Path]) -> None:
        named = (f"x={arrays['x.npy']}", f"y={arrays['y.npy']}")

        cid = trainyard("add", "--arrays", *named).out.strip()

        assert trainyard("add", "--arrays", arrays["both.npz"]).out.strip() == cid
        names = [e["name"] for e in trainyard("ls", cid, "--json").document["entries"]]
        assert names == ["x.npy", "y.npy"]

    def test_are_sharded_by_a_seed(self, trainyard: Trainyard, arrays: dict[str, Path]) -> None:
        def shard(*arguments: str | Path) -> Any:
            return trainyard("shard", *arguments, "--shards", "3", "--json").document

        first = shard(arrays["both.npz"], "--seed", "1")
        again = shard(f"x={arrays['x.npy']}", f"y={arrays['y.npy']}", "--seed", "1")

        assert again["cid"] == first["cid"]
        assert shard(arrays["both.npz"], "--seed", "2")["cid"] != first["cid"]
        assert [part["records"] for part in first["shards"]] == [4, 3, 3]
        assert [feature["name"] for feature in first["features"]] == ["x", "y"]

    def test_that_do_not_fit_together_are_refused(
        self, trainyard: Trainyard, arrays: dict[str, Path], tmp_path: Path
    ) -> None:
        np.save(tmp_path / "z.npy", np.arange(11))
        ran = trainyard(
            "shard",
            f"x={arrays['x.npy']}",
            f"z={tmp_path / 'z.npy'}",
            "--shards",
            "1",
            "--seed",
            "0",
        )

        assert ran.code == ExitCode.WRONG_USE
        assert "{'x': 10, 'z': 11}" in ran.err

    def test_in_pickles_are_not_opened(self, trainyard: Trainyard, tmp_path: Path) -> None:
        stored = io.BytesIO()
        np.save(stored, np.array([{}], dtype=object), allow_pickle=True)
        (tmp_path / "bad.npy").write_bytes(stored.getvalue())

        ran = trainyard("add", "--arrays", f"x={tmp_path / 'bad.npy'}")

        assert ran.code == ExitCode.WRONG_USE
        assert "holds no plain arrays" in ran.err


def test_help_lists_the_commands_and_exit_codes(trainyard: Trainyard) -> None:
    said = trainyard("--help").out

    for command in ("add", "get", "cat", "ls", "pin", "unpin", "gc", "verify", "stat", "shard"):
        assert f" {command} " in said
    assert "4 corrupt content" in " ".join(said.split())
