"""`trainyard worker earnings`: what each task brought, and what it took."""

import csv
import sys
from typing import Annotated, Any

import typer

from trainyard.cli.failing import WrongUseError, telling_failures
from trainyard.cli.output import Output
from worker_agent.commands.options import HomeOption, Json, home_at

_COLUMNS = (
    "task",
    "at",
    "state",
    "roles",
    "earned",
    "held",
    "gas",
    "fees_wei",
    "energy_j_estimate",
    "energy_wei_estimate",
    "net_wei",
)


def earnings(
    home: HomeOption = None,
    kwh_wei: Annotated[
        int, typer.Option(min=0, help="What a kilowatt-hour costs, in wei; else energy is free.")
    ] = 0,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print a table for other programs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what every task earned, its fees, its energy (an estimate), and what is left of it.

    All of it is read from the chain's events and receipts, but for the energy, and for the fees of
    transactions that the market refused, which only this machine's files know.
    """
    with telling_failures(as_json):
        from worker_agent.earnings import earnings as earned
        from worker_agent.looking import look
        from worker_agent.settings import read_settings

        if as_csv and as_json:
            raise WrongUseError("--csv and --json are two ways to print it: say one")
        place = home_at(home)
        found = earned(look(place, read_settings(place)))
        rows = [one.document(kwh_wei) for one in found]
        if as_csv:
            _print_csv(rows)
            return
        total = {
            name: sum(row[name] or 0 for row in rows)
            for name in ("earned", "held", "gas", "fees_wei", "energy_j_estimate", "net_wei")
        }
        Output(as_json).result({"rows": rows, "total": total}, _lines(rows, total))


def _print_csv(rows: list[dict[str, Any]]) -> None:
    out = csv.DictWriter(sys.stdout, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    out.writeheader()
    for row in rows:
        out.writerow(row | {"roles": "; ".join(row["roles"])})
    sys.stdout.flush()


def _lines(rows: list[dict[str, Any]], total: dict[str, Any]) -> list[str]:
    return [
        *(line for row in rows for line in _row(row)),
        _sums("total", total),
        "energy is an estimate of the processor's part, and unknown where no file of the task is",
    ]


def _row(row: dict[str, Any]) -> list[str]:
    name = "beside tasks" if row["task"] is None else f"task {row['task']}"
    about = "" if row["task"] is None else f"{row['state']}, {', '.join(row['roles'])}, {row['at']}"
    return [_sums(name, row)] + ([f"{'':<13} {about}"] if about else [])


def _sums(name: str, row: dict[str, Any]) -> str:
    from trainyard.protocol.telling import amount

    energy = row["energy_j_estimate"]
    told = "?" if energy is None else f"~{energy / 1000:.1f} kJ"
    return (
        f"{name:<13} earned {amount(row['earned'])}, held {amount(row['held'])}, fees "
        f"{amount(row['fees_wei'])} ({row['gas']:,} gas), energy {told}, net "
        f"{amount(row['net_wei'])}"
    )
