"""The way of a requester through the API: a devnet, real agents, the real engine."""

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from safetensors.numpy import load

from tests.dapp.server import Client, wait_for
from tests.market.command import Trainyard
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import Options

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
_LONG_S = 400.0
_GAS = 3_000_000


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    options = Options(chain="anvil", agents=3, dapp=True)
    with Devnet(tmp_path_factory.mktemp("net") / "devnet", options) as found:
        yield found


@pytest.fixture(scope="module")
def client(net: Devnet) -> Iterator[Client]:
    with Client(base_url=f"{net.dapp}/api/v1", timeout=300.0, trust_env=False) as found:
        wait_for(lambda: found.json("/classes")["items"], "the workers", _LONG_S)
        wait_for(lambda: found.json("/stats")["workers_ready"] >= 3, "the workers", _LONG_S)
        yield found


@pytest.fixture(scope="module")
def burner(client: Client) -> LocalAccount:
    """A wallet that the faucet gave money to."""
    account: LocalAccount = Account.create()
    grant = _post(client, "/faucet", {"address": account.address})
    wait_for(lambda: _rpc(client, "eth_getTransactionReceipt", grant["transaction"]), "the grant")
    assert int(_rpc(client, "eth_getBalance", account.address, "latest"), 16) == int(
        grant["amount_wei"]
    )
    return account


@pytest.fixture(scope="module")
def settled(client: Client, burner: LocalAccount) -> int:
    """A task that was quoted, checked, posted, trained and paid for."""
    example = _post(client, "/examples/moons", None)
    manifest = _post(client, "/manifests", {"manifest": example["manifest"]})
    quote = _post(client, "/quotes", {"manifest": manifest["digest"]})
    assert quote["sentence"].startswith("at most ")
    preflight = _post(client, "/preflight", {"terms": quote["terms"], "requester": burner.address})
    assert preflight["ok"], preflight["checks"]
    assert {one["status"] for one in preflight["checks"]} <= {"ok", "warning"}
    steps = manifest["summary"]["steps"]
    assert preflight["estimated_train_s"] > preflight["seconds_per_step"] * steps > 0
    said, quoted = (one["sentence"].rpartition(", refundable")[0] for one in (preflight, quote))
    assert said == quoted
    _send(client, burner, preflight["to"], preflight["data"], int(preflight["value_wei"]))
    mine = wait_for(lambda: client.json("/tasks", requester=burner.address)["items"], "the task")
    number = int(mine[0]["id"])
    wait_for(
        lambda: client.json(f"/tasks/{number}")["task"]["state"] in ("settled", "failed"),
        "the end of the task",
        _LONG_S,
    )
    return number


def test_a_posted_task_is_trained_audited_and_paid(client: Client, settled: int) -> None:
    task = client.json(f"/tasks/{settled}")

    assert task["task"]["state"] == "settled"
    assert task["task"]["summary"]["title"].startswith("3 x Dense")
    stages = client.json(f"/tasks/{settled}/timeline")["stages"]
    assert [stage["status"] for stage in stages] == ["done"] * 6


def test_the_run_was_told_while_it_went_on(client: Client, settled: int) -> None:
    view = client.json(f"/tasks/{settled}/metrics")
    names = {series["name"] for series in view["series"]}

    assert {"loss", "accuracy", "examples_per_s"} <= names
    assert client.json(f"/tasks/{settled}/metrics", after=view["last"])["series"] == []
    lines = client.json(f"/tasks/{settled}/logs")["items"]
    assert any("training" in line["text"] for line in lines)
    assert client.json(f"/tasks/{settled}/logs", search="training")["items"]
    slot = client.json(f"/tasks/{settled}")["slots"][0]
    assert slot["last_seen"] is not None
    assert slot["contribution"] == 1.0


