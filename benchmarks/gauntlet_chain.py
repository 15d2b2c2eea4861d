"""Whole tasks on a real chain: honest ones, ones with half left out, and cheats of the market."""

from collections import Counter
from collections.abc import Collection, Iterable

from rich.console import Console

from benchmarks.arena import ENDED, SEGMENTS, Arena, running_arena
from benchmarks.gauntlet_scenes import play_scenes
from trainyard.protocol.market import Failure, TaskState
from worker_agent.cheating.plan import Cheat, Plan

_CHEATED, _HONEST, _MEMBERS = 6, 3, 5
_FRACTION = 0.5
# Each scene of its own market, as often.
_SCENES = 2


def play_tasks() -> dict[str, float]:
    """How surely cheats pay, and how many honest people lost anything."""
    drawn, slashed = _play_drawn()
    caught = Counter[str]()
    for _ in range(_SCENES):
        with running_arena() as arena:
            outcome, honest = play_scenes(arena)
            slashed += count_harmed(arena, {one.address for one in honest})
        caught.update({name: int(is_caught) for name, is_caught in outcome.items()})
    console = Console()
    for name, times in caught.items():
        console.print(f"on a chain: {name} was caught {times} times of {_SCENES}")
    rates = {f"{name}_detected": times / _SCENES for name, times in caught.items()}
    return {"chain_as_drawn": drawn, **rates, "honest_slashed": slashed}


def _play_drawn() -> tuple[float, int]:
    """How many tasks ended as the drawn segments say, and how many honest people were harmed."""
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
        slashed = count_harmed(arena, {worker.address, *(one.address for one in members)})
    caught = sum(is_hit for is_hit, _ in outcomes)
    right = sum(is_hit == is_convicted for is_hit, is_convicted in outcomes)
    console = Console()
    console.print(f"on a chain: {_HONEST} honest tasks paid, {_CHEATED} with half left out,")
    console.print(f"of which {caught} were drawn where they are wrong, and {right} ended as drawn")
    return right / len(outcomes), slashed


def _cheated(arena: Arena, number: int) -> tuple[bool, bool]:
    """Whether a wrong segment was drawn, and whether the worker lost its stake."""
    task = arena.wait_for(number, *ENDED)
    wrong = Plan(cheat=Cheat.SKIP, fraction=_FRACTION).cheated(SEGMENTS)
    is_hit = any(seat.segment in wrong for seat in task.own_panel.seats)
    return is_hit, task.failure is Failure.FRAUD


def count_harmed(arena: Arena, honest: Collection[str]) -> int:
    """How many of them lost a part of a stake or of a bond, or have a stain on their record."""
    accounts = arena.book().accounts
    stained = {
        who
        for who in honest
        if who in accounts and accounts[who].failed + accounts[who].audits_wrong
    }
    lost = {
        event.args["member"]
        for event in arena.events
        if event.name == "SeatClosed" and event.args["slashed"]
    }
    evicted = {event.args["worker"] for event in arena.events if event.name == "SlotEvicted"}
    return len(stained | _among(honest, lost, evicted))


def _among(honest: Collection[str], *found: Iterable[str]) -> set[str]:
    return {who for some in found for who in some if who in honest}
