"""The commands of `trainyard worker`, put together."""

import typer

from trainyard.cli.failing import EXIT_CODES_HELP
from worker_agent.commands.doctor import doctor
from worker_agent.commands.init import init
from worker_agent.commands.run import run
from worker_agent.commands.service import service
from worker_agent.commands.withdraw import withdraw

worker = typer.Typer(name="worker", epilog=EXIT_CODES_HELP, no_args_is_help=True)
for command in (init, doctor, run, withdraw):
    worker.command(epilog=EXIT_CODES_HELP)(command)
worker.add_typer(service)