def test_the_result_is_the_verified_model(client: Client, settled: int, tmp_path: Path) -> None:
    result = wait_for(
        lambda: (one := client.json(f"/tasks/{settled}/result"))["available"] and one, "the run"
    )

    state = client.get(f"/tasks/{settled}/result/state")
    assert state.headers["x-content-cid"] == result["state_cid"]
    model = client.get(f"/tasks/{settled}/result/model.keras")
    assert model.status_code == 200, model.text
    with zipfile.ZipFile(io.BytesIO(model.content)) as archive:
        assert "model.weights.h5" in archive.namelist()
    assert model.headers["x-content-cid"].startswith("baf")
    # As the page finds them in it: neither packed nor compressed.
    weights = {
        name: one for name, one in load(state.content).items() if name.startswith("weights/")
    }
    assert len(weights) == 6
    assert all(one.tobytes() in model.content for one in weights.values())
    base = str(client.base_url).split("/api/")[0]
    car = httpx.get(
        f"{base}/ipfs/{result['state_cid']}?format=car&dag-scope=entity", trust_env=False
    )
    assert car.status_code == 200
    assert result["tested"]["accuracy"] > 0.9


def test_a_challenge_can_be_proven(client: Client, settled: int) -> None:
    from trainyard.protocol.trace import verify

    segments = client.json(f"/tasks/{settled}/trace")["segments"]
    proof = client.json(f"/tasks/{settled}/trace/1")

    assert verify(
        bytes.fromhex(proof["claim"]["root"][2:]),
        segments,
        2,
        bytes.fromhex(proof["state"][2:]),
        [bytes.fromhex(one[2:]) for one in proof["proof"]],
    )


def test_the_receipt_names_its_transactions(client: Client, settled: int) -> None:
    receipt = client.json(f"/tasks/{settled}/result/receipt")

    assert receipt["outcome"] == "settled"
    for transaction in receipt["transactions"]:
        assert _rpc(client, "eth_getTransactionReceipt", transaction)["status"] == "0x1"


def test_the_receipt_is_checked_again_from_the_chain_and_content(
    client: Client, net: Devnet, settled: int, tmp_path: Path
) -> None:
    receipt = tmp_path / f"task-{settled}-receipt.json"
    receipt.write_bytes(client.get(f"/tasks/{settled}/result/receipt").content)
    place = ("--on", net.url, "--market", net.market, "--start-block", str(net.start_block))

    code, out, err = Trainyard(tmp_path).run(
        "verify", receipt, *place, "--gateway", net.gateway, "--json"
    )

    # Nobody has signed it; all that it says is so.
    assert code == 5, out + err
    checks = {one["name"]: one["is_right"] for one in json.loads(out)["checks"]}
    named = ("chain", "transactions", "draw", "trace", "audits")
    assert checks == {"signature": False} | dict.fromkeys(named, True), out


