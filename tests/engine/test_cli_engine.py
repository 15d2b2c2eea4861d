"""`trainyard engine run` and `trainyard audit`, as their users run them."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from typer.testing import CliRunner

from tests.engine.nets import manifest_of, write_data
from tests.engine.test_runs import killing
from tests.unit.sets import save_shards
from trainyard.cli.app import app
from trainyard.cli.engine import _report
from trainyard.cli.watching import Watch
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath
from trainyard.engine.classes import find_class
from trainyard.engine.costs import step_bytes
from trainyard.engine.counting import Stop
from trainyard.engine.events import Event
from trainyard.engine.evidence import TraceList
from trainyard.engine.journal import Journal
from trainyard.engine.state import State
from trainyard.protocol.results import Result
from trainyard.protocol.trace import Trace

COMMAND = [sys.executable, "-c", "from trainyard.cli import main; main()"]


class Yard:
    """The command in a folder, with a store, of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TRAINYARD_")}
        self._environment = {**kept, "TRAINYARD_STORE": str(folder / "store")}

    def run(
        self, *arguments: str | Path, cwd: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*COMMAND, *map(str, arguments)],
            cwd=cwd or self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def document(self, *arguments: str | Path, cwd: Path | None = None) -> Any:
        ended = self.run(*arguments, "--json", cwd=cwd)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    def add(self, path: Path) -> str:
        """By the library: these are not the commands that are tried here."""
        return str(self._content().add(path).cid)

    def get(self, cid: str, path: Path) -> None:
        self._content().get(ContentPath.parse(cid), path)

    def _content(self) -> Content:
        return Content(EmbeddedStore(self.folder / "store"))

    def write_manifest(self, net: str, **training: Any) -> Path:
        """A manifest whose data is in the store, for training and for the test at the end."""
        cid = self.add(self.folder / "data")
        document = json.loads(manifest_of(net, **training).canonical)
        document["data"]["train"]["path"] = f"ipfs://{cid}"
        document["data"]["test"] = document["data"]["train"]
        path = self.folder / "manifest.json"
        path.write_text(json.dumps(document))
        return path


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Yard:
    folder = tmp_path_factory.mktemp("yard")
    write_data(folder / "data")
    return Yard(folder)


@pytest.fixture(scope="module")
def published(yard: Yard) -> dict[str, Any]:
    manifest = yard.write_manifest("batch_norm", validation={"split": 0.25})
    found: dict[str, Any] = yard.document(
        "engine", "run", manifest, "--mode", "sync", "--workers", "2", "--publish"
    )
    return found


def test_run_leaves_a_model_that_keras_loads(yard: Yard, published: dict[str, Any]) -> None:
    folder = yard.folder / published["folder"]

    model = keras.saving.load_model(folder / "model.keras")

    last = State.load(folder / "states" / f"{published['segments']:06}.safetensors")
    kernel = next(one for one in model.variables if one.path == "out/kernel")
    assert np.array_equal(np.asarray(kernel), last.tensors["weights/out/kernel"])
    assert published["tested"]["examples"] == 96
    assert published["tested"]["metrics"].keys() == {"accuracy"}
    assert list((folder / "tensorboard").iterdir())


def test_costs_of_all_workers_are_told(published: dict[str, Any]) -> None:
    """The first worker's are in the states, and the other's are about the same."""
    sent = 2 * published["steps"] * step_bytes(manifest_of("batch_norm", workers=2))
    first, *states = published["states"]

    assert published["sent_bytes"] == sent
    assert [2 * one["sent_bytes"] * 4 for one in states] == [sent] * 4
    assert first["energy"] is None
    own_j = sum(one["energy"]["joules"] for one in states)
    assert own_j > 0
    assert published["energy_j_estimated"] > own_j
    told = list(_report(published, []))
    assert f"sent      {sent:,} bytes between workers" in told
    assert any(
        re.fullmatch(r"energy    [0-9,.]+ J, estimated \(codecarbon, by .+\)", line)
        for line in told
    )


def test_run_takes_data_that_the_user_has(
    yard: Yard, published: dict[str, Any], tmp_path: Path
) -> None:
    """With a store that has none of it."""
    data = yard.folder / "data"
    own = ["--data", str(data), "--test-data", str(data), "--store", str(tmp_path / "empty")]

    found = yard.document("engine", "run", "manifest.json", *own, "--folder", tmp_path / "run")

    assert (found["steps"], found["tested"]["examples"]) == (12, 96)
    assert not (tmp_path / "run" / "files").exists()


