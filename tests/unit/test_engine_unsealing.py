"""What workers serve of a drawn segment: whatever it is, it is inputs, or it is not served.

An auditor that got stuck on it could not even commit to that, and would pay for the silence.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_engine_evidence import MANIFEST, STATES
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.engine.sealing import INPUTS, SEAL
from trainyard.engine.unsealing import Evidence, NotServedError
from trainyard.protocol.results import Result
from trainyard.protocol.trace import Trace

TRACE = Trace([state.hash for state in STATES])
SEGMENT = 2
DATA = b"".join(STATES[SEGMENT].parts())
HASH = STATES[SEGMENT].hash.hex()
PROOF = [one.hex() for one in TRACE.proof(SEGMENT)]


def shown(**changes: Any) -> dict[str, Any]:
    return {"hash": HASH, "proof": PROOF, **changes}


def inputs(states: Any = None, **changes: Any) -> bytes:
    states = {str(SEGMENT): shown()} if states is None else states
    return json.dumps({"version": 1, "states": states, **changes}).encode()


def result_of(evidence: str) -> bytes:
    digest, root = MANIFEST.digest.hex(), TRACE.root.hex()
    return Result(manifest=digest, root=root, evidence=evidence, run="").canonical


@dataclass(frozen=True)
class Server:
    """Whoever serves evidence, and may serve anything."""

    content: Content
    folder: Path

    def serve(self, served: dict[str, bytes | None]) -> Evidence:
        """Evidence of these files, and of folders for those without bytes."""
        place = self.folder / "evidence" / f"{SEGMENT:06}"
        place.mkdir(parents=True)
        for name, data in served.items():
            if data is None:
                (place / name).mkdir()
            else:
                (place / name).write_bytes(data)
        cid = self.content.add(self.folder / "evidence").cid
        return self.claim(result_of(str(cid)))

    def claim(self, result: bytes) -> Evidence:
        cid = Cid.of(Codec.RAW, result)
        with self.content.store.batch() as batch:
            batch.put(cid, result)
        folder = self.folder / "fetched"
        return Evidence.open(self.content, MANIFEST, cid.digest, TRACE.root, folder)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    content = Content(EmbeddedStore(tmp_path / "store"))
    yield Server(content, tmp_path)
    content.close()


def test_what_is_proven_is_inputs(server: Server) -> None:
    found = server.serve({INPUTS: inputs(), f"state-{SEGMENT}": SEAL + DATA}).inputs(SEGMENT)

    assert [path.read_bytes() for path in found.states] == [DATA]
    assert not found.nonsense


BAD: dict[str, bytes] = {
    "empty": b"",
    "no JSON": b"\xff{",
    "a list": b"[]",
    "nested without end": b"[" * 100_000,
    "half of a letter": b'{"states": {"2": {"hash": "\\ud800", "proof": []}}}',
    "another version": inputs(version=2),
    "more than there is": inputs(more=1),
    "states that are a list": inputs([]),
    "a number that is none": inputs({"two": shown()}),
    "a number below all": inputs({"-1": shown()}),
    "a number above all": inputs({"9": shown()}),
    "a number beyond counting": inputs({"9" * 5000: shown()}),
    "no states": inputs({}),
    "more states than there are": inputs({str(number): shown() for number in range(257)}),
    "a hash that is no hexadecimal": inputs({"2": shown(hash="g" * 64)}),
    "a hash that ends in a line": inputs({"2": shown(hash=HASH + "\n")}),
    "a hash that is none": inputs({"2": shown(hash=None)}),
    "a hash of another state": inputs({"2": shown(hash=STATES[1].hash.hex())}),
    "a proof that is no hexadecimal": inputs({"2": shown(proof=["z" * 64, *PROOF[1:]])}),
    "a proof with gaps": inputs({"2": shown(proof=[PROOF[0][:62] + "  ", *PROOF[1:]])}),
    "a proof of other letters": inputs({"2": shown(proof=["\u0661" * 64, *PROOF[1:]])}),
    "a proof in capitals": inputs({"2": shown(proof=[one.upper() for one in PROOF])}),
    "a proof with a short word": inputs({"2": shown(proof=["ab", *PROOF])}),
    "a proof that is too long": inputs({"2": shown(proof=PROOF * 40)}),
    "a proof that is too short": inputs({"2": shown(proof=PROOF[1:])}),
    "a proof of numbers": inputs({"2": shown(proof=[1, 2, 3])}),
    "no proof": inputs({"2": {"hash": HASH}}),
    "another state beside it without a proof": inputs({"2": shown(), "3": shown()}),
}


@pytest.mark.parametrize("served", BAD.values(), ids=BAD)
def test_bad_inputs_are_not_served(server: Server, served: bytes) -> None:
    evidence = server.serve({INPUTS: served, f"state-{SEGMENT}": SEAL + DATA})

    with pytest.raises(NotServedError):
        evidence.inputs(SEGMENT)


@pytest.mark.parametrize(
    "served",
    [
        {},
        {INPUTS: inputs()},
        {INPUTS: inputs(), f"state-{SEGMENT}": b""},
        {INPUTS: inputs(), f"state-{SEGMENT}": DATA},
        {INPUTS: inputs(), f"state-{SEGMENT}": SEAL},
        {INPUTS: inputs(), f"state-{SEGMENT}": SEAL + DATA[:-1]},
        {INPUTS: inputs() + b" " * (1 << 20), f"state-{SEGMENT}": SEAL + DATA},
        {INPUTS: None, f"state-{SEGMENT}": SEAL + DATA},
        {INPUTS: inputs(), f"state-{SEGMENT}": None},
    ],
    ids=[
        "nothing",
        "no state",
        "empty",
        "no seal",
        "only a seal",
        "cut off",
        "too large",
        "a folder of inputs",
        "a folder of a state",
    ],
)
def test_what_is_missing_or_another_is_not_served(
    server: Server, served: dict[str, bytes | None]
) -> None:
    with pytest.raises(NotServedError):
        server.serve(served).inputs(SEGMENT)


@pytest.mark.parametrize(
    "evidence", ["", "x", "/", "bafy/../..", "ipfs://", "\0", "Qm" + "1" * 44, "b" * 128]
)
def test_a_claim_without_a_place_is_not_served(server: Server, evidence: str) -> None:
    with pytest.raises(NotServedError):
        server.claim(result_of(evidence)).inputs(SEGMENT)


@pytest.mark.parametrize(
    "document", [b"", b"[]", b"{}", b"{" * 70_000, b'{"version": 1}', b"\xff", b"null"]
)
def test_a_document_that_is_no_result_is_not_served(server: Server, document: bytes) -> None:
    with pytest.raises(NotServedError):
        server.claim(document)