def test_tensorboard_reads_the_run(client: Client, settled: int, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import (  # type: ignore[import-untyped]
        EventAccumulator,
    )

    answer = client.get(f"/tasks/{settled}/result/tensorboard")
    (tmp_path / "events.out.tfevents.1").write_bytes(answer.content)

    found = EventAccumulator(str(tmp_path))
    found.Reload()

    assert "worker 0/loss" in found.Tags()["scalars"]
    assert found.Scalars("worker 0/loss")[-1].value < found.Scalars("worker 0/loss")[0].value


def test_a_keras_file_becomes_a_model(client: Client, tmp_path: Path) -> None:
    made = Path(__file__).parent / "make_models.py"
    subprocess.run([sys.executable, str(made), str(tmp_path)], check=True, capture_output=True)
    uploaded = _upload(client, {"model.keras": (tmp_path / "model.keras").read_bytes()})
    assert uploaded["kind"] == "keras"

    view = _post(client, "/models", {"cid": uploaded["cid"]})

    assert view["parameters"] == 4 * 8 + 8 + 8 * 3 + 3
    assert [layer["type"] for layer in view["layers"]] == ["Dense", "Dense"]
    assert view["training"]["optimizer"]["type"] == "Adam"
    plain = _upload(client, {"model.json": (tmp_path / "model.json").read_bytes()})
    assert _post(client, "/models", {"cid": plain["cid"]})["model"] == view["model"]
    refused = client.post(
        "/models", json={"cid": _upload(client, {"bad.keras": b"PK\x03\x04nonsense"})["cid"]}
    )
    assert refused.status_code == 422
    assert "Keras cannot read it" in refused.json()["error"]["message"]


def test_data_of_each_kind_is_previewed_and_written(client: Client) -> None:
    table = "a,b,colour,kind\n" + "\n".join(
        f"{n},{n / 2},{'red' if n % 2 else 'blue'},{'x' if n > 5 else 'y'}" for n in range(10)
    )
    csv = _preview(client, {"table.csv": table.encode()}, test_percent=20)
    assert (csv["kind"], csv["records"], csv["classes"]) == ("csv", 8, 2)
    assert csv["train"]["features"]["features"] == {"dtype": "float32", "shape": [4]}
    assert csv["test"]["records"] == 2
    assert csv["columns"][1]["labels"] == ["x", "y"]
    # Asked once more with what it was answered, as the page does when the test's part changes.
    assert csv["predictable"] == ["a", "b", "colour", "kind"]
    again = {"cid": csv["source_cid"], "target": csv["predicted"], "test_percent": 50}
    assert _post(client, "/data/preview", again)["records"] == 5

    npz = io.BytesIO()
    images = np.zeros((6, 8, 8), np.uint8)
    np.savez(npz, x_train=images, y_train=np.arange(6) % 3, x_test=images, y_test=np.arange(6) % 3)
    arrays = _preview(client, {"data.npz": npz.getvalue()})
    assert (arrays["records"], arrays["target"], arrays["classes"]) == (6, "y", 3)
    assert "png" in arrays["first"][0]["x"]

    from PIL import Image

    files = {}
    for label in ("cats", "dogs"):
        for number in range(2):
            file = io.BytesIO()
            Image.new("RGB", (12, 10), (number, 50, 90)).save(file, "PNG")
            files[f"pets/{label}/{number}.png"] = file.getvalue()
    pictures = _preview(client, files)
    assert (pictures["kind"], pictures["records"]) == ("images", 4)
    assert pictures["train"]["features"]["image"] == {"dtype": "uint8", "shape": [10, 12, 3]}

    from trainyard.datasets.example import encode_example
    from trainyard.datasets.tfrecord import frame

    records = b"".join(
        frame(encode_example({"x": np.ones(3, np.float32), "label": np.array([n % 2])}))
        for n in range(4)
    )
    shards = _preview(client, {"data.tfrecord": records})
    assert (shards["kind"], shards["records"], shards["target"]) == ("tfrecord", 4, "label")

    refused = client.post(
        "/data/preview", json={"cid": _upload(client, {"data.npz": b"PK\x03\x04broken"})["cid"]}
    )
    assert refused.status_code == 422


def _preview(client: Client, files: dict[str, bytes], **more: Any) -> Any:
    return _post(client, "/data/preview", {"cid": _upload(client, files)["cid"], **more})


def _upload(client: Client, files: dict[str, bytes]) -> Any:
    answer = client.post("/content", files=[("file", (name, one)) for name, one in files.items()])
    assert answer.status_code == 201, answer.text
    return answer.json()


def _post(client: Client, path: str, document: Any) -> Any:
    answer = client.post(path, json=document)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def _rpc(client: Client, method: str, *params: Any) -> Any:
    document = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
    return _post(client, "/rpc", document).get("result")


def _send(client: Client, account: LocalAccount, to: str, data: str, value: int) -> None:
    nonce = int(_rpc(client, "eth_getTransactionCount", account.address, "pending"), 16)
    price = int(_rpc(client, "eth_gasPrice"), 16)
    transaction: dict[str, Any] = {
        "type": 2,
        "chainId": client.json("/config")["chain_id"],
        "nonce": nonce,
        "to": to,
        "data": data,
        "value": value,
        "gas": _GAS,
        "maxFeePerGas": 2 * price + 10**9,
        "maxPriorityFeePerGas": 10**9,
    }
    signed = account.sign_transaction(transaction)
    sent = _rpc(client, "eth_sendRawTransaction", f"0x{signed.raw_transaction.hex()}")
    receipt = wait_for(lambda: _rpc(client, "eth_getTransactionReceipt", sent), "the receipt")
    assert receipt["status"] == "0x1"
