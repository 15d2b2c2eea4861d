"""What the events of the register of workers mean."""

from trainyard.protocol.ledger.book import ZERO_WORD, Book, Worker
from trainyard.protocol.ledger.events import Handler


def worker_registered(book: Book, worker: str, env_class: bytes, profile: bytes) -> None:
    book.workers[worker] = Worker(env_class, profile)


def profile_changed(book: Book, worker: str, profile: bytes) -> None:
    book.workers[worker].profile = profile


def bond_added(book: Book, worker: str, amount: int, pool_index: int, since: int) -> None:
    entry = book.workers[worker]
    book.account(worker).credit -= amount
    entry.bond += amount
    entry.since = since
    if entry.pool_index == 0:
        entry.pool_index = pool_index
        entry.unbond_for = book.params[-1].unbond_for
        book.pool(entry.env_class).append(worker)


def duty_set(
    book: Book, worker: str, min_fee: int, min_audit_for: int, min_answer_for: int, since: int
) -> None:
    entry = book.workers[worker]
    entry.min_fee, entry.since = min_fee, since
    entry.min_audit_for, entry.min_answer_for = min_audit_for, min_answer_for


def worker_retired(book: Book, worker: str, unbonds_at: int) -> None:
    entry = book.workers[worker]
    if entry.pool_index:
        # The last member takes the place of the one that leaves.
        pool = book.pool(entry.env_class)
        last = pool.pop()
        if last != worker:
            pool[entry.pool_index - 1] = last
            book.workers[last].pool_index = entry.pool_index
    entry.pool_index, entry.env_class, entry.unbonds_at = 0, ZERO_WORD, unbonds_at


def bond_returned(book: Book, worker: str, amount: int) -> None:
    # The amount itself comes with an event of its own.
    del book.workers[worker]


HANDLERS: dict[str, Handler] = {
    "WorkerRegistered": worker_registered,
    "ProfileChanged": profile_changed,
    "BondAdded": bond_added,
    "DutySet": duty_set,
    "WorkerRetired": worker_retired,
    "BondReturned": bond_returned,
}
