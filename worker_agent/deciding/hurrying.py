"""Until when what is under way is of use: what shows as pending is not decided upon again."""

from trainyard.protocol.market import TaskState
from worker_agent.actions import Action, Hurry
from worker_agent.postings import is_of_another
from worker_agent.situation import Situation

# By the beginning of its key, the state that a task is in while a transaction is not in vain.
_WHILE = {
    "join/": TaskState.OPEN,
    "accuse/": TaskState.WINDOW,
    "challenge/": TaskState.WINDOW,
}


def for_pending(s: Situation) -> list[Action]:
    found = list[Action]()
    for key in s.pending:
        number, _, what = key.partition("/")
        task = s.book.tasks.get(int(number)) if number.isdecimal() else None
        is_of_use = task is not None and any(
            what.startswith(begins) and task.state is state for begins, state in _WHILE.items()
        )
        is_in_time = task is not None and is_of_use and s.now < task.deadline
        if task is not None and is_in_time and not is_of_another(key, s.book):
            found.append(Hurry(key, task.deadline))
    return found
