"""What a task is reckoned to cost, against what the contracts were measured to take."""

import json
from pathlib import Path

import pytest

import tests.quiet_web3  # noqa: F401
from tests.agent.books import terms
from trainyard.protocol.gas import AUDIT_GAS, OWN_GAS, SHARED_GAS, gas_of
from trainyard.protocol.market import Policy
from worker_agent.checkup import examine_prices
from worker_agent.machine import memory_bytes, memory_for_tasks
from worker_agent.policy import Policy as Wanted
from worker_agent.speed import estimate_joules

MEASURED = json.loads(Path("benchmarks/gas-snapshot.json").read_text())
ROWS = {
    Policy.AUDIT: {**MEASURED["audit_1"]},
    Policy.REPLICATE: {**MEASURED["replicate_1"]},
    Policy.SCORE: {**MEASURED["score_1"]},
    Policy.CONTEST: {**MEASURED["replicate_1"], **MEASURED["score_1"]},
}


@pytest.mark.parametrize("policy", list(Policy))
def test_gas_is_what_was_measured(policy: Policy) -> None:
    reckoned = OWN_GAS[policy] | SHARED_GAS[policy]
    measured = {call: ROWS[policy][call] for call in reckoned}
    assert reckoned == pytest.approx(measured, rel=0.02)


def test_gas_of_an_audit_is_what_was_measured() -> None:
    measured = {call: MEASURED["audit_1"][call] for call in AUDIT_GAS}
    assert pytest.approx(measured, rel=0.02) == AUDIT_GAS


def test_what_one_does_for_all_is_shared() -> None:
    def gas(slots: int) -> int:
        return gas_of(terms(slots=slots))

    own, shared = sum(OWN_GAS[Policy.AUDIT].values()), sum(SHARED_GAS[Policy.AUDIT].values())
    assert (gas(1), gas(2)) == (own + shared, own + -(-shared // 2))


def test_energy_is_of_all_threads_and_all_the_time() -> None:
    once = estimate_joules(1.0, 1)
    assert once > 0
    assert estimate_joules(2.0, 3) == pytest.approx(6 * once)


def test_memory_for_tasks_is_a_part_of_what_is_here(tmp_path: Path) -> None:
    here = memory_bytes()
    assert memory_for_tasks() == max(here * 3 // 4 >> 20 << 20, 1 << 30)
    limit, no_limit = tmp_path / "limit", tmp_path / "max"
    limit.write_text(f"{here // 2}\n")
    no_limit.write_text("max\n")
    assert memory_bytes((limit, no_limit, tmp_path / "none")) == here // 2


@pytest.mark.parametrize(
    ("policy", "is_token", "said"),
    [
        (Wanted(bond=1, min_audit_fee=3 * 242_000), False, []),
        (Wanted(bond=1, min_audit_fee=3 * 242_000 - 1), False, ["about 726000 wei now"]),
        # Who is never drawn loses nothing by it.
        (Wanted(), False, []),
        (Wanted(bond=1), True, ["cannot be compared with gas"]),
        (Wanted(bond=1, at_a_loss=True), True, []),
    ],
)
def test_doctor_says_what_pays_less_than_it_costs(
    policy: Wanted, is_token: bool, said: list[str]
) -> None:
    found = list(examine_prices(policy, 3, is_token=is_token))
    assert len(found) == len(said)
    assert all(word in what and fix for word, (what, fix) in zip(said, found, strict=True))
