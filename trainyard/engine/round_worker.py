"""One worker of a run in rounds: it does its part, offers it, and merges what others offered.

It reaches nobody. All that it needs comes from the folder where the workers meet, and all that it
has goes there, so it can be killed at any moment and started anew on any machine.
"""

from pathlib import Path

from trainyard.engine.counting import Counters
from trainyard.engine.energy import Meter
from trainyard.engine.errors import RunError, StateError
from trainyard.engine.events import Ended, Merged, Offered, Started, tell
from trainyard.engine.examining import Examiner, has_numbers
from trainyard.engine.exchange import Call, End, Exchange, Offer, pause, wait_for
from trainyard.engine.figures import Sums
from trainyard.engine.journal import Entry
from trainyard.engine.offers import own_key, signed
from trainyard.engine.rounds import Part, RoundsTraining
from trainyard.engine.state import State
from trainyard.engine.summaries import SUMMARIES, Summaries
from trainyard.engine.worker import Job, Telling, finish, measured, validated
from trainyard.protocol.manifest import Local, Merge


class _DecidedWithoutUsError(Exception):
    """The round goes on without what is being computed."""


def work_rounds(job: Job, training: RoundsTraining, folder: Path) -> None:
    """Take part in all rounds from the one that is called."""
    exchange = Exchange(folder)
    start = None
    if exchange.latest_call() is None:
        weights = None if job.initial_state is None else State.load(job.initial_state)
        start = exchange.put(training.start(weights))
    plan = training.plan
    tell(Started(slot=job.slot, steps=plan.steps, segments=plan.segments, start=start))
    _RoundWorker(job, training, exchange).work(wait_for(exchange.latest_call))


class _RoundWorker:
    def __init__(self, job: Job, training: RoundsTraining, exchange: Exchange) -> None:
        self._slot, self._job = job.slot, job
        self._training = training
        self._exchange = exchange
        self._examiner = Examiner(training.manifest, exchange, job.signers)
        self._key = own_key(job.folder)
        share = training.manifest.training.batch // training.manifest.training.workers
        self._telling = Telling(job.slot, share)
        self._summaries = Summaries(job.folder / SUMMARIES)
        # A merge is paid for with the part that follows it.
        self._meter = Meter(job.power)
        # The last global state and our last leaf, so as not to read what we wrote.
        self._held: dict[str, State] = {}

    def work(self, call: Call) -> None:
        while True:
            globe = self._state(call.globe)
            if not self._exchange.is_decided(call.round):
                self._take_part(call, globe)
            globe = self._merge(call, globe)
            following = self._await_call(call.round + 1)
            if isinstance(following, End):
                globe = self._state(following.globe)
                tested = finish(self._job, self._training.manifest, self._training, globe)
                tell(Ended(slot=self._slot, root=following.root, tested=tested))
                return
            if following.round == call.round + 1 and following.globe != globe.hash.hex():
                raise RunError(
                    f"worker {self._slot} disagrees about the merge of round {call.round}: its "
                    "machine is faulty"
                )
            call = following

    def _take_part(self, call: Call, globe: State) -> None:
        if not self._has_offered(call, globe):
            last = call.last[self._slot]
            own = None if last is None else self._state(last)
            try:
                part = self._training.local(
                    Local(call.round, self._slot), globe, own, self._watch(call.round)
                )
            except _DecidedWithoutUsError:
                return
            self._offer(call, part)
        tell(Offered(slot=self._slot, round=call.round))

    def _watch(self, number: int) -> "_Watch":
        return _Watch(self._exchange, number, self._telling)

    def _has_offered(self, call: Call, globe: State) -> bool:
        """Whether an offer of ours from before we were started anew is here, whole."""
        try:
            offer = self._exchange.offer(call.round, self._slot)
            self._examiner.check(offer, call.round, self._slot, globe)
        except StateError:
            return False
        return True

    def _offer(self, call: Call, part: Part) -> None:
        delta = None if part.delta is None else self._exchange.put(part.delta)
        trained = None if part.figures is None else measured(part.figures)
        if trained is not None and not has_numbers(trained):
            # A metric may be too large for a number where the loss is not.
            trained = None
        offer = Offer(
            round=call.round,
            slot=self._slot,
            globe=call.globe,
            leaf=self._exchange.put(part.state),
            delta=delta,
            delta_bytes=0 if part.delta is None else part.delta.size,
            absence=part.absence,
            trained=trained,
            train_s=part.train_s,
            trace_s=part.trace_s,
            energy=self._meter.take(),
        )
        self._exchange.post(signed(offer, self._training.manifest, self._key))
        self._held[offer.leaf] = part.state
        self._summarise(call.round, offer)

    def _merge(self, call: Call, globe: State) -> State:
        decision = wait_for(lambda: self._exchange.decision(call.round))
        deltas = self._examiner.deltas(decision, call.round, globe)
        merged = self._training.merge(call.round, globe, deltas)
        tried = validated(self._training.validate(call.round, merged))
        name = merged.hash.hex()
        tell(Merged(slot=self._slot, round=call.round, state=name, validated=tried))
        if tried:
            number = self._training.plan.segment(Merge(call.round)) + 1
            step = Counters.of(merged).step
            self._summaries.write(Entry(number=number, state=name, step=step, validated=tried))
        offer = decision.offers[self._slot]
        wanted = {name, call.last[self._slot], None if offer is None else offer.leaf}
        self._held = {key: one for key, one in self._held.items() if key in wanted}
        self._held[name] = merged
        return merged

    def _await_call(self, number: int) -> Call | End:
        """The latest call from round `number` on: who was away does not go through them all."""

        def look() -> Call | End | None:
            end = self._exchange.end(self._training.plan.rounds)
            if end is not None:
                return end if end.slot == self._slot else None
            found: Call | None = None
            following = self._exchange.call(number)
            while following is not None:
                found, following = following, self._exchange.call(following.round + 1)
            return found

        while (found := look()) is None:
            pause()
        return found

    def _state(self, name: str) -> State:
        return self._held[name] if name in self._held else self._exchange.get(name)

    def _summarise(self, number: int, offer: Offer) -> None:
        _, last = self._training.plan.bounds(self._training.plan.segment(Local(number, self._slot)))
        entry = Entry(
            number=self._training.plan.segment(Local(number, self._slot)) + 1,
            state=offer.leaf,
            step=last,
            trained=offer.trained,
            train_s=offer.train_s,
            energy=offer.energy,
        )
        self._summaries.write(entry)


class _Watch:
    """Told of each step of a part, it ends the part once that is no longer wanted."""

    def __init__(self, exchange: Exchange, number: int, telling: Telling) -> None:
        self._exchange, self._number, self._telling = exchange, number, telling

    def __call__(self, step: int, sums: Sums) -> None:
        self._telling(step, sums)
        if self._exchange.is_decided(self._number):
            raise _DecidedWithoutUsError
