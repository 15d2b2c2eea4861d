"""What a task came to, where its workers publish something else than they should; and what people
are given of it."""

import struct
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lives import salt_of
from dapp.posting.examples import examples
from dapp.results import exporting
from dapp.results.exporting import event_file, model_file
from dapp.routes import results
from dapp.schemas.runs import MetricSeries, MetricsView
from dapp.services import Services
from tests.dapp.server import Client, caught_up, dapp_for, settings_for
from tests.dapp.yard import Yard
from tests.unit.test_manifest_predict import predicting
from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import Link, encode_node
from trainyard.content.names import ContentPath
from trainyard.content.ports import Batch
from trainyard.content.unixfs import Kind, UnixFs
from trainyard.engine.claims import ClaimedRun
from trainyard.engine.evidence import Published
from trainyard.engine.limits import most_state_bytes
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import Policy
from trainyard.protocol.results import Result
from trainyard.sdk.receipts import Receipt

_MANIFEST, _OTHER = (Manifest.of(one.manifest) for one in examples().items[:2])
_TASK = 1


@pytest.fixture(scope="module")
def client(played: Yard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with dapp_for(settings_for(played, tmp_path_factory.mktemp("dapp"))) as found:
        yield found


def raw(batch: Batch, data: bytes) -> Cid:
    cid = Cid.of(Codec.RAW, data)
    batch.put(cid, data)
    return cid


def node(batch: Batch, about: UnixFs, *links: Link) -> Cid:
    block = encode_node(links, about.encode())
    cid = Cid.of(Codec.DAG_PB, block)
    batch.put(cid, block)
    return cid


def folder(batch: Batch, **children: Cid) -> Cid:
    links = [Link(child, name, 0) for name, child in children.items()]
    return node(batch, UnixFs(Kind.DIRECTORY), *links)


@pytest.fixture
def publish(client: Client, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a run with such a last state the one of the task."""
    services = client.app.state.services

    def open_it(state: Cid, batch: Batch, manifest: Manifest = _MANIFEST) -> ClaimedRun:
        states = folder(batch, **{"000001.safetensors": state})
        run = folder(batch, states=states, **{"trace.json": raw(batch, b"{}")})
        published = Published(
            services.content, ContentPath(run), manifest, ("0" * 64, "1" * 64), Path("/"), None
        )
        result = Result(
            manifest=manifest.digest.hex(), root="0" * 64, evidence=str(run), run=str(run)
        )
        claimed = ClaimedRun(str(run), result, published)
        monkeypatch.setattr(results, "read_result", lambda *_: (str(run), result))
        monkeypatch.setattr(results, "open_run", lambda *_: claimed)
        return claimed

    return open_it


def kept(client: Client) -> frozenset[Cid]:
    pins: frozenset[Cid] = client.app.state.services.content.store.pins()
    return pins


def test_a_state_that_is_too_large_is_not_kept(client: Client, publish: Any) -> None:
    with client.app.state.services.content.store.batch() as batch:
        piece = raw(batch, bytes(1 << 20))
        size = 1 << 40
        about = UnixFs(Kind.FILE, file_size=size, block_sizes=(size,))
        state = node(batch, about, Link(piece, "", size))
        publish(state, batch)

    found = client.json(f"/tasks/{_TASK}/result")
    refused = client.get(f"/tasks/{_TASK}/result/state")

    assert not found["available"]
    assert "and in this run it has at most" in found["reason"]
    assert refused.status_code == 422
    assert state not in kept(client)


def test_a_state_that_says_less_than_it_has_is_not_kept(client: Client, publish: Any) -> None:
    """Its own word is that it is empty; what hangs below it is all that its maker likes."""
    pieces = most_state_bytes(_MANIFEST) * 2 // (1 << 20) + 2
    with client.app.state.services.content.store.batch() as batch:
        links = [Link(raw(batch, bytes([n]) * (1 << 20)), "", 0) for n in range(pieces)]
        about = UnixFs(Kind.FILE, file_size=0, block_sizes=(0,) * pieces)
        state = node(batch, about, *links)
        publish(state, batch)

    found = client.json(f"/tasks/{_TASK}/result")

    assert not found["available"]
    assert "bytes that are allowed" in found["reason"]
    assert state not in kept(client)


def test_a_state_that_nobody_has_leaves_the_rest_of_the_result(
    client: Client, publish: Any
) -> None:
    with client.app.state.services.content.store.batch() as batch:
        publish(Cid(Codec.RAW, bytes(range(32))), batch)

    found = client.json(f"/tasks/{_TASK}/result")

    assert not found["available"]
    assert found["reason"].startswith("cannot get baf")
    # Where the server keeps content is nobody's business.
    assert str(client.app.state.services.content.store.root) not in found["reason"]
    assert found["run_cid"] is not None
    assert found["result_digest"] is not None


def test_a_model_is_made_for_its_own_manifest(
    client: Client, publish: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's task, of another architecture, may end in a copy of somebody else's state."""

    def export(services: Services, run: ClaimedRun, target: Path) -> None:
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(run.published.manifest.canonical)

    monkeypatch.setattr(exporting, "_export", export)
    services = client.app.state.services
    with services.content.store.batch() as batch:
        mine = publish(raw(batch, b"a state"), batch)
    theirs = replace(mine, published=replace(mine.published, manifest=_OTHER))
    assert client.json(f"/tasks/{_TASK}/result")["model_cid"] is None

    model_file(services, theirs)
    model = client.get(f"/tasks/{_TASK}/result/model.keras")

    assert Manifest.parse(model.content).digest == _MANIFEST.digest
    known = client.json(f"/tasks/{_TASK}/result")["model_cid"]
    assert known == model.headers["x-content-cid"]


def test_a_task_that_predicts_has_no_model(client: Client, publish: Any) -> None:
    with client.app.state.services.content.store.batch() as batch:
        publish(raw(batch, b"answers"), batch, Manifest.of(predicting()))

    found = client.json(f"/tasks/{_TASK}/result")
    refused = client.get(f"/tasks/{_TASK}/result/model.keras")

    assert (found["available"], found["model_url"], found["snippet"]) == (True, None, None)
    assert client.get(found["state_url"].removeprefix("/api/v1")).content == b"answers"
    assert refused.status_code == 404
    assert "trained no model" in refused.json()["error"]["message"]


def test_numbers_that_tensorboard_cannot_hold_are_infinite() -> None:
    values = [0.5, 1e39, -1e300]
    series = MetricSeries(
        slot=0,
        worker="0x" + "11" * 20,
        name="loss",
        steps=[1, 2, 3],
        times=[1.0, 2.0, 3.0],
        values=values,
    )

    file = b"".join(event_file(MetricsView(series=[series], last=3, is_thinned=False)))

    # A tag is followed by its value, in 32 bits.
    found = [struct.unpack("<f", part[1:5])[0] for part in file.split(b"worker 0/loss")[1:]]
    assert found == [0.5, inf, -inf]


def test_a_sealed_answer_is_none(client: Client, yard: Yard) -> None:
    """Of three auditors two have committed and not revealed yet: that is no answer of theirs."""
    live = yard.live
    task = live._submitted(Policy.AUDIT, 1)
    live.call("draw", task, by=live.requester)
    seats = live._seats(task)
    answers = [live.trace.after(seat.segment) for seat in seats]
    for seat, answer in zip(seats, answers, strict=True):
        live._commit_answer("auditCommit", (task,), seat, answer)
    proofs = [live.trace.proof_after(seat.segment) for seat in seats]
    live.call("open", task, live.claim.as_tuple(), answers, proofs, by=live.workers[0])
    member = seats[0].member
    live.call("auditReveal", task, 0, salt_of(member), answers[0], by=member)
    caught_up(client, yard)

    receipt = Receipt.parse(client.get(f"/tasks/{task}/result/receipt").content, "it")

    assert [one.opened for one in receipt.audits] == [f"0x{one.hex()}" for one in answers]
    assert [int(one.answer, 16) for one in receipt.audits] == [
        int.from_bytes(answers[0]),
        *[0] * (len(seats) - 1),
    ]
    assert receipt.signature is None
