"""Who answers for a part: the offer beside the trace has to be of this part, and signed."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engine.nets import manifest_of
from trainyard.cli.engine import _verdicts
from trainyard.engine.errors import RunError
from trainyard.engine.exchange import Offer
from trainyard.engine.leaves import Absence, absent_in
from trainyard.engine.offers import (
    OFFERS,
    SIGNERS,
    keep,
    keep_signers,
    name_of,
    own_key,
    read_signers,
    signed,
    sum_up_signers,
)
from trainyard.engine.results import Audit, Verdict
from trainyard.engine.signing import address_of
from trainyard.engine.vouching import Voucher, voucher_of
from trainyard.protocol.manifest import RoundsPlan

KEYS = [b"\x01" * 32, b"\x02" * 32]
ADDRESSES = tuple(map(address_of, KEYS))
MANIFEST = manifest_of(
    "mlp", mode="rounds", workers=2, until={"steps": 6}, rounds={"local_steps": 3}
)
STATES = [digit * 64 for digit in "0123456"]
# Worker 1 in round 1.
PART = 4
# A process that may write no byte is killed when it tries to.
KILLED_AT_THE_FIRST_BYTE = """
import resource, signal, sys
from pathlib import Path
from trainyard.engine.offers import own_key
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
own_key(Path(sys.argv[1]))
"""


def offer(key: bytes = KEYS[1], **changes: Any) -> Offer:
    said = {"round": 1, "slot": 1, "globe": STATES[3], "leaf": STATES[5], "delta": "d" * 64}
    return signed(Offer.model_validate({**said, **changes}), MANIFEST, key)


def shelf(kept: Offer | None) -> dict[str, bytes]:
    files = {"signers.json": f'["{ADDRESSES[0]}","{ADDRESSES[1]}"]'.encode()}
    if kept is not None:
        files[name_of(1, 1)] = kept.model_dump_json().encode()
    return files


def test_signed_part_is_of_its_signer() -> None:
    assert voucher_of(MANIFEST, STATES, PART, shelf(offer()).get) == Voucher(ADDRESSES[1])


@pytest.mark.parametrize(
    ("kept", "problem"),
    [
        (None, "no offer of worker 1 in round 1 is here"),
        (offer(leaf="e" * 64), "worker 1 signed something else than this part"),
        (offer(round=0), "worker 1 signed something else than this part"),
        (offer(key=KEYS[0]), f"is signed by {ADDRESSES[0]}, and not by {ADDRESSES[1]}"),
    ],
)
def test_part_that_its_worker_did_not_sign(kept: Offer | None, problem: str) -> None:
    found = voucher_of(MANIFEST, STATES, PART, shelf(kept).get)

    assert found is not None
    assert found.signer is None
    assert problem in found.problem


@pytest.mark.parametrize("files", [{}, {"signers.json": b"[]"}, {"signers.json": b"{"}])
def test_run_that_does_not_say_who_signs(files: dict[str, bytes]) -> None:
    read = {**shelf(offer()), "signers.json": b"", **files}.get

    found = voucher_of(MANIFEST, STATES, PART, read)

    assert found is not None
    assert found.problem


def test_nobody_signs_for_merges_and_absences() -> None:
    plan = MANIFEST.plan
    assert isinstance(plan, RoundsPlan)
    away = [*STATES[:5], absent_in(plan, PART, Absence.AWAY).hash.hex(), STATES[6]]

    assert voucher_of(MANIFEST, STATES, 5, shelf(None).get) is None
    assert voucher_of(MANIFEST, away, PART, shelf(None).get) is None
    assert voucher_of(manifest_of("mlp"), STATES, 0, shelf(None).get) is None


def test_report_names_who_signed_a_wrong_part() -> None:
    wrong = Verdict(4, "segment 4", "a", "b", 1.0, signer=ADDRESSES[1])
    unsigned = Verdict(4, "segment 4", "a", "a", 1.0, unsigned="no offer is here")

    *_, first, second = _verdicts(Audit("m", "r", "s", "s", (wrong, unsigned)))

    assert first == f"segment 4: claimed a, found b; signed by {ADDRESSES[1]} (1.0 s)"
    assert second == "segment 4: as claimed, a; no offer is here (1.0 s)"
    assert not unsigned.agrees


def test_key_is_its_workers_alone_and_stays(tmp_path: Path) -> None:
    key = own_key(tmp_path / "0")

    assert own_key(tmp_path / "0") == key != own_key(tmp_path / "1")
    assert stat.S_IMODE(os.stat(tmp_path / "0" / "key").st_mode) == 0o600


def test_key_that_was_not_written_to_its_end_is_made_anew(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_AT_THE_FIRST_BYTE, str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGXFSZ

    key = own_key(tmp_path)

    assert own_key(tmp_path) == key


def test_run_does_not_go_on_with_other_keys(tmp_path: Path) -> None:
    keep_signers(tmp_path, ADDRESSES)
    keep_signers(tmp_path, ADDRESSES)

    with pytest.raises(RunError, match="keys are not those"):
        keep_signers(tmp_path, ADDRESSES[::-1])


def test_slot_that_changed_hands_is_vouched_for_by_whoever_signed(tmp_path: Path) -> None:
    other = b"\x03" * 32
    signers = ADDRESSES[0], (ADDRESSES[1], address_of(other))
    for key in (KEYS[1], other):
        kept = offer(key)
        found = voucher_of(MANIFEST, STATES, PART, shelf(kept).get, signers)
        assert found == Voucher(address_of(key))
    found = voucher_of(MANIFEST, STATES, PART, shelf(offer(KEYS[0])).get, signers)
    assert found is not None
    assert found.signer is None


def test_signers_can_come_to_a_run_but_not_go(tmp_path: Path) -> None:
    more = ADDRESSES[0], (ADDRESSES[1], address_of(b"\x03" * 32))
    keep_signers(tmp_path, ADDRESSES)
    keep_signers(tmp_path, more)

    with pytest.raises(RunError, match="keys are not those"):
        keep_signers(tmp_path, ADDRESSES)


def test_who_signed_is_summed_up_by_the_offers_alone(tmp_path: Path) -> None:
    other = b"\x03" * 32
    keep_signers(tmp_path, (*ADDRESSES[:1], (ADDRESSES[1], address_of(other), ADDRESSES[0])))
    # As text, round 1000000 comes before round 2.
    keep(tmp_path, offer(other, round=1_000_000))
    keep(tmp_path, offer(KEYS[1], round=2))

    sum_up_signers(tmp_path, MANIFEST)

    kept = read_signers((tmp_path / OFFERS / SIGNERS).read_bytes())
    assert kept == ((), (ADDRESSES[1], address_of(other)))
