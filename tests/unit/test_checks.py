"""The scripts that guard the contracts."""

from pathlib import Path

import pytest

from scripts.check_coverage import is_ours, read_lcov, total
from scripts.check_size import RUNTIME_LIMIT_BYTES, oversized
from scripts.check_slither import Place, place_of, read_triage
from scripts.compile_contracts import CompiledContract
from scripts.generated_files import stale_files, write_files
from scripts.run_invariants import DEPTH, runs_for
from scripts.snapshot_contracts import render_abi

LCOV = """TN:
SF:contracts/A.sol
DA:8,2
LF:10
LH:9
BRF:4
BRH:4
end_of_record
SF:contracts/market/B.sol
LF:90
LH:90
BRF:0
BRH:0
end_of_record
"""


def contract(runtime_bytes: int) -> CompiledContract:
    code = bytes(runtime_bytes)
    return CompiledContract("A", "contracts/A.sol", [], code, code, {})


def test_coverage_is_summed_over_files() -> None:
    whole = total(read_lcov(LCOV.splitlines()))

    assert (whole.lines_hit, whole.lines) == (99, 100)
    assert whole.branch_share == 1.0


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("contracts/market/Vault.sol", True),
        ("contracts/mocks/OddToken.sol", False),
        ("node_modules/@openzeppelin/contracts/access/Ownable.sol", False),
        ("tests/forge/Market.t.sol", False),
    ],
)
def test_coverage_counts_our_contracts_only(name: str, ours: bool) -> None:
    assert is_ours(name) is ours


def test_size_limit_is_inclusive() -> None:
    assert oversized([contract(RUNTIME_LIMIT_BYTES)]) == []
    assert oversized([contract(RUNTIME_LIMIT_BYTES + 1)]) == ["A"]


@pytest.mark.parametrize("calls", [1, 999_999, 1_000_000])
@pytest.mark.parametrize("invariants", [1, 7])
def test_invariant_runs_reach_the_wanted_calls(calls: int, invariants: int) -> None:
    assert runs_for(calls, invariants) * invariants * DEPTH >= calls


def test_finding_is_placed_by_function() -> None:
    finding = {
        "check": "reentrancy-eth",
        "elements": [
            {
                "name": "withdraw",
                "type_specific_fields": {
                    "signature": "withdraw(uint256)",
                    "parent": {"name": "Vault"},
                },
            }
        ],
    }

    assert place_of(finding) == Place("reentrancy-eth", "Vault.withdraw(uint256)")


def test_triage_without_reason_is_refused(tmp_path: Path) -> None:
    triage = tmp_path / "triage.toml"
    triage.write_text('[[accepted]]\ncheck = "x"\nwhere = "y"\nreason = " "\n')

    with pytest.raises(SystemExit, match="needs check, where and reason"):
        read_triage(triage)


def test_stale_files_are_changed_missing_or_left_over(tmp_path: Path) -> None:
    write_files(tmp_path, {"same": "1", "changed": "1", "sub/left": "1"})

    assert stale_files(tmp_path, {"same": "1", "changed": "2", "new": "1"}) == [
        "changed",
        "new",
        "sub/left",
    ]


def test_abi_snapshot_shows_types_and_selector() -> None:
    abi = [
        {
            "type": "function",
            "name": "transfer",
            "stateMutability": "nonpayable",
            "inputs": [{"name": "to", "type": "address"}, {"name": "amount", "type": "uint256"}],
            "outputs": [{"name": "", "type": "bool"}],
        }
    ]

    assert render_abi(abi) == (
        "function transfer(address to, uint256 amount) nonpayable returns (bool) 0xa9059cbb\n"
    )
