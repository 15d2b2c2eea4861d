"""What to be ready for before it is asked: processes take seconds to start, and TensorFlow more."""

from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import Policy, TaskState
from worker_agent.actions import Action, Prepare
from worker_agent.progress import EVIDENCE, RUN
from worker_agent.situation import Situation, slots_of

# As long as TensorFlow may take to start on a busy machine.
_AHEAD_S = 30.0
STANDBY = "standby"


def for_readiness(s: Situation, number: int, task: Task) -> list[Action]:
    if task.terms.policy is not Policy.AUDIT or not s.may_try(number, STANDBY):
        return []
    if slots_of(task, s.me):
        return _as_worker(s, number, task)
    return [Prepare(number, EVIDENCE)] if _may_be_drawn(s, task) else []


def _as_worker(s: Situation, number: int, task: Task) -> list[Action]:
    """Near the end of training for our own audit; then for serving what is drawn."""
    progress = s.of(number)
    if task.state is TaskState.RUNNING and progress.claim is None:
        return [Prepare(number, RUN)] if _is_near_end(s, number, task) else []
    is_waiting = task.state is TaskState.SUBMITTED and progress.trace is not None
    return [Prepare(number)] if is_waiting else []


def _is_near_end(s: Situation, number: int, task: Task) -> bool:
    progress = s.of(number)
    audits_itself = task.terms.slots > 1 and s.policy.self_audits > 0 and s.may_try(number, "seal")
    if progress.fetched is None or progress.left_s is None or not audits_itself:
        return False
    # Two at once must not need more than the operator gives to one task.
    has_room = 2 * progress.fetched.memory_bytes <= s.policy.max_memory_bytes
    return has_room and progress.left_s <= _AHEAD_S


def _may_be_drawn(s: Situation, task: Task) -> bool:
    """Whether the draw is near, and as likely as not to hit us: else many would start for one."""
    panel, known = task.own_panel, s.book.workers.get(s.me)
    is_near = task.state is TaskState.SUBMITTED and panel.seed == bytes(32)
    if not is_near or known is None or task.requester == s.me:
        return False
    is_member = known.pool_index > 0 and known.bond > known.bond_locked
    is_ours = task.terms.env_class == s.env_class == known.env_class
    return is_member and is_ours and 2 * task.terms.audits >= panel.pool
