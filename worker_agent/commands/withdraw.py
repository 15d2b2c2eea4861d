"""`trainyard worker withdraw`: earnings from the market to an address."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.failing import WrongUseError, telling_failures
from trainyard.cli.output import Output
from worker_agent.commands.options import (
    HomeOption,
    Json,
    NewJournal,
    PasswordFile,
    Target,
    Timeout,
    home_at,
)

if TYPE_CHECKING:
    from worker_agent.settings import Home
    from worker_agent.withdrawing import Withdrawal

_POLL_S = 0.2


def withdraw(
    home: HomeOption = None,
    to: Target = None,
    amount: Annotated[
        int | None, typer.Option(min=1, help="How much, in wei; else all of the credit.")
    ] = None,
    timeout: Timeout = 120.0,
    password_file: PasswordFile = None,
    new_journal: NewJournal = False,
    as_json: Json = False,
) -> None:
    """Take the agent's credit out of the market. What stakes and bonds hold stays there.

    Run again after it was cut off, it finishes what was under way instead of sending more. What
    was mined by then is not under way: with --amount, look at the credit before.
    """
    with telling_failures(as_json):
        from trainyard.chain.keystore import find_password, open_keystore
        from worker_agent.locking import held_key
        from worker_agent.settings import read_settings
        from worker_agent.withdrawing import withdraw_credit

        place = home_at(home)
        settings = read_settings(place)
        target = address_of(to or settings.payout)
        asked = _ask_the_agent(place, target, amount, timeout)
        if asked is not None:
            Output(as_json).result(asked, [_line(asked)])
            return
        account = open_keystore(place.keystore, find_password(password_file))
        with held_key(account.address, place, new_journal=new_journal):
            done = withdraw_credit(
                place, settings, account, to=target, amount=amount, timeout_s=timeout
            )
        document = _document(done, account.address, target)
        Output(as_json).result(document, [_line(document)])


def _ask_the_agent(
    home: "Home", target: str, amount: int | None, timeout_s: float
) -> dict[str, Any] | None:
    """What a running agent did, since it alone sends for its account; None if none runs."""
    from trainyard.chain.keystore import address_in
    from worker_agent.asking import ask
    from worker_agent.locking import holder_of
    from worker_agent.withdrawing import WithdrawalError

    address = address_in(home.keystore)
    holder = holder_of(address, home)
    if holder is None:
        return None
    if holder.home != str(home.folder):
        raise WrongUseError(
            f"{holder} sends for {address} alone: say "
            + holder.command("trainyard worker withdraw")
        )
    sent = ask(home, "withdraw", to=target, amount=amount)
    found, deadline = sent, time.monotonic() + timeout_s
    while found["state"] == "pending" and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        found = ask(home, "transaction", key=sent["key"])
    if found["why"] and found["state"] != "pending":
        raise WithdrawalError(f"the withdrawal failed: {found['why']}")
    return {
        "from": address,
        "to": target if sent["amount"] is not None else None,
        "amount": sent["amount"],
        "transaction": found["transaction"],
        "block": found["block"],
    }


def address_of(given: str | None) -> str:
    from eth_utils.address import is_checksum_address, to_checksum_address

    if given is None:
        raise WrongUseError("no address to withdraw to: say --to, or set payout in config.toml")
    try:
        address = to_checksum_address(given)
    except ValueError:
        raise WrongUseError(f"{given!r} is no address: 0x and 40 hexadecimal digits are") from None
    # Mixed case is a checksum: a typo in it would send money to nobody.
    if given.lower() != given and not is_checksum_address(given):
        raise WrongUseError(f"{given} has a wrong checksum, is it {address}?")
    return str(address)


def _document(done: "Withdrawal", sender: str, target: str) -> dict[str, Any]:
    entry = done.entry
    return {
        "from": sender,
        # Of one that was begun before, neither is what was asked for now.
        "to": target if done.amount is not None else None,
        "amount": done.amount,
        "transaction": f"0x{(entry.mined or entry.newest.hash).hex()}",
        "block": entry.mined_in.number if entry.mined_in else None,
    }


def _line(document: dict[str, Any]) -> str:
    what = "an earlier withdrawal, and nothing new"
    if document["amount"] is not None:
        what = f"{document['amount']} to {document['to']}"
    block = document["block"]
    where = "sent, in no block yet: run it again" if block is None else f"in block {block}"
    return f"{what}: transaction {document['transaction']}, {where}"
