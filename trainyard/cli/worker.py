"""`trainyard worker`: the agent's commands, which are loaded when one of them is asked for."""

from typing import Any

import typer
from typer.core import TyperGroup

from trainyard.cli.failing import EXIT_CODES_HELP


class _AgentCommands(TyperGroup):
    """Stands for the agent's own group until somebody looks inside."""

    def list_commands(self, ctx: Any) -> list[str]:
        return self._load().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return self._load().get_command(ctx, cmd_name)

    def _load(self) -> TyperGroup:
        from worker_agent.commands.app import worker as commands

        group = typer.main.get_command(commands)
        assert isinstance(group, TyperGroup)
        return group


worker = typer.Typer(
    name="worker",
    cls=_AgentCommands,
    help="A worker's agent: set it up, look after it, and be paid.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
)


@worker.callback()
def _only_a_group() -> None:
    """A worker's agent: set it up, look after it, and be paid."""