def test_run_from_shards_and_from_shards_with_a_corrupt_record(yard: Yard, tmp_path: Path) -> None:
    """A set may be published with what is wrong in it, so its CID says nothing against it."""
    arrays = {name: np.load(yard.folder / "data" / f"{name}.npy") for name in ("image", "label")}
    shards = save_shards(Content(EmbeddedStore(tmp_path / "other")), tmp_path / "set", arrays)
    document = json.loads(manifest_of("mlp").canonical)
    document["data"]["train"]["kind"] = "tfrecord"

    def manifest(name: str) -> Path:
        document["data"]["train"]["path"] = f"ipfs://{yard.add(shards)}"
        path = tmp_path / name
        path.write_text(json.dumps(document))
        return path

    found = yard.document("engine", "run", manifest("good.json"), "--folder", tmp_path / "good")
    path = shards / "data-00001-of-00003.tfrecord"
    damaged = bytearray(path.read_bytes())
    damaged[40] ^= 1
    path.write_bytes(damaged)
    ended = yard.run("engine", "run", manifest("bad.json"), "--folder", tmp_path / "bad")

    assert found["steps"] == 12
    assert ended.returncode == 1
    told = " ".join(ended.stderr.split())
    assert "data-00001-of-00003.tfrecord, record 0 at byte 0:" in told
    assert "checksum" in told
    assert "Traceback" not in told


