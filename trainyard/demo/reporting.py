"""What came of the demo: what was checked, who has what, and what that means."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trainyard.demo.cast import Cast, cheater
from trainyard.demo.stage import live_of
from trainyard.demo.watching import Requester
from trainyard.protocol.ledger.book import Seat, Task
from trainyard.protocol.market import BURN_ADDRESS, DisputeState, TaskState
from trainyard.protocol.results import NONSENSE
from trainyard.protocol.telling import Name, amount, counted
from trainyard.sdk.receipts import Receipt

_TASK = 1


@dataclass(frozen=True, slots=True)
class Purses:
    """What everybody has, and what was burned, all at one block."""

    block: int
    wealth: dict[str, int]
    burned: int
    # What each has used and paid for its transactions so far, by name.
    used: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, cast: Cast, requester: Requester) -> "Purses":
        for _ in requester.look():
            pass
        block = requester.block
        burned = requester.book.accounts.get(BURN_ADDRESS)
        used = requester.gas(requester.sent(0, block))
        return cls(
            block,
            {name: requester.wealth(address, block) for name, address in cast.addresses.items()},
            0 if burned is None else burned.credit,
            {name: used.get(one.lower(), (0, 0)) for name, one in cast.addresses.items()},
        )

    def change(self, before: "Purses", name: str) -> int:
        """What the market gave or took; fees for gas are not the market's."""
        _, fees = self.spent(before, name)
        return self.wealth[name] - before.wealth[name] + fees

    def spent(self, before: "Purses", name: str) -> tuple[int, int]:
        """The gas used since, and what it cost."""
        (gas, cost), (gas_before, cost_before) = self.used[name], before.used[name]
        return gas - gas_before, cost - cost_before


def report(
    console: Console,
    task: Task,
    cast: Cast,
    requester: Requester,
    before: Purses,
    after: Purses,
) -> None:
    console.print()
    for name in cast.trainers:
        tested = live_of(cast.agents[name].home, _TASK).get("tested")
        if tested and task.state is TaskState.SETTLED:
            console.print(f"[bold]accuracy on the test images: {tested['accuracy']:.4f}[/bold]")
    console.print(_verdicts(task, cast, _revealed(requester)))
    console.print(_money(cast, before, after))


def receipt_lines(receipt: Receipt, path: Path, name: Name) -> list[str]:
    """Where it is, who signed it, and what it states in a few words."""
    signer = receipt.signer
    by = "nobody" if signer is None else f"{name(signer)} ({signer})"
    as_claimed = sum(one.answer == one.opened for one in receipt.audits)
    paid = ", ".join(f"{name(who)} {amount(int(wei))}" for who, wei in receipt.credited_wei.items())
    result = "none" if receipt.result is None else f"{receipt.result[:14]}…"
    return [
        f"The receipt is in {path}, signed by {by}. It states:",
        f"  task {receipt.task} of {receipt.market} on chain {receipt.chain_id}: {receipt.outcome}",
        f"  manifest {receipt.manifest[:14]}…, result {result}, {receipt.segments} segments",
        f"  {counted(len(receipt.audits), 'audit')}, {as_claimed} as claimed; "
        f"{counted(len(receipt.disputes), 'dispute')}; "
        f"{counted(len(receipt.transactions), 'transaction')}",
        f"  credited, stakes included: {paid}",
    ]


def conclude(task: Task, cast: Cast, before: Purses, after: Purses, cheat: str | None) -> str:
    """In a sentence or two."""
    if cheat is None:
        return "[bold green]The work was done, checked and paid for.[/bold green]"
    who = cheater(cheat)
    lost = amount(-after.change(before, who))
    found = [
        cast.name(dispute.accuser)
        for dispute in task.disputes.values()
        if dispute.state is DisputeState.UPHELD and dispute.accuser is not None
    ]
    if found:
        how = f"{found[0]} found it out, and three referees came to the same"
    elif task.state is TaskState.FAILED:
        how = "whoever does not show what it claims is treated as if caught"
    else:
        how = "what was copied names its author, and could not be revealed"
    paid = (
        "The honest workers were paid all the same."
        if task.state is TaskState.SETTLED
        else f"{cast.name(task.requester)} has the money for the training back."
    )
    return f"[bold green]{who} cheated and lost {lost}: {how}. {paid}[/bold green]"


def _revealed(requester: Requester) -> set[bytes]:
    """All answers that were shown: of who did not, only a commitment is known."""
    named = ("AuditRevealed", "RefereeRevealed")
    return {one.event.args["answer"] for one in requester.seen if one.event.name in named}


def _verdicts(task: Task, cast: Cast, revealed: set[bytes]) -> Table:
    table = Table(title="What was checked", title_justify="left")
    for column in ("segment", "by", "as", "found", "claimed", "verdict"):
        table.add_column(column)
    # Auditors first, then the referees of what they disputed.
    panels = sorted(task.panels.items(), key=lambda one: (one[0][1], one[0][0]))
    for (_, round_), panel in panels:
        for seat in panel.seats:
            claimed = seat.opened
            if round_:
                claimed = task.disputes[seat.segment].claimed
            table.add_row(
                str(seat.segment),
                cast.name(seat.member),
                "referee" if round_ else "auditor",
                _found(seat, revealed),
                f"{claimed.hex()[:12]}…" if any(claimed) else "nothing",
                _verdict(seat, claimed, revealed),
            )
    return table


def _found(seat: Seat, revealed: set[bytes]) -> str:
    if not any(seat.answer):
        return "nothing"
    if seat.answer == NONSENSE:
        return "no state"
    return f"{seat.answer.hex()[:12]}…" if seat.answer in revealed else "sealed"


def _verdict(seat: Seat, claimed: bytes, revealed: set[bytes]) -> str:
    if not any(seat.answer):
        return "no answer"
    if not any(claimed):
        return "[red]never shown by the worker"
    if seat.answer not in revealed:
        return "[red]never revealed"
    return "as claimed" if seat.answer == claimed else "[red]NOT as claimed"


def _money(cast: Cast, before: Purses, after: Purses) -> Table:
    title = "Who has what, in ETH; fees for gas are not counted as change"
    table = Table(title=title, title_justify="left")
    for column in ("", "before", "after", "change", "gas", "fees"):
        table.add_column(column, justify="right" if column else "left")
    for name in cast.addresses:
        gas, cost = after.spent(before, name)
        cells = (before.wealth[name], after.wealth[name], after.change(before, name))
        table.add_row(name, *map(_bare, cells), f"{gas:,}", _bare(cost))
    table.add_row("burned", "", "", _bare(after.burned - before.burned), "", "")
    return table


def _bare(wei: int) -> str:
    return amount(wei).removesuffix(" ETH")
