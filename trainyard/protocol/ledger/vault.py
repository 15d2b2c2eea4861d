"""What the events of the vault and of the owner mean."""

from collections.abc import Mapping
from typing import Any

from trainyard.protocol.ledger.book import Book
from trainyard.protocol.ledger.events import Handler, struct_fields
from trainyard.protocol.market import Params, Record


def deposited(book: Book, account: str, amount: int) -> None:
    book.account(account).credit += amount
    book.owed += amount


def withdrawn(book: Book, account: str, to: str, amount: int) -> None:
    book.account(account).credit -= amount
    book.owed -= amount


def credited(book: Book, task_id: int, account: str, amount: int) -> None:
    # What lost the amount, a lock or a bond, is told by the event of the act itself.
    book.account(account).credit += amount


def recorded(book: Book, task_id: int, worker: str, entry: int) -> None:
    account = book.account(worker)
    match Record(entry):
        case Record.SETTLED:
            account.settled += 1
        case Record.FAILED:
            account.failed += 1
        case Record.AUDIT_RIGHT:
            account.audits_right += 1
        case Record.AUDIT_WRONG:
            account.audits_wrong += 1


def params_set(book: Book, params_id: int, params: Mapping[str, Any]) -> None:
    if params_id != len(book.params):
        raise ValueError(f"parameters {params_id} after {len(book.params)} earlier ones")
    book.params.append(Params(**struct_fields(params)))


def paused(book: Book, account: str) -> None:
    book.paused = True


def unpaused(book: Book, account: str) -> None:
    book.paused = False


def ownership_transfer_started(book: Book, previous_owner: str, new_owner: str) -> None:
    book.pending_owner = new_owner


def ownership_transferred(book: Book, previous_owner: str, new_owner: str) -> None:
    book.owner, book.pending_owner = new_owner, None


HANDLERS: dict[str, Handler] = {
    "Deposited": deposited,
    "Withdrawn": withdrawn,
    "Credited": credited,
    "Recorded": recorded,
    "ParamsSet": params_set,
    "Paused": paused,
    "Unpaused": unpaused,
    "OwnershipTransferStarted": ownership_transfer_started,
    "OwnershipTransferred": ownership_transferred,
}
