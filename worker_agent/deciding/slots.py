"""What the worker of a slot owes its task."""

from collections.abc import Collection

from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import DisputeState, Policy, TaskState
from worker_agent.actions import Action, Fetch, Seal, Send, Stop, Tell, Train
from worker_agent.situation import (
    ENDED,
    TURN_S,
    Situation,
    is_behind,
    parties,
    slots_of,
    trains_jointly,
)

# A worker from which nothing was heard for so long is asked for a sign of life; sooner where a task
# leaves less time for an answer.
_SILENT_S = 60
# So many times what is left of the time may training seem to take before it is given up: a machine
# that was busy for a while is not slow.
_HOPE = 1.25
# So often it may say that it cannot be done.
_MOST_FAILURES = 3
# The panel of a slot's own commitment, for its salt.
_CLAIM = (2**32 - 2, 0)
_LOST = (
    "the folder of the task is lost, and with it the key by which its other workers know us: we "
    "cannot train with them, and lose a part of the stake"
)


def for_slots(s: Situation, number: int, task: Task) -> list[Action]:
    found = slots_of(task, s.me)
    if not found:
        return _without_slot(s, number)
    slot = found[0]
    if task.state in ENDED:
        return _over(s, number, task, slot)
    match task.state:
        case TaskState.OPEN:
            return _waiting(s, number, task, slot)
        case TaskState.RUNNING:
            return _running(s, number, task, slot)
        case TaskState.REVEALING:
            return _revealing(s, number, task, slot)
        case TaskState.SUBMITTED | TaskState.AUDITING | TaskState.OPENING:
            return _verified(s, number, task, slot)
        case TaskState.WINDOW | TaskState.DISPUTED:
            return _open(s, number, task, slot)
        case _:
            return []


def _without_slot(s: Situation, number: int) -> list[Action]:
    """Who was evicted, or whose joining fell out of the chain, does not train on."""
    if s.of(number).card is None and number not in s.ended:
        return []
    # Of a task that is over nothing is wanted any more; of another one what there is may be.
    works = ("train", "fetch", "cards") if number in s.ended else ("train",)
    return [Stop(number, "we hold no slot of it", works=works)]


def _over(s: Situation, number: int, task: Task, slot: int) -> list[Action]:
    """End what runs; but what is paid for is shown, however soon the task was settled."""
    stop = Stop(number, "the task is over", spared=("seal",))
    is_paid = task.state is TaskState.SETTLED and is_behind(task, slot)
    return [stop, *_show(s, number)] if is_paid else [stop]


def _waiting(s: Situation, number: int, task: Task, slot: int) -> list[Action]:
    """Who is to end does not wait for others that may never come: the stake comes back."""
    if not s.is_draining:
        return []
    return [Send(f"{number}/leave/{slot}", s.calls.leave(number, slot), task.deadline)]


def _running(s: Situation, number: int, task: Task, slot: int) -> list[Action]:
    actions = list[Action]()
    is_lost = not s.of(number).is_fetched and not task.answered >> slot & 1
    if is_lost and trains_jointly(task) and s.of(number).card is None:
        # No sign of life either: another is to take its place.
        return [Tell(number, _LOST, is_notice=True)]
    claim = s.of(number).claim
    has_answered = bool(task.answered >> slot & 1)
    hopeless = _hopeless(s, number, task) if claim is None and not has_answered else None
    if hopeless is not None:
        # No sign of life either. What is trained already may yet be sealed in time.
        told = Tell(number, hopeless, is_notice=True)
        return [Stop(number, hopeless, spared=("seal",)), told]
    pinged = task.slots[slot].pong_by
    if pinged and s.now < pinged:
        actions.append(Send(f"{number}/pong/{slot}/{pinged}", s.calls.pong(number, slot), pinged))
    if claim is not None and task.terms.slots > 1:
        # The others may still need our states.
        actions.append(Train(number, slot))
    if has_answered:
        # Who is gone and has not answered would hold up all others until the deadline.
        return [*actions, *_ask_silent(s, number, task, slot)]
    if claim is None:
        if is_lost:
            return [*actions, *_fetch(s, number)]
        return [*actions, Train(number, slot), *_ask_silent(s, number, task, slot)]
    if task.terms.policy in (Policy.REPLICATE, Policy.CONTEST):
        salt = s.salt(number, _CLAIM, slot)
        sealed = s.market.claim_commitment(number, s.me, salt, claim.result, claim.root)
        call = s.calls.commit(number, slot, sealed)
        return [*actions, Send(f"{number}/commit/{slot}", call, task.deadline)]
    call = s.calls.submit(number, slot, claim.result, claim.root)
    return [*actions, Send(f"{number}/submit/{slot}", call, task.deadline)]


def _hopeless(s: Situation, number: int, task: Task) -> str | None:
    """Why training is given up, so that another may take the slot; None while it may be done."""
    progress = s.of(number)
    failure = progress.failures.get("train")
    if failure is not None and failure.permanent >= _MOST_FAILURES:
        return f"training failed {failure.permanent} times for good: {failure.reason}"
    if not s.in_time(task.deadline):
        return "it cannot be finished in time"
    if progress.left_s is None or progress.segment_s is None:
        # An estimate from before is no reason: only what was seen counts.
        return None
    # The segment under way may be all but done.
    needed_s = (progress.left_s - progress.segment_s) / _HOPE
    if not needed_s > task.deadline - s.now - s.margin_s:
        return None
    return f"it would take about {progress.left_s:.0f} s more, and less than that is left"


