"""Files of the page that are made from Python: its types, and the vectors of its own tests."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import dapp.schemas
from scripts import page_types
from trainyard.engine.evidence import TraceList
from trainyard.protocol.commitments import Claim
from trainyard.protocol.results import Result
from trainyard.protocol.trace import Trace

_VECTOR = Path(__file__).resolve().parents[2] / "dapp/web/tests/vectors/proof.json"


def test_the_types_are_what_the_server_answers_by() -> None:
    assert page_types.TARGET.read_text() == page_types.text(), "run 'make types' and commit it"


def test_another_schema_makes_other_types(monkeypatch: pytest.MonkeyPatch) -> None:
    class HealthView(dapp.schemas.HealthView):
        since: int | None = None

    assert issubclass(HealthView, BaseModel)
    monkeypatch.setattr(dapp.schemas, "HealthView", HealthView)

    assert page_types.TARGET.read_text() != page_types.text()


def test_the_page_is_tried_with_a_proof_of_our_own_making() -> None:
    assert json.loads(_VECTOR.read_text()) == _proof(), "write it anew with _proof()"


def _proof() -> dict[str, Any]:
    """A run of four segments, from the claim on the chain to its last state."""
    last = b"the last state of a run"
    states = [hashlib.sha256(bytes([n])).digest() for n in range(4)]
    trace = Trace([*states, hashlib.sha256(last).digest()])
    manifest = hashlib.sha256(b"a manifest").digest()
    run = "bafybeifjiyottuuzsaufrssrbqnhvbz226lbzil52xaedyju5ydcaqquaa"
    result = Result(manifest=manifest.hex(), root=trace.root.hex(), evidence=run, run=run)
    claim = Claim.of(result.digest, trace.root, [6_000, 4_000])
    return {
        "manifest": f"0x{manifest.hex()}",
        "claim": {
            "result": f"0x{claim.result.hex()}",
            "root": f"0x{claim.root.hex()}",
            "shares_digest": f"0x{claim.shares.hex()}",
            "shares": [6_000, 4_000],
        },
        "digest": f"0x{claim.digest.hex()}",
        "run": run,
        "result": result.canonical.decode(),
        "trace": TraceList.of(trace).model_dump_json(),
        "last_state": last.decode(),
        "roots": {str(n): f"0x{Trace(trace.states[:n]).root.hex()}" for n in (2, 3, 4, 5)},
    }