def test_what_a_lost_worker_cost_is_told(
    yard: Yard, published: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the document, beside a line for each time; the same bits come out."""
    # Before any step, since the steps take less time than a signal may.
    kill, follow = killing(1, 0), Watch.__call__

    def kill_and_follow(watch: Watch, event: Event) -> None:
        kill(event)
        follow(watch, event)

    monkeypatch.setattr(Watch, "__call__", kill_and_follow)
    command = ["engine", "run", str(yard.folder / "manifest.json"), "--mode", "sync"]
    kept = ["--folder", str(yard.folder / "killed"), "--store", str(yard.folder / "store")]

    ended = CliRunner().invoke(app, [*command, "--workers", "2", *kept, "--json"])

    assert ended.exit_code == 0, ended.output
    found = json.loads(ended.stdout)
    [told] = re.findall(r"all went on from segment \d+, ([0-9.]+) s lost", ended.stderr)
    assert (found["restarts"], published["restarts"], published["lost_s"]) == (1, 0, 0.0)
    assert found["lost_s"] == pytest.approx(float(told), abs=0.06)
    assert found["root"] == published["root"]


def test_nothing_is_said_of_energy_that_nobody_knows(published: dict[str, Any]) -> None:
    told = _report({**published, "energy_j_estimated": None, "energy_estimated_by": []}, [])

    assert not any("energy" in line for line in told)


def test_strangers_check_a_published_run(
    yard: Yard, published: dict[str, Any], tmp_path: Path
) -> None:
    """Of a cluster, on one machine, by its CID, in an empty folder."""
    segments = [str(one) for one in range(published["segments"])]
    options = [part for one in segments for part in ("--segment", one)]

    asked = ["--manifest", published["manifest"], "--root", published["root"]]
    found = yard.document("audit", published["cid"], *options, *asked, cwd=tmp_path)

    assert found["agrees"] is True
    assert found["class"]["claimed"] == find_class().id
    assert [one["segment"] for one in found["segments"]] == [0, 1, 2, 3]
    assert [path.name for path in tmp_path.iterdir()] == ["trainyard-audits"]


def test_the_result_of_a_task_leads_to_its_run(yard: Yard, published: dict[str, Any]) -> None:
    named = {name: published[name] for name in ("manifest", "root")}
    result = yard.folder / "result.json"
    result.write_bytes(Result(**named, evidence="", run=published["cid"]).canonical)

    found = yard.document("audit", yard.add(result), "--segment", "2")

    assert found["agrees"] is True
    assert {name: found[name] for name in named} == named


def test_audit_takes_data_that_the_user_has(
    yard: Yard, published: dict[str, Any], tmp_path: Path
) -> None:
    """With a store that has none of it; and it refuses what is not the manifest's."""
    write_data(tmp_path / "other", 12)
    elsewhere = ["--store", str(tmp_path / "empty"), "--cache", str(tmp_path / "cache")]
    command = ["audit", published["folder"], "--segment", "0", *elsewhere]
    data, other = yard.folder / "data", tmp_path / "other"

    found = yard.document(*command, "--data", data, "--test-data", data)
    refused = yard.run(*command, "--data", other, "--test-data", data)

    assert found["agrees"] is True
    assert refused.returncode == 2
    assert "leave the option out" in " ".join(refused.stderr.split())


def forge(
    yard: Yard, cid: str, run: Path, changes: Mapping[int, State | bytes]
) -> tuple[str, TraceList]:
    """A run with states of a forger's own, and a trace that goes with them: its CID."""
    yard.get(cid, run)
    states = json.loads((run / "trace.json").read_text())["states"]
    for number, state in changes.items():
        data = state if isinstance(state, bytes) else b"".join(map(bytes, state.parts()))
        (run / "states" / f"{number:06}.safetensors").write_bytes(data)
        states[number] = hashlib.sha256(data).hexdigest()
    trace = TraceList.of(Trace([bytes.fromhex(one) for one in states]))
    (run / "trace.json").write_text(trace.model_dump_json())
    return yard.add(run), trace


def state_of(yard: Yard, published: dict[str, Any], number: int) -> State:
    folder = yard.folder / published["folder"]
    return State.load(folder / "states" / f"{number:06}.safetensors")


def test_forged_segments_are_found(yard: Yard, published: dict[str, Any], tmp_path: Path) -> None:
    state = state_of(yard, published, 2)
    bias = state.tensors["weights/out/bias"] + np.float32(1e-6)
    forged = State({**state.tensors, "weights/out/bias": bias})
    cid, made_up = forge(yard, published["cid"], tmp_path / "run", {2: forged})

    ended = yard.run("audit", cid, "--segment", "1", "--segment", "3")

    assert ended.returncode == 4
    manifest, root, first, second = ended.stdout.splitlines()
    assert manifest == f"manifest {published['manifest']}"
    assert root == f"root     {made_up.root}"
    assert first.startswith(f"segment 1: claimed {forged.hash.hex()}, found {state.hash.hex()}")
    assert second.startswith("segment 3: as claimed, ")


def test_end_that_was_made_up_is_found_by_what_repeats_it(
    yard: Yard, published: dict[str, Any], tmp_path: Path
) -> None:
    """Also if the trace ends with something else."""
    state = state_of(yard, published, 2)
    over = State({**state.tensors, "run/stop": np.asarray(Stop.EARLY, np.int64)})
    cid, _ = forge(yard, published["cid"], tmp_path / "run", {2: over, 3: over})

    ended = yard.run("audit", cid, "--segment", "2", "--json")

    assert ended.returncode == 4
    found = json.loads(ended.stdout)["segments"]
    assert [(one["segment"], one["agrees"]) for one in found] == [(0, True), (1, False), (2, True)]


@pytest.mark.parametrize(("moved", "code"), [(1e-7, 5), (1.0, 4)])
def test_run_of_another_class_is_compared_by_tolerance(
    yard: Yard, published: dict[str, Any], tmp_path: Path, moved: float, code: int
) -> None:
    state = state_of(yard, published, 2)
    bias = state.tensors["weights/out/bias"] + np.float32(moved)
    other = State({**state.tensors, "weights/out/bias": bias})
    run = tmp_path / "run"
    forge(yard, published["cid"], run, {2: other})
    (run / "environment.json").write_text(json.dumps({"environment_class": "ab" * 32}))
    cid = yard.add(run)

    ended = yard.run("audit", cid, "--segment", "1", "--json")

    assert ended.returncode == code
    assert json.loads(ended.stdout)["segments"][0]["tolerated"] is (code == 5)


def forged_elsewhere(kind: str, yard: Yard, published: dict[str, Any]) -> dict[int, State | bytes]:
    """States of a forger's own, of which segment 1 starts from an honest one."""
    first, state = (state_of(yard, published, number) for number in (0, 2))
    bias = first.tensors["weights/out/bias"] + np.float32(0.1)
    step = np.asarray(1000, np.int64)
    kinds: dict[str, dict[int, State | bytes]] = {
        "another beginning": {0: State({**first.tensors, "weights/out/bias": bias})},
        "a step that says it is too long": {2: State({**state.tensors, "run/step": step})},
        "an end that is no state": {2: b"nonsense"},
        "an end of another form": {2: State({"a": step})},
    }
    return kinds[kind]


@pytest.mark.parametrize(
    "kind",
    [
        "another beginning",
        "a step that says it is too long",
        "an end that is no state",
        "an end of another form",
    ],
)
def test_a_class_that_was_made_up_excuses_no_forgery(
    yard: Yard, published: dict[str, Any], tmp_path: Path, kind: str
) -> None:
    run = tmp_path / "run"
    forge(yard, published["cid"], run, forged_elsewhere(kind, yard, published))
    (run / "environment.json").write_text(json.dumps({"environment_class": "ab" * 32}))

    ended = yard.run("audit", yard.add(run), "--segment", "1", "--json")

    assert ended.returncode == 4, ended.stderr
    assert json.loads(ended.stdout)["agrees"] is False


def test_state_that_is_not_the_traces_is_refused(
    yard: Yard, published: dict[str, Any], tmp_path: Path
) -> None:
    yard.get(published["cid"], tmp_path / "run")
    states = tmp_path / "run" / "states"
    (states / "000001.safetensors").write_bytes((states / "000002.safetensors").read_bytes())
    cid = yard.add(tmp_path / "run")

    ended = yard.run("audit", cid, "--segment", "1")

    assert ended.returncode == 1
    assert "another state as states/000001 than its trace names" in ended.stderr


def test_nonsense_that_was_committed_to_is_wrong(
    yard: Yard, published: dict[str, Any], tmp_path: Path
) -> None:
    """Not merely unreadable: else a forger would have nothing to fear."""
    yard.get(published["cid"], tmp_path / "run")
    path = tmp_path / "run" / "states" / "000002.safetensors"
    path.write_bytes(b"nonsense")
    trace = json.loads((tmp_path / "run" / "trace.json").read_text())
    trace["states"][2] = hashlib.sha256(b"nonsense").hexdigest()
    made_up = TraceList.of(Trace([bytes.fromhex(one) for one in trace["states"]]))
    (tmp_path / "run" / "trace.json").write_text(made_up.model_dump_json())
    cid = yard.add(tmp_path / "run")

    ended = yard.run("audit", cid, "--segment", "2", "--segment", "3")

    assert ended.returncode == 4, ended.stderr
    *_, first, second = ended.stdout.splitlines()
    assert "and nothing follows from its start" in first
    assert second.startswith("segment 3: as claimed, ")


def test_run_in_a_folder_is_checked_too(yard: Yard, published: dict[str, Any]) -> None:
    ended = yard.run("audit", published["folder"], "--segment", "2")

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1].startswith("segment 2: as claimed, ")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"layers": [{"name": "out", "type": "Dence", "units": 10}]}, "Dense"),
        ({"layers": [{"name": "out", "type": "Dense", "units": 10**9}]}, "units"),
    ],
)
def test_bad_manifests_are_refused_with_the_reason(
    yard: Yard, published: dict[str, Any], change: dict[str, Any], says: str
) -> None:
    document = json.loads((yard.folder / "manifest.json").read_text())
    document["model"] |= change
    path = yard.folder / "bad.json"
    path.write_text(json.dumps(document))

    ended = yard.run("engine", "run", path)

    assert ended.returncode == 2
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


def test_run_that_has_only_begun_has_nothing_to_audit(
    yard: Yard, published: dict[str, Any]
) -> None:
    """As when its folder is looked at before the first state is there."""
    folder = yard.folder / "begun"
    Journal.open(folder, (yard.folder / published["folder"] / "manifest.json").read_bytes())

    ended = yard.run("audit", folder, "--segment", "0", "--json")

    assert ended.returncode == 1
    assert "the run has no segment yet" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["audit", "nonsense", "--segment", "0"], 2, "nonsense"),
        (["audit", "CID", "--segment", "99"], 1, "there is no segment 99"),
        (["audit", "CID", "--segment", "0", "--root", "ab"], 4, "and ab was asked for"),
        (["engine", "run", "missing.json"], 2, "missing.json"),
        (["engine", "run", "manifest.json", "--mode", "rings"], 2, "rings"),
    ],
)
def test_wrong_use_is_explained(
    yard: Yard, published: dict[str, Any], arguments: list[str], code: int, says: str
) -> None:
    ended = yard.run(*(published["cid"] if one == "CID" else one for one in arguments))

    assert ended.returncode == code
    assert says in ended.stderr
