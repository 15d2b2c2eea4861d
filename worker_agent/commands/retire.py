"""`trainyard worker retire`: the bond back from the market."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

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
from worker_agent.commands.withdraw import address_of

if TYPE_CHECKING:
    from worker_agent.retiring import Retired


def retire(
    home: HomeOption = None,
    to: Target = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave bond and credit in the market, as credit.")
    ] = False,
    timeout: Timeout = 120.0,
    password_file: PasswordFile = None,
    new_journal: NewJournal = False,
    as_json: Json = False,
) -> None:
    """Take the worker out of the register, and its bond back once the market lets go of it.

    That takes as long as the market says. Run again, it goes on; an agent that runs after that
    registers anew.
    """
    with telling_failures(as_json):
        from trainyard.chain.keystore import address_in, find_password, open_keystore
        from worker_agent.locking import held_key, holder_of
        from worker_agent.retiring import retire_worker
        from worker_agent.settings import read_settings

        place = home_at(home)
        settings = read_settings(place)
        target = None if keep else address_of(to or settings.payout)
        holder = holder_of(address_in(place.keystore), place)
        if holder is not None:
            raise WrongUseError(
                f"{holder} runs: end it first with "
                + holder.command("trainyard worker drain --wait")
            )
        account = open_keystore(place.keystore, find_password(password_file))
        with held_key(account.address, place, new_journal=new_journal):
            done = retire_worker(place, settings, account, to=target, timeout_s=timeout)
        document = {"worker": account.address, "to": target, **asdict(done)}
        Output(as_json).result(document, [_line(done, target)])


def _line(done: "Retired", target: str | None) -> str:
    if done.waits_for is not None:
        return f"it waits for {done.waits_for}; run it again then"
    if target is None:
        return f"the bond is free: the credit in the market is {done.credit}"
    return f"the bond is free: {done.withdrawn} went to {target}"
