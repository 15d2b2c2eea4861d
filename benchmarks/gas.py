"""Gas of whole task lives, beside iExec PoCo: `make bench-gas`.

    python -m benchmarks.gas [--quick]     the figures; last, one line of JSON
    python -m benchmarks.gas --snapshot    write benchmarks/gas-snapshot.json
    python -m benchmarks.gas --check       compare with benchmarks/gas-snapshot.json

A life is every call from `post` to the end of the task. Deposits and registrations are not part of
it. Steady state: all accounts have been used before and another task is open.
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial

from rich.console import Console
from rich.table import Table

from benchmarks.anvil import Anvil, running_anvil
from benchmarks.gas_figures import (
    AUDITS,
    POCO,
    POCO_BOOST,
    POCO_MARGINAL_WORKER,
    Goal,
    Growth,
    Life,
    figures,
    goals,
    total,
    typical,
    workers_text,
)
from benchmarks.gas_snapshot import check_snapshot, write_snapshot
from benchmarks.growth import measure_growth
from benchmarks.lives import ACCOUNTS, SEGMENTS, LiveMarket
from benchmarks.reporting import code_of

# Draws are chance: the median of so many lives. Without a draw, all are the same.
_DRAWN = ("audit", "score", "fraud")
_REPEATS, _QUICK_REPEATS = 9, 5
# A table that is piped into a file is as wide as it needs to be.
_FILE_WIDTH = 100


def life_scripts(market: LiveMarket) -> dict[str, Callable[[], None]]:
    workers = (1, 3, 5)
    return {
        **{f"replicate_{n}": partial(market.replicate, n) for n in workers},
        **{f"audit_{n}": partial(market.audit, n) for n in workers},
        "score_1": partial(market.score, 1),
        "absence_1": market.absence,
        "fraud_1": partial(market.fraud, 1),
    }


def measure_lives(anvil: Anvil, *, repeats: int = _REPEATS) -> dict[str, Life]:
    market = LiveMarket(anvil)
    scripts = life_scripts(market)
    for play in scripts.values():
        play()
    return {
        name: typical([market.life(play) for _ in range(repeats)]) for name, play in scripts.items()
    }


def lives_table(lives: dict[str, Life]) -> Table:
    shown = [name for name in lives if name.startswith(("replicate", "audit"))]
    table = Table(title="Gas of a whole task life, by function", caption=_caption())
    table.add_column("")
    for name in shown:
        policy, workers = name.split("_")
        table.add_column(f"{policy.capitalize()}\n{workers_text(int(workers))}", justify="right")
    for function in dict.fromkeys(function for name in shown for function in lives[name]):
        spent = [lives[name].get(function) for name in shown]
        table.add_row(function, *(f"{each.gas:,}" if each else "" for each in spent))
    totals = {name: total(lives[name]) for name in shown}
    poco = {name: POCO[int(name.split("_")[1])] for name in shown}
    table.add_section()
    table.add_row("whole life", *(f"{gas:,}" for gas in totals.values()), style="bold")
    table.add_row("PoCo", *(f"{gas:,}" for gas in poco.values()))
    table.add_row("of PoCo", *(f"{totals[name] / poco[name]:.3f}" for name in shown), style="bold")
    return table


def endings_table(lives: dict[str, Life]) -> Table:
    table = Table(title="When something goes wrong, and beside it", title_justify="left")
    table.add_column("")
    table.add_column("gas", justify="right")
    fraud = lives["fraud_1"]
    before = set(lives["audit_1"])
    dispute = sum(spent.gas for name, spent in fraud.items() if name not in before)
    marginal = (total(lives["replicate_5"]) - total(lives["replicate_1"])) // 4
    rows = {
        "a failed task's cleanup: `expire` after one worker never answered": lives["absence_1"][
            "expire"
        ].gas,
        "that task's whole life: post, join, expire": total(lives["absence_1"]),
        "a challenge and its referees, from `challenge` to `resolve`": dispute,
        "Score with three evaluators, one worker, whole life": total(lives["score_1"]),
        "one more worker under Replicate": marginal,
        "one more worker under PoCo": POCO_MARGINAL_WORKER,
        "PoCo Boost, which verifies nothing": POCO_BOOST,
    }
    for what, gas in rows.items():
        table.add_row(what, f"{gas:,}")
    return table


def goals_table(reached: list[Goal]) -> Table:
    table = Table(title="Goals")
    table.add_column("")
    table.add_column("measured", justify="right")
    table.add_column("")
    for goal in reached:
        verdict = "[green]pass[/]" if goal.met else "[bold red]FAIL[/]"
        table.add_row(goal.claim, goal.figure, verdict)
    return table


def _caption() -> str:
    return (
        f"Steady state, deposits and registrations excluded. Audit: a trace of {SEGMENTS}\n"
        f"segments, {AUDITS} drawn auditors. PoCo: iExec PoCo v6.2.0, measured in the same way."
    )


def main() -> None:
    options = _options()
    console = Console(width=None if sys.stdout.isatty() else _FILE_WIDTH)
    with running_anvil(accounts=ACCOUNTS) as anvil:
        lives = measure_lives(anvil, repeats=_QUICK_REPEATS if options.quick else _REPEATS)
        growth = {} if options.snapshot or options.check else measure_growth(anvil)
    if options.snapshot:
        write_snapshot(lives)
    elif options.check:
        check_snapshot(lives, console)
    else:
        sys.exit(report(lives, growth, console))


def report(lives: dict[str, Life], growth: dict[str, Growth], console: Console) -> int:
    """Print all of it; what to exit with."""
    reached = goals(lives, growth)
    for table in (lives_table(lives), endings_table(lives), goals_table(reached)):
        console.print(table)
        console.print()
    print(json.dumps(figures(lives, growth)))
    return code_of(goal.claim for goal in reached if not goal.met)


def _options() -> Namespace:
    parser = ArgumentParser(description=(__doc__ or "").split(":")[0])
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--quick", action="store_true", help="fewer repeats of what is drawn")
    choice.add_argument(
        "--snapshot", action="store_true", help="write benchmarks/gas-snapshot.json"
    )
    choice.add_argument(
        "--check", action="store_true", help="compare with benchmarks/gas-snapshot.json"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
