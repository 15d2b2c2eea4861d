"""How the demo tells its story: steps, balances, verdicts and gas, on a terminal or in a file."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from scripts.demo_cast import ETHER, Cast, Person
from trainyard.protocol.market import BURN_ADDRESS, TaskState

_WIDTH = 92


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was carried out."""

    function: str
    gas: int
    timestamp: int


def eth(wei: int) -> str:
    """An amount in a sentence."""
    return f"{(Decimal(wei) / ETHER).normalize():f} ETH"


def ether(wei: int, *, signed: bool = False) -> str:
    """An amount in a column."""
    amount = Decimal(wei) / ETHER
    return f"{amount:+,.4f}" if signed else f"{amount:,.4f}"


def short(digest: bytes) -> str:
    return f"{digest.hex()[:10]}…"


def lasting(seconds: int) -> str:
    # Blocks take a second or two of it.
    seconds = round(seconds / 60) * 60
    for unit, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= unit:
            count = round(seconds / unit)
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{seconds} seconds"


class Story:
    """Tells what happens in a market. Every step is a transaction that was just carried out."""

    def __init__(self, market: Any, cast: Cast) -> None:
        width = None if sys.stdout.isatty() else _WIDTH
        self.console = Console(width=width, highlight=False, emoji=False)
        if self.console.width > _WIDTH:
            self.console.width = _WIDTH
        self._market, self._cast = market, cast
        self._gas: dict[str, list[int]] = {}
        self._steps = 0
        self._before: dict[str, int] = {}

    def act(self, title: str, text: str) -> None:
        self._steps = 0
        self._gas.clear()
        self._before = self._credits()
        self.console.print()
        self.console.rule(f"[bold]{title}", style="cyan")
        self.say(text)

    def say(self, text: str) -> None:
        self.console.print()
        self.console.print(text)

    def step(
        self,
        who: Person,
        does: str,
        call: Call,
        *,
        task: int | None = None,
        note: str = "",
        then: str = "",
    ) -> None:
        """Tell a transaction: who did what, the state after it, and who moves next by when."""
        self._steps += 1
        self._gas.setdefault(call.function, []).append(call.gas)
        line = Table.grid(expand=True, padding=(0, 1))
        line.add_column(width=3, justify="right", style="dim")
        line.add_column(ratio=1)
        line.add_column(justify="right", style="dim", no_wrap=True)
        line.add_row(
            f"{self._steps}.",
            Text.assemble((who.name, "bold"), f" {does}"),
            f"{call.function} {call.gas:>9,} gas",
        )
        self.console.print()
        self.console.print(line)
        if note:
            self._indented(note)
        if task is not None:
            state = TaskState(self._market.task(task)["state"])
            ended = state in (TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED)
            colour = "green" if state is TaskState.SETTLED else "red" if ended else "cyan"
            following = f" Next: {then}" if then else ""
            self._indented(f"[{colour}]{state.name.capitalize()}.[/]{following}")

    def _indented(self, text: str) -> None:
        self.console.print(Padding(text, (0, 0, 0, 4), expand=False))

    # Tables

    def verdicts(self, title: str, rows: Iterable[tuple[Person, int, bytes, bytes]]) -> None:
        """Rows of who recomputed which segment, what it found, and what the workers claimed."""
        table = Table(title=title, title_justify="left")
        for heading in ("who", "segment", "recomputed", "workers claimed", "verdict"):
            table.add_column(heading, justify="right" if heading == "segment" else "left")
        for who, segment, found, claimed in rows:
            verdict = "[green]equal[/]" if found == claimed else "[red]different[/]"
            table.add_row(who.name, str(segment), short(found), short(claimed), verdict)
        self._show(table)

    def balances(self, roles: dict[str, str]) -> None:
        """Credit of everyone that the act concerned, before it and now; `roles` by name."""
        now = self._credits()
        table = Table("party", "role", title="Credit in the market, in ETH", title_justify="left")
        for heading in ("before", "after", "change"):
            table.add_column(heading, justify="right")
        for name, before in self._before.items():
            change = now[name] - before
            if change or name in roles:
                colour = "green" if change > 0 else "red" if change < 0 else "dim"
                shown = f"[{colour}]{ether(change, signed=True)}[/]"
                table.add_row(name, roles.get(name, ""), ether(before), ether(now[name]), shown)
        changes = sum(now.values()) - sum(self._before.values())
        table.add_section()
        table.add_row("all together", "", "", "", ether(changes, signed=True))
        self._show(table)

    def change_of(self, name: str) -> int:
        """By how much the credit of somebody changed since the act began."""
        return self._credits()[name] - self._before[name]

    def split(self, title: str, rows: Sequence[tuple[str, str, int]]) -> None:
        """Rows of who got how much of a sum, and why."""
        table = Table("to", "why", title=title, title_justify="left")
        table.add_column("ETH", justify="right")
        for to, why, amount in rows:
            table.add_row(to, why, ether(amount))
        table.add_section()
        table.add_row("together", "", ether(sum(amount for _, _, amount in rows)))
        self._show(table)

    def gas(self) -> None:
        table = Table("function", title="Gas of the whole task", title_justify="left")
        table.add_column("calls", justify="right")
        table.add_column("gas", justify="right")
        for name, spent in self._gas.items():
            table.add_row(name, str(len(spent)), f"{sum(spent):,}")
        calls = [gas for spent in self._gas.values() for gas in spent]
        table.add_section()
        table.add_row("together", str(len(calls)), f"{sum(calls):,}")
        self._show(table)

    def _show(self, table: Table) -> None:
        self.console.print()
        self.console.print(Padding(table, (0, 0, 0, 4), expand=False))

    def _credits(self) -> dict[str, int]:
        credit = {
            person.name: int(self._market.account(person.address)["credit"])
            for person in self._cast.everyone
        }
        return {**credit, "burned": int(self._market.account(BURN_ADDRESS)["credit"])}
