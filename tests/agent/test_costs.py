"""What a task is reckoned to cost, against what the contracts were measured to take."""

import json
from pathlib import Path

import pytest

import tests.quiet_web3  # noqa: F401
from tests.agent.books import terms
from trainyard.protocol.gas import AUDIT_GAS, OWN_GAS, SHARED_GAS, gas_of
from trainyard.protocol.market import Policy
from worker_agent.checkup import examine_clocks, examine_prices
from worker_agent.machine import cores_here, memory_bytes, memory_for_tasks
from worker_agent.policy import Policy as Wanted
from worker_agent.settings import SandboxSettings, limits_of
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


def test_cores_are_limited_to_less_than_there_are_or_not_at_all() -> None:
    here = cores_here()
    assert limits_of(SandboxSettings()).cores is None
    assert limits_of(SandboxSettings(cores=here + 1)).cores is None
    assert limits_of(SandboxSettings(cores=here / 2)).cores == here / 2


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Wanted(bond=1, min_audit_fee=3 * 242_000), []),
        (Wanted(bond=1, min_audit_fee=3 * 242_000 - 1), ["about 726000 wei now"]),
        # Who is never drawn loses nothing by it.
        (Wanted(), []),
    ],
)
def test_doctor_says_what_pays_less_than_it_costs(policy: Wanted, said: list[str]) -> None:
    found = list(examine_prices(policy, 3))
    assert len(found) == len(said)
    assert all(word in what and fix for word, (what, fix) in zip(said, found, strict=True))


@pytest.mark.parametrize(
    ("age_s", "ahead_s", "said"),
    [
        (5, 0, []),
        (5, 20, []),
        (700, 0, ["note: the newest block of node is 700 s old"]),
        (700, None, ["note: the newest block of node is 700 s old"]),
        # A clock that is ahead makes no node old.
        (700, 695, ["note: this machine's clock is 695 s ahead of node"]),
        (7_200, 7_190, ["this machine's clock is 7190 s ahead of node"]),
        (
            9_000,
            7_200,
            [
                "this machine's clock is 7200 s ahead of node",
                "note: the newest block of node is 1800",
            ],
        ),
        (-90, -100, ["note: this machine's clock is 100 s behind node"]),
        (-90, None, ["note: this machine's clock is 90 s behind node"]),
        (-4_000, None, ["this machine's clock is 4000 s behind node"]),
    ],
)
def test_doctor_tells_a_wrong_clock_from_a_node_that_stands_still(
    age_s: int, ahead_s: int | None, said: list[str]
) -> None:
    found = [
        f"{'' if one.needed else 'note: '}{one.what}"
        for one in examine_clocks("node", age_s, ahead_s)
    ]
    assert len(found) == len(said)
    assert all(told.startswith(word) for told, word in zip(found, said, strict=True))
