"""What the gas of task lives says: totals, ratios and goals. No chain, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

# iExec PoCo v6.2.0, measured in the same way.
POCO = {1: 1_505_257, 3: 2_267_965, 5: 3_022_953}
POCO_MARGINAL_WORKER = 379_000
# The same project's cheaper way, which verifies nothing.
POCO_BOOST = 505_000

REPLICATE_GOAL = 0.4
GROWTH_GOAL = 0.02

# Auditors of a task under Audit.
AUDITS = 2
# The tasks of a market that are compared.
EARLY, LATE = 10, 10_000


@dataclass(frozen=True, slots=True)
class Spent:
    """What the calls of one function took together."""

    calls: int
    gas: int


# By function, in the order of a task's life.
Life = dict[str, Spent]


def total(life: Life) -> int:
    return sum(spent.gas for spent in life.values())


def typical(lives: Sequence[Life]) -> Life:
    """The median per function: where a draw begins its search is chance, and costs a little."""
    return {
        name: Spent(spent.calls, median_low([life[name].gas for life in lives]))
        for name, spent in lives[0].items()
    }


@dataclass(frozen=True, slots=True)
class Growth:
    early: Life
    late: Life

    @property
    def ratio(self) -> float:
        return total(self.late) / total(self.early)


@dataclass(frozen=True, slots=True)
class Goal:
    claim: str
    figure: str
    met: bool


def figures(lives: dict[str, Life], growth: dict[str, Growth]) -> dict[str, float]:
    ratios = {n: total(lives[f"replicate_{n}"]) / poco for n, poco in POCO.items()}
    return {
        **{f"gas_replicate_ratio_{n}": round(ratio, 4) for n, ratio in ratios.items()},
        "gas_audit_1": total(lives["audit_1"]),
        "gas_audit_3": total(lives["audit_3"]),
        "gas_failed_cleanup": lives["absence_1"]["expire"].gas,
        "gas_growth_10_to_10000": round(worst_growth(growth), 5),
    }


def worst_growth(growth: dict[str, Growth]) -> float:
    """Of all policies, the ratio that is furthest from one."""
    return max((grown.ratio for grown in growth.values()), key=lambda ratio: abs(ratio - 1))


def goals(lives: dict[str, Life], growth: dict[str, Growth]) -> list[Goal]:
    ratios = {n: total(lives[f"replicate_{n}"]) / poco for n, poco in POCO.items()}
    audit, consensus = total(lives["audit_1"]), POCO[3]
    return [
        *(
            Goal(
                f"Replicate, {workers_text(n)}: at most {REPLICATE_GOAL} of PoCo",
                f"{ratio:.3f}",
                ratio <= REPLICATE_GOAL,
            )
            for n, ratio in ratios.items()
        ),
        Goal(
            f"Audit, {AUDITS} blind audits: less than PoCo's consensus of 3",
            f"{audit:,} of {consensus:,}",
            audit < consensus,
        ),
        *(
            Goal(
                f"{policy}: task {LATE:,} costs what task {EARLY} did, ±{GROWTH_GOAL:.0%}",
                f"{grown.ratio - 1:+.3%}",
                abs(grown.ratio - 1) <= GROWTH_GOAL,
            )
            for policy, grown in growth.items()
        ),
    ]


def workers_text(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"
