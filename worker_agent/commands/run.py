"""`trainyard worker run`: the agent itself."""

from typing import Annotated

import typer

from trainyard.cli.failing import WrongUseError, telling_failures
from worker_agent.commands.options import HomeOption, PasswordFile, home_at


def run(
    home: HomeOption = None,
    password_file: PasswordFile = None,
    paused: Annotated[
        bool, typer.Option(help="See to what is under way, and take nothing new.")
    ] = False,
    new_journal: Annotated[
        bool,
        typer.Option(
            help="Begin another journal with a key that was used before. Say so only if nothing "
            "that it signed is under way."
        ),
    ] = False,
    allow_root: Annotated[
        bool,
        typer.Option(
            "--allow-root",
            help="Run as root, though sandboxed work then is root's on this machine.",
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option(help="Log to the agent's folder only.")] = False,
) -> None:
    """Watch the market, take tasks, train, prove, and be paid, until told to end.

    Ends in order on Ctrl-C or SIGTERM. Killed at any moment, the next run goes on from there.
    """
    with telling_failures():
        import os
        import time

        import structlog

        from trainyard.chain.endpoints import Endpoints
        from trainyard.chain.keystore import address_in, find_password, open_keystore
        from trainyard.chain.receipts import count_of
        from trainyard.protocol.errors import TransientError
        from worker_agent.agent import Agent, wait_after
        from worker_agent.cgroups import find_tree, make_room
        from worker_agent.locking import held_key
        from worker_agent.logs import set_up_logs
        from worker_agent.secrecy import hide_memory
        from worker_agent.settings import read_settings

        if os.geteuid() == 0 and not allow_root:
            raise WrongUseError(
                "the agent must not be root, as what runs in its sandboxes would be root's on this "
                "machine: run it as an account of its own, which owns its folder, or say "
                "--allow-root if nothing else is on this machine"
            )
        place = home_at(home)
        settings = read_settings(place)
        address = address_in(place.keystore)
        endpoints = Endpoints(settings.chain.endpoints, chain_id=settings.chain.chain_id)

        def count_sent() -> int:
            """Asked until somebody answers: an agent may be started in the middle of an outage."""
            failures = 0
            while True:
                try:
                    return endpoints.run(lambda rpc: count_of(rpc, address, "pending"))
                except TransientError as error:
                    failures += 1
                    structlog.get_logger().warning("waiting", reason=str(error), failures=failures)
                    time.sleep(wait_after(failures, settings.chain.poll_s))

        set_up_logs(place.log, shown=not quiet)
        with held_key(address, place, new_journal=new_journal, count_sent=count_sent):
            hide_memory()
            account = open_keystore(place.keystore, find_password(password_file))
            # While there are no other processes of ours yet.
            why = None if find_tree().parents else make_room()
            if why is not None:
                structlog.get_logger().warning("limits for each process alone", reason=why)
            agent = Agent(place, settings, account)
            agent.is_paused = paused
            agent.run()
