"""Which tasks to take, and of each that is passed over, why, and what would change that."""

from collections.abc import Container
from dataclasses import dataclass
from hashlib import sha256

from trainyard.protocol.gas import gas_of
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import Policy, TaskState
from worker_agent.actions import Action, Fetch, MakeCard, Send, Stop
from worker_agent.deciding.fees import fees_of, left_of
from worker_agent.progress import Fetched
from worker_agent.situation import Situation, slots_of, taken

# Tasks that are here and could be joined, before no more are fetched.
_AHEAD = 2
_HOUR_S, _JOULES_A_KWH = 3600, 3_600_000


UNSERVED = (
    "nobody could fetch what we train, and the stake would be lost: our store is served nowhere, "
    "and a relay carries only what workers say to each other"
)
SERVE = "set listen, advertise and boards in [content], or keep content in a Kubo node"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a task is not taken, and the smallest change that would make it acceptable."""

    why: str
    change: str


def for_offers(s: Situation) -> list[Action]:
    """Join what is best paid, as far as there is room for it."""
    # Once for all of them: there may be many.
    ours, left = set(taken(s)), left_of(s)
    stops = _in_vain(s, ours, left)
    if s.is_crowded:
        return stops
    room = s.policy.concurrency - len(ours)
    offers = [number for number, task in s.book.tasks.items() if _is_vacant(task)]
    fetching = list[Action]()
    joining = list[tuple[float, Action]]()
    for number in sorted(offers, key=lambda number: _preference(s, number)):
        task = s.book.tasks[number]
        if number in ours or _against(s, number, task, left):
            continue
        fetched = s.of(number).fetched
        if fetched is None or not fetched.is_whole:
            if s.may_try(number, "fetch"):
                fetching.append(Fetch(number))
            continue
        if s.of(number).card is not None and s.post_depth(number) < s.join_confirmations:
            # All is ready for it meanwhile.
            continue
        pay = task.terms.reward / max(fetched.hours, 1e-6)
        joining.append((-pay, _join(s, number, task)))
    joining.sort(key=lambda one: one[0])
    ahead = max(0, _AHEAD - len(joining))
    # What another one takes with it is known when it is mined.
    most = 0 if s.is_paying else min(max(room, 0), 1)
    return [*stops, *fetching[:ahead], *(action for _, action in joining[:most])]


def _in_vain(s: Situation, ours: Container[int], left: int) -> list[Action]:
    """Data that is fetched no further, since its task has gone or will be passed over."""
    found = list[Action]()
    for number, progress in s.progress.items():
        if progress.fetched is None or progress.is_fetched or number in ours:
            continue
        task = s.book.tasks.get(number)
        against = [] if task is None else _against(s, number, task, left)
        if task is None or against:
            why = "the task has gone" if task is None else against[0].why
            found.append(Stop(number, why, works=("fetch",)))
    return found


def why_not(s: Situation, number: int) -> list[Reason]:
    """All that speaks against taking a task now, the first to be mended first."""
    task = s.book.tasks.get(number)
    if task is None:
        return [Reason(f"there is no task {number}", "name one that the market has")]
    if number in s.joining:
        return [Reason("our joining it is under way", "nothing: wait until it is mined")]
    if number in taken(s):
        return [Reason("we are in it", "nothing: see 'trainyard worker tasks'")]
    found = _against(s, number, task, left_of(s))
    # What is passed over is not fetched either.
    passing = [*_about_room(s), *_about_joining(s, number)]
    return [*found, *passing, *([] if found else _about_fetching(s, number))]


def _against(s: Situation, number: int, task: Task, left: int) -> list[Reason]:
    """What speaks against a task itself; that there is no room for it passes."""
    found = [
        *_about_us(s, task),
        *_about_terms(s, task),
        *_about_money(s, task, left),
    ]
    progress = s.of(number)
    if progress.refused is not None:
        found.append(Reason(progress.refused, "the requester has to post it anew, mended"))
    elif progress.fetched is not None:
        found += _about_work(s, number, task, progress.fetched)
    return found


def _about_fetching(s: Situation, number: int) -> list[Reason]:
    """No reason not to try again, so it speaks against nothing."""
    progress = s.of(number)
    failure = progress.failures.get("fetch")
    if progress.is_fetched or progress.refused is not None:
        return []
    if failure is None:
        return [Reason("its manifest and data are not here yet", "wait: they are fetched")]
    wait_s = max(0, round(failure.again_at - s.clock))
    again = f"it is tried again in {wait_s} s; name a gateway that has it in [content]"
    return [Reason(f"it could not be fetched: {failure.reason}", again)]


def is_computing(s: Situation, number: int) -> bool:
    """Whether a task that we are in runs, and has no result here yet."""
    task = s.book.tasks[number]
    is_running = task.state is TaskState.RUNNING
    return is_running and bool(slots_of(task, s.me)) and s.of(number).claim is None


def _preference(s: Situation, number: int) -> tuple[int, int]:
    """Of equally paid tasks: what others wait in, then joint ones as they come, then by lot.

    If all agents ran for the same task, all but one of them would have paid for nothing. But a task
    for several comes about only where they meet.
    """
    task = s.book.tasks[number]
    if task.terms.slots > 1:
        return -task.joined.bit_count(), number
    lot = sha256(f"{s.me}/{number}".encode()).digest()
    return 1, int.from_bytes(lot[:8])


def _is_vacant(task: Task) -> bool:
    is_free = task.joined != (1 << len(task.slots)) - 1
    is_joinable = task.state is TaskState.OPEN or (
        task.state is TaskState.RUNNING and not task.answered
    )
    return is_free and is_joinable


def _join(s: Situation, number: int, task: Task) -> Action:
    card = s.of(number).card
    if card is None:
        return MakeCard(number)
    value = max(0, task.terms.stake - s.credit)
    call = s.calls.join(number, card, value=value)
    by = task.deadline if task.state is TaskState.OPEN else None
    # By what nobody else can change: a second join would wait for its stake, and all behind it.
    return Send(f"{number}/join/{card.hex()}", call, by, stakes=True)


def _about_us(s: Situation, task: Task) -> list[Reason]:
    known = s.book.workers.get(s.me)
    found = []
    if s.is_draining:
        found.append(Reason("the agent drains, and will end", "run 'trainyard worker resume'"))
    elif s.is_paused:
        found.append(Reason("the agent is paused", "run 'trainyard worker resume'"))
    if not s.is_served:
        found.append(Reason(UNSERVED, SERVE))
    if not _is_vacant(task):
        found.append(Reason("all its slots are taken or it is over", "nothing: take another"))
    if task.requester == s.me:
        found.append(Reason("it is our own task", "let another account work on it"))
    if any(slot.worker == s.me for slot in task.slots):
        found.append(Reason("we were in it, and left or were evicted", "nothing: take another"))
    if known is None or known.env_class == bytes(32):
        found.append(Reason("we are not registered", "wait until the registration is mined"))
    elif known.env_class != s.env_class:
        found.append(
            Reason(
                "we are registered with another environment class than this machine now has",
                "retire, unbond and register anew, or bring the old environment back",
            )
        )
    if task.terms.shares_agreed:
        found.append(Reason("its workers have to agree on shares", "post it with equal parts"))
    is_scored = task.terms.policy in (Policy.SCORE, Policy.CONTEST)
    if s.env_class != task.terms.env_class and not is_scored:
        found.append(
            Reason(
                f"it is for environment class {task.terms.env_class.hex()[:16]}…, and this machine "
                f"is of {s.env_class.hex()[:16]}…",
                "work on a machine of that class ('trainyard doctor' prints the class)",
            )
        )
    if task.listed:
        found.append(
            Reason(
                "only workers on the requester's list may join, and an agent shows no place on one",
                "the requester has to post it without a list",
            )
        )
    settled = s.book.accounts[s.me].settled if s.me in s.book.accounts else 0
    if settled < task.terms.min_settled:
        found.append(
            Reason(
                f"it asks for {task.terms.min_settled} settled tasks, and we have {settled}",
                f"settle {task.terms.min_settled - settled} more",
            )
        )
    return found


def _about_terms(s: Situation, task: Task) -> list[Reason]:
    policy, found = s.policy, []
    if task.requester in policy.deny_requesters:
        found.append(Reason("its requester is denied", "take it out of policy.deny_requesters"))
    if policy.allow_requesters and task.requester not in policy.allow_requesters:
        found.append(
            Reason("its requester is not allowed", f"add {task.requester} to allow_requesters")
        )
    if policy.concurrency == 0:
        found.append(Reason("policy.concurrency is 0", "set it to 1 or more"))
    if task.state is TaskState.OPEN and not s.in_time(task.deadline):
        found.append(Reason("the time to join is over", "nothing: take another"))
    return found


def _about_room(s: Situation) -> list[Reason]:
    if s.is_crowded:
        why = "other agents of this machine have their turn"
        return [Reason(why, "a larger policy.turns, or wait")]
    ours = list(map(str, taken(s)))
    if not ours or len(ours) < s.policy.concurrency:
        return []
    why = f"we work on as many tasks as policy.concurrency allows: {', '.join(ours)}"
    return [Reason(why, f"concurrency = {len(ours) + 1}, or wait until one is over")]


def _about_joining(s: Situation, number: int) -> list[Reason]:
    """What keeps us from joining what we would join."""
    found = [Reason(*s.hindered[number])] if number in s.hindered else []
    deep, asked = s.post_depth(number), s.join_confirmations
    if deep < asked:
        why = f"its post lies {deep} blocks deep, and chain.join_confirmations asks for {asked}"
        found.append(Reason(why, f"wait for {asked - deep} more"))
    return found


def _about_money(s: Situation, task: Task, left: int) -> list[Reason]:
    most, stake, found = s.policy.max_stake, task.terms.stake, []
    if most is not None and stake > most:
        found.append(
            Reason(f"its stake is {stake} wei, and at most {most} are risked", f"max_stake={stake}")
        )
    value, fees = max(0, stake - s.credit), fees_of(s, task.terms)
    lacking = value + fees - left
    if lacking > 0:
        # Whoever cannot pay for its answer loses the stake.
        asked = f"its stake is {stake} wei" + (f", its fees may come to {fees}" if fees else "")
        why = f"{asked}, and {lacking} of that are missing"
        found.append(Reason(why, f"add funds: send {lacking} wei to {s.me}"))
    return found


def _about_work(s: Situation, number: int, task: Task, fetched: Fetched) -> list[Reason]:
    policy, found = s.policy, []
    if fetched.mode not in policy.modes:
        found.append(Reason(f"it is of mode {fetched.mode}", f"add {fetched.mode!r} to modes"))
    if fetched.hours > policy.max_hours:
        found.append(
            Reason(
                f"it takes about {fetched.hours:.2f} h, and at most {policy.max_hours:.2f} are "
                "worked on one",
                f"max_hours = {fetched.hours:.2f}",
            )
        )
    left_s = task.terms.train_for if task.state is TaskState.OPEN else task.deadline - s.now
    if fetched.hours * _HOUR_S + s.margin_s > left_s:
        found.append(
            Reason(
                f"it takes about {fetched.hours:.2f} h, and {left_s / _HOUR_S:.2f} h are left",
                "a quicker machine, or more time by the requester",
            )
        )
    found += _about_costs(s, task, fetched)
    least = int(policy.min_wei_per_hour * fetched.hours)
    if task.terms.reward < least:
        found.append(
            Reason(
                f"it pays {task.terms.reward} wei for about {fetched.hours:.2f} h, and {least} are "
                "asked for",
                f"min_wei_per_hour = {int(task.terms.reward / max(fetched.hours, 1e-9))}",
            )
        )
    others = [s.of(one).fetched for one in taken(s) if one != number]
    held = [one for one in others if one is not None]
    for name, needed, beside, most, allowed in (
        (
            "memory",
            fetched.memory_bytes,
            sum(one.memory_bytes for one in held),
            policy.max_memory_bytes,
            s.sandbox.memory_bytes,
        ),
        (
            "disk",
            fetched.disk_bytes,
            sum(one.disk_bytes for one in held),
            policy.max_disk_bytes,
            s.sandbox.disk_bytes,
        ),
    ):
        # What the operator gives is for all tasks that go on at once.
        both = needed + beside
        changes = [f"max_{name}_bytes = {both}"] if both > most else []
        # It would be ended there, and cost a part of the stake.
        changes += [f"sandbox.{name}_bytes = {needed}"] if needed > allowed else []
        if changes:
            more = f", beside {beside} of other tasks" if both > most and beside else ""
            why = f"it needs {needed} bytes of {name}{more}"
            found.append(Reason(why, " and ".join(changes)))
    return found


def _about_costs(s: Situation, task: Task, fetched: Fetched) -> list[Reason]:
    """What costs more than it brings is passed over, unless the operator wants it so."""
    gas, reward = gas_of(task.terms), task.terms.reward
    energy = int(fetched.energy_j * s.policy.energy_wei_per_kwh / _JOULES_A_KWH)
    if s.policy.at_a_loss or gas * s.gas_price + energy <= reward:
        return []
    why = f"it pays {reward} wei, and costs about {gas * s.gas_price} of gas and {energy} of energy"
    change = f"a reward of {gas * s.gas_price + energy} by the requester, or at_a_loss = true"
    if energy < reward:
        # Rounded down: one more would be too much.
        change = f"gas at {(reward - energy) // gas} wei, which is {s.gas_price} now, {change}"
    return [Reason(why, change)]
