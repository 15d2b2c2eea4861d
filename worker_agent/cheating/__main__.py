"""Runs an agent that cheats: `python -m worker_agent.cheating CHEAT --home … --password-file …`."""

import argparse
import sys
from pathlib import Path

from trainyard.chain.keystore import address_in, find_password, open_keystore
from trainyard.protocol.errors import TrainyardError
from worker_agent.cheating.agent import CheatingAgent
from worker_agent.cheating.plan import MEANING, Cheat, Plan
from worker_agent.locking import held_key
from worker_agent.logs import set_up_logs
from worker_agent.settings import Home, read_settings


def main() -> None:
    try:
        _run(_options())
    except TrainyardError as error:
        sys.exit(f"error: {error}")


def _options() -> argparse.Namespace:
    kinds = "\n".join(f"  {cheat}: {meaning}" for cheat, meaning in MEANING.items())
    parser = argparse.ArgumentParser(
        prog="python -m worker_agent.cheating",
        description=f"An agent that cheats, for demonstrations and tests.\n\n{kinds}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cheat", type=Cheat, choices=list(Cheat))
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--password-file", type=Path, required=True)
    parser.add_argument("--fraction", type=float, default=1.0, help="of the segments")
    parser.add_argument("--done", type=float, default=0.0, help="of a skipped segment's steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--partner", type=Path, help="home of the worker to collude with")
    return parser.parse_args()


def _run(options: argparse.Namespace) -> None:
    home = Home(options.home)
    settings = read_settings(home)
    plan = Plan(
        cheat=options.cheat,
        fraction=options.fraction,
        done=options.done,
        seed=options.seed,
        partner=options.partner,
    )
    with held_key(address_in(home.keystore), home):
        account = open_keystore(home.keystore, find_password(options.password_file))
        set_up_logs(home.log, shown=True)
        CheatingAgent(home, settings, account, plan=plan).run()


if __name__ == "__main__":
    main()