def _begin_again(s: Situation, number: int, task: Task, slot: int) -> list[Action]:
    """The folder of the task is lost. What was trained alone comes out the same once more.

    What was computed together the others have too, and show.
    """
    if trains_jointly(task):
        return []
    if not s.of(number).is_fetched:
        return _fetch(s, number)
    return [Train(number, slot)]


def _fetch(s: Situation, number: int) -> list[Action]:
    return [Fetch(number)] if s.may_try(number, "fetch") else []


def _ask_silent(s: Situation, number: int, task: Task, own: int) -> list[Action]:
    """Ask peers for a sign of life that say nothing; whoever of us has the lowest slot does."""
    patience_s = min(_SILENT_S, task.terms.answer_for)
    silent = {
        slot
        for slot, silent_s in s.of(number).silent.items()
        if silent_s >= patience_s and task.joined >> slot & 1
    }
    heard = [slot for slot in range(len(task.slots)) if task.joined >> slot & 1]
    if min((slot for slot in heard if slot not in silent), default=own) != own:
        return []
    actions = list[Action]()
    for slot in sorted(silent - {own}):
        asked = task.slots[slot]
        if task.answered >> slot & 1:
            continue
        if not asked.pong_by and s.now >= asked.quiet_until:
            key = f"{number}/ping/{slot}/{asked.quiet_until}/{asked.worker}"
            actions.append(Send(key, s.calls.ping(number, slot)))
    return actions


def _revealing(s: Situation, number: int, task: Task, slot: int) -> list[Action]:
    claim = s.of(number).claim
    if not task.answered >> slot & 1:
        return []
    if claim is None:
        return _begin_again(s, number, task, slot)
    # All commitments are in, or too late: there is nobody left who could copy.
    showing = _show(s, number)
    if task.revealed >> slot & 1:
        return showing
    salt = s.salt(number, _CLAIM, slot)
    call = s.calls.reveal(number, slot, salt, claim.result, claim.root)
    return [Send(f"{number}/reveal/{slot}", call, task.deadline), *showing]


def _verified(s: Situation, number: int, task: Task, slot: int) -> list[Action]:
    """Serve what was drawn, and open it when the answers are in."""
    progress, panel = s.of(number), task.own_panel
    if not is_behind(task, slot):
        return []
    if progress.trace is None:
        return _begin_again(s, number, task, slot)
    if task.terms.policy is not Policy.AUDIT:
        return _show(s, number)
    drawn = tuple(sorted(seat.segment for seat in panel.seats))
    is_late = task.state is TaskState.AUDITING and s.now >= task.deadline
    if task.state is TaskState.OPENING or is_late:
        since = task.deadline if is_late else task.deadline - task.terms.answer_for
        if not _is_turn(s, task, since):
            return []
        states = [progress.trace.after(seat.segment) for seat in panel.seats]
        proofs = [progress.trace.proof_after(seat.segment) for seat in panel.seats]
        claim = task.slots[task.lead].claim
        if claim is None:
            return []
        call = s.calls.open(number, claim, states, proofs)
        by = None if is_late else task.deadline
        return [Send(f"{number}/open", call, by)]
    if set(drawn) - progress.served and s.may_try(number, "seal"):
        return [Seal(number, drawn)]
    return []


def _open(s: Situation, number: int, task: Task, slot: int) -> list[Action]:
    """Show all of it: nobody answers blind any more. And serve what others say is missing."""
    if not is_behind(task, slot):
        return []
    actions = _show(s, number, task.disputes)
    trace, claim = s.of(number).trace, task.slots[task.lead].claim
    if trace is None:
        return _begin_again(s, number, task, slot)
    if claim is None:
        return actions
    for segment, dispute in task.disputes.items():
        since = dispute.deadline - task.terms.answer_for
        if dispute.state is DisputeState.UNSERVED and _is_turn(s, task, since):
            state, proof = trace.after(segment), trace.proof_after(segment)
            call = s.calls.serve(number, segment, claim, state, proof)
            actions.append(Send(f"{number}/serve/{segment}", call, dispute.deadline))
    return actions


def _show(s: Situation, number: int, disputed: Collection[int] = ()) -> list[Action]:
    """Show the whole run, and of disputed segments what referees are to compute them from."""
    progress, task = s.of(number), s.book.tasks[number]
    wanted = progress.served.union(disputed)
    # A reorg that takes the opening back draws anew, and who is drawn then is to answer blind. But
    # whoever challenges needs time to look.
    is_late = task.state is TaskState.WINDOW and not s.in_time(task.deadline)
    is_open = progress.is_open or is_late or s.stays_open(number)
    is_done = progress.is_open == is_open and wanted == progress.served
    if is_done or progress.trace is None or not s.may_try(number, "seal"):
        return []
    return [Seal(number, tuple(sorted(wanted)), is_open=is_open)]


def _is_turn(s: Situation, task: Task, since: int) -> bool:
    """The holder of the lead claim acts at once, the others if it does not.

    Nobody waits for others when there is little time left.
    """
    rank = parties(task).index(s.me)
    return s.now >= since + min(rank * TURN_S, task.terms.answer_for // 2)
