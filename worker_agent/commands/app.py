"""The commands of `trainyard worker`, put together."""

import typer

from trainyard.cli.failing import EXIT_CODES_HELP
from worker_agent.commands.doctor import doctor
from worker_agent.commands.earnings import earnings
from worker_agent.commands.init import init
from worker_agent.commands.logs import logs
from worker_agent.commands.orders import drain, pause, resume
from worker_agent.commands.retire import retire
from worker_agent.commands.run import run
from worker_agent.commands.service import service
from worker_agent.commands.status import status, tasks
from worker_agent.commands.why_not import why_not
from worker_agent.commands.withdraw import withdraw

worker = typer.Typer(name="worker", epilog=EXIT_CODES_HELP, no_args_is_help=True)
_COMMANDS = (
    *(init, doctor, run, status, tasks, earnings, logs),
    *(why_not, pause, resume, drain, withdraw, retire),
)
for command in _COMMANDS:
    worker.command(epilog=EXIT_CODES_HELP)(command)
worker.add_typer(service)
