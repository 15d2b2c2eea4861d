"""Whole tasks on a real chain, some with a worker that leaves out half of its segments."""

from rich.console import Console

from benchmarks.arena import ENDED, SEGMENTS, Arena, running_arena
from trainyard.protocol.market import Failure, TaskState
from worker_agent.cheating.plan import Cheat, Plan

_CHEATED, _HONEST, _MEMBERS = 6, 3, 5
_FRACTION = 0.5


def play_tasks() -> dict[str, float]:
    """How many tasks ended as the drawn segments say, and how many honest people lost anything."""
    with running_arena() as arena:
        bond = 5 * arena.net.params.seat_bond
        members = [arena.start(f"member-{one}", bond=bond) for one in range(_MEMBERS)]
        payer, victim = arena.person(), arena.person()
        worker = arena.start("worker", takes=[payer.address])
        arguments = ("skip", "--fraction", str(_FRACTION))
        arena.start("cheat", *arguments, takes=[victim.address])
        arena.wait_for_members(*members)
        for _ in range(_HONEST):
            number = arena.post(payer, audits=2)
            if arena.wait_for(number, *ENDED).state is not TaskState.SETTLED:
                raise SystemExit(f"honest work was not paid for: {arena.book().tasks[number]}")
        outcomes = [_cheated(arena, arena.post(victim)) for _ in range(_CHEATED)]
        slashed = _slashed(arena, [worker.address, *(one.address for one in members)])
    console = Console()
    caught = sum(is_hit for is_hit, _ in outcomes)
    right = sum(is_hit == is_convicted for is_hit, is_convicted in outcomes)
    console.print(f"on a chain: {_HONEST} honest tasks paid, {_CHEATED} with half left out,")
    console.print(f"of which {caught} were drawn where they are wrong, and {right} ended as drawn")
    return {"chain_as_drawn": right / len(outcomes), "chain_honest_slashed": slashed}


def _cheated(arena: Arena, number: int) -> tuple[bool, bool]:
    """Whether a wrong segment was drawn, and whether the worker lost its stake."""
    task = arena.wait_for(number, *ENDED)
    wrong = Plan(cheat=Cheat.SKIP, fraction=_FRACTION).cheated(SEGMENTS)
    is_hit = any(seat.segment in wrong for seat in task.own_panel.seats)
    return is_hit, task.failure is Failure.FRAUD


def _slashed(arena: Arena, honest: list[str]) -> int:
    accounts = arena.book().accounts
    return sum(accounts[one].failed + accounts[one].audits_wrong for one in honest)
