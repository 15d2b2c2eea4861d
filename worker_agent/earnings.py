"""What each task brought and took, as the chain tells it: local files add only the energy."""

from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trainyard.chain.cursor import Seen
from trainyard.chain.journal import Journal
from trainyard.chain.quantities import parse_number
from trainyard.chain.reading import times_of
from trainyard.chain.rpc import Rpc
from trainyard.chain.store import Store
from trainyard.protocol.ledger.book import Task
from worker_agent.looking import Look
from worker_agent.progress import LIVE, Shelf
from worker_agent.reporting import roles_of
from worker_agent.situation import ENDED, slots_of

_JOULES_A_KWH = 3_600_000.0
# Registering, bonds and withdrawals belong to no task.
BESIDE_TASKS = "beside tasks"


@dataclass(slots=True)
class Earning:
    """One task's, or what was done beside all tasks. Amounts in the market's smallest unit."""

    task: int | None
    roles: list[str]
    state: str
    # What came of it beyond what was put in, so far; less than nothing for a loss.
    earned: int = 0
    # Of stakes and bonds, what it holds still.
    held: int = 0
    gas: int = 0
    fees_wei: int = 0
    # An estimate, of this machine's processor alone; None where no file tells.
    energy_j: float | None = None
    at: str | None = None
    transactions: set[bytes] = field(default_factory=set)

    def net_wei(self, kwh_wei: int) -> int:
        return self.earned - self.fees_wei - self.energy_wei(kwh_wei)

    def energy_wei(self, kwh_wei: int) -> int:
        return int((self.energy_j or 0.0) / _JOULES_A_KWH * kwh_wei)

    def document(self, kwh_wei: int) -> dict[str, Any]:
        return {
            "task": self.task,
            "roles": self.roles,
            "state": self.state,
            "earned": self.earned,
            "held": self.held,
            "gas": self.gas,
            "fees_wei": self.fees_wei,
            "energy_j_estimate": self.energy_j,
            "energy_wei_estimate": self.energy_wei(kwh_wei),
            "net_wei": self.net_wei(kwh_wei),
            "at": self.at,
            "transactions": len(self.transactions),
        }


def earnings(look: Look) -> list[Earning]:
    """Of all tasks that we ever had a part in, and of what belongs to none."""
    book, me, events = look.reading.book, look.me, look.reading.events
    by_task: dict[int | None, list[Seen]] = defaultdict(list)
    for seen in events:
        by_task[seen.event.args.get("id")].append(seen)
    found = []
    for number, task in sorted(book.tasks.items()):
        if any(_concerns(seen, me) for seen in by_task[number]):
            found.append(_of_task(look, number, task, by_task[number]))
    # A deposit may ride along with what is done for a task, and is paid for once.
    counted = {one for earning in found for one in earning.transactions}
    mine = {seen.transaction for seen in by_task[None] if _concerns(seen, me)}
    found.append(Earning(None, [BESIDE_TASKS], "", transactions=mine - counted))
    _take_refused(look, found)
    _take_fees(look, found)
    _take_times(look, found, by_task)
    return found


def _of_task(look: Look, number: int, task: Task, events: Iterable[Seen]) -> Earning:
    me, stake, escrow = look.me, task.terms.stake, task.terms.escrow
    live = Shelf(look.home.record(number)).read(LIVE)
    one = Earning(number, roles_of(task, me), task.state.name.lower())
    one.energy_j = None if live is None else float(live["energy_j"])
    for seen in events:
        one.transactions.add(seen.transaction)
        args = seen.event.args
        match seen.event.name:
            case "TaskPosted" if args["requester"] == me:
                one.earned -= escrow
            case "SlotJoined" if args["worker"] == me:
                one.earned -= stake
            case "SegmentChallenged" if args["accuser"] == me:
                one.earned -= args["bond"]
            case "SeatClosed" if args["member"] == me:
                one.earned -= args["slashed"]
            case "Credited" if args["account"] == me:
                one.earned += args["amount"]
    one.held = sum(d.bond for d in task.disputes.values() if d.accuser == me)
    if task.state not in ENDED:
        one.held += stake * len(slots_of(task, me)) + escrow * (task.requester == me)
    # What is held is not lost yet.
    one.earned += one.held
    return one


def _take_refused(look: Look, found: list[Earning]) -> None:
    """Transactions without an event, since the market refused them: only the journal knows."""
    path, chain = look.home.chain_store, look.settings.chain
    if not path.exists() or not path.stat().st_size:
        return
    by_task = {earning.task: earning for earning in found}
    with closing(Store(path, chain_id=chain.chain_id, market=chain.market)) as store:
        for entry in Journal(store, look.me).entries():
            if entry.mined is not None and entry.why:
                number = entry.key.partition("/")[0]
                task = int(number) if number.isdecimal() else None
                by_task.get(task, by_task[None]).transactions.add(entry.mined)


def _concerns(seen: Seen, me: str) -> bool:
    return any(value == me for value in seen.event.args.values())


def _take_fees(look: Look, found: list[Earning]) -> None:
    """By receipts: whose transaction it was, and what it cost."""
    hashes = sorted({one for earning in found for one in earning.transactions})
    paid = look.endpoints.run(lambda rpc: _paid(rpc, hashes, look.me))
    for earning in found:
        earning.transactions &= paid.keys()
        for one in earning.transactions:
            gas, fee = paid[one]
            earning.gas += gas
            earning.fees_wei += fee


def _paid(rpc: Rpc, hashes: list[bytes], me: str) -> dict[bytes, tuple[int, int]]:
    """Gas and fee of those of the transactions that were ours."""
    found = {}
    for start in range(0, len(hashes), _MESSAGE):
        some = hashes[start : start + _MESSAGE]
        asked = [[f"0x{one.hex()}"] for one in some]
        for one, receipt in zip(some, rpc.batch("eth_getTransactionReceipt", asked), strict=True):
            try:
                if str(receipt["from"]).lower() == me.lower():
                    gas = parse_number(receipt["gasUsed"])
                    found[one] = gas, gas * parse_number(receipt["effectiveGasPrice"])
            except (TypeError, KeyError, ValueError) as error:
                raise rpc.error(f"sent no receipt of 0x{one.hex()}: {error}") from error
    return found


# Requests in one message: what providers commonly take.
_MESSAGE = 100


def _take_times(look: Look, found: list[Earning], by_task: dict[int | None, list[Seen]]) -> None:
    """When the last of it happened."""
    last = {one.task: by_task[one.task][-1].block.number for one in found if one.task}
    if not last:
        return
    times = times_of(look.endpoints, set(last.values()))
    for one in found:
        if one.task is not None:
            one.at = datetime.fromtimestamp(times[last[one.task]], UTC).isoformat()
