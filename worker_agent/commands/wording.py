"""How the operator's commands word times and amounts for people."""

from datetime import UTC, datetime
from typing import Any

from trainyard.protocol.telling import amount

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def span(seconds: float) -> str:
    """Two units at most: nobody reads more."""
    left, parts = int(seconds), []
    for unit, size in _UNITS:
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    parts.append(f"{left} s")
    return " ".join(parts[:2])


def moment(timestamp: int) -> str:
    return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%d %H:%M:%S} UTC"


def task_lines(task: dict[str, Any]) -> list[str]:
    failure = f" ({task['failure']})" if task["failure"] else ""
    lines = [
        f"task {task['task']:<6} {task['state']}{failure}; {', '.join(task['roles'])}; "
        f"reward {amount(task['reward_wei'])}, stake {amount(task['stake_wei'])}"
    ]
    training = task["training"]
    if training is not None and training["phase"] != "ended":
        lines.append(f"  {_training(training)}")
    if task["waits_for"] is not None:
        lines.append(f"  {move_line(task['waits_for'], is_us=task['waits_for']['is_us'])}")
    if task["refused"]:
        lines.append(f"  refused: {task['refused']}")
    lines += [
        f"  {work} failed {one['count']} times, last: {one['reason']}"
        for work, one in task["failures"].items()
    ]
    return lines


def move_line(move: dict[str, Any], *, is_us: bool = False) -> str:
    who = "we have" if is_us else "anyone can" if not move["who"] else _people(move["who"])
    verb = " to" if is_us or move["who"] else ""
    when = f" by {moment(move['by'])}" if move["by"] else ""
    since = f", from {moment(move['since'])} on" if move["since"] else ""
    return f"next: {who}{verb} {move['what']} ({move['call']}){when}{since}"


def _people(who: list[str]) -> str:
    return f"{', '.join(who)} {'has' if len(who) == 1 else 'have'}"


def _training(training: dict[str, Any]) -> str:
    parts = [training["phase"], f"step {training['step']} of {training['steps']}"]
    parts.append(f"{training['share']:.0%}")
    if training["loss"] is not None:
        parts.append(f"loss {training['loss']:.4f}")
    parts += [f"{name} {value:.4f}" for name, value in training["metrics"].items()]
    if training["left_s"] is not None:
        parts.append(f"about {span(training['left_s'])} left")
    if training["silent_slots"]:
        parts.append(f"nothing heard of slots {training['silent_slots']}")
    if training["awaited_slots"]:
        # Heard of, and not where the others are.
        parts.append(f"held up by slots {training['awaited_slots']}")
    return ", ".join(parts)
