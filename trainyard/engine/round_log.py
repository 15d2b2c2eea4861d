"""The trace of a run in rounds, as far as it has come, between the journal and the workers' folder.

The documents of a round are written before the journal's lines, so that after a crash the same
round is taken up with the same decision.
"""

import time
from collections.abc import Mapping

from trainyard.engine.counting import Counters
from trainyard.engine.errors import RunError, StateError
from trainyard.engine.exchange import Call, Decision, Exchange, Offer
from trainyard.engine.journal import Entry, Journal, Measured, Validated
from trainyard.engine.leaves import Absence, Absences, absence_of, absent_in, delta_of
from trainyard.engine.merging import merge_round, plan_of
from trainyard.engine.state import State
from trainyard.protocol.manifest import Local, Manifest


class RoundLog:
    """Which round it is, and all that is known of it and of those before."""

    def __init__(self, manifest: Manifest, journal: Journal, exchange: Exchange) -> None:
        self.manifest, self.plan = manifest, plan_of(manifest)
        self._journal, self._exchange = journal, exchange
        self._merged: State | None = None
        self._merge_s = 0.0
        self._trained: Measured | None = None
        exchange.prepare()
        self._take_up()

    @property
    def has_begun(self) -> bool:
        return bool(self._journal.entries)

    @property
    def round(self) -> int:
        """The round that is not merged yet."""
        return (len(self._journal.entries) - 1) // (self.plan.workers + 1)

    @property
    def is_complete(self) -> bool:
        return len(self._journal.entries) == self.plan.segments + 1

    @property
    def globe(self) -> str:
        """The hash of the last global state."""
        return self._journal.entries[self.plan.before(self.round)].state

    @property
    def start(self) -> str:
        return self._journal.entries[0].state

    @property
    def root(self) -> str:
        return self._journal.trace.root.hex()

    @property
    def merged(self) -> State | None:
        """What the parts that were decided on come to, once that is decided."""
        return self._merged

    def begin(self, start: str) -> Entry:
        """Put the state before the first round into the trace."""
        entry = Entry(number=0, state=start, step=0)
        self._journal.append(entry, self._exchange.path_of(start))
        return entry

    def call(self) -> Call:
        absences = Absences(self.plan, [entry.state for entry in self._journal.entries])
        last = []
        for slot in range(self.plan.workers):
            segment = self.plan.segment(Local(self.round, slot))
            _, *own = self.plan.inputs_of(segment, absences)
            last.append(self._journal.entries[own[0]].state if own else None)
        return Call(round=self.round, globe=self.globe, last=tuple(last))

    def offer(self, slot: int) -> Offer:
        """The part of a worker in this round, whose leaf must be as the offer says."""
        offer = self._exchange.offer(self.round, slot)
        if offer is None or offer.globe != self.globe:
            raise RunError(f"worker {slot} has offered nothing for round {self.round}")
        leaf = self._exchange.get(offer.leaf)
        delta = delta_of(leaf)
        if (absence_of(leaf), delta and delta.hex()) != (offer.absence, offer.delta):
            raise RunError(f"worker {slot} offers another delta than its state of the round names")
        return offer

    def settle(self, absences: Mapping[int, Absence]) -> list[Entry]:
        """Decide that the round goes on without `absences`, and put its parts into the trace."""
        offers = {
            slot: self.offer(slot) for slot in range(self.plan.workers) if slot not in absences
        }
        told = [absences.get(slot) for slot in range(self.plan.workers)]
        deltas = [offers[slot].delta if slot in offers else None for slot in range(len(told))]
        decision = Decision(round=self.round, deltas=tuple(deltas), absences=tuple(told))
        began = time.perf_counter()
        sent = {slot: self._exchange.get(name) for slot, name in enumerate(deltas) if name}
        merged = merge_round(self.manifest, self.round, self._exchange.get(self.globe), sent)
        self._merge_s = time.perf_counter() - began
        self._exchange.put(merged)
        self._exchange.post(decision)
        # Only now, for with its parts in the journal the round is not to be decided anew.
        self._trained = _mean([offer.trained for offer in offers.values() if offer.delta])
        entries = [self._enter(slot, offers.get(slot), absences) for slot in range(len(told))]
        self._merged = merged
        return entries

    def finish(self, validated: tuple[Validated, ...]) -> Entry:
        """Put the merge of the round into the trace, and so go on to the next."""
        if self._merged is None:
            raise RunError(f"round {self.round} is not decided")
        counters = Counters.of(self._merged)
        entry = Entry(
            number=len(self._journal.entries),
            state=self._merged.hash.hex(),
            step=counters.step,
            stop=counters.stop,
            trained=self._trained,
            validated=validated,
            train_s=self._merge_s,
        )
        self._journal.append(entry, self._exchange.path_of(entry.state))
        self._merged = None
        return entry

    def state_after(self, number: int) -> str | None:
        """The hash of the merge of round `number`, if it is known."""
        if number < self.round:
            return self._journal.entries[self.plan.before(number + 1)].state
        if number == self.round and self._merged is not None:
            return self._merged.hash.hex()
        return None

    def decided(self) -> dict[int, Absence] | None:
        """Whom the round goes on without, if that was decided before a crash."""
        decision = self._exchange.decision(self.round)
        if decision is None:
            return None
        return {slot: why for slot, why in enumerate(decision.absences) if why is not None}

    def _enter(self, slot: int, offer: Offer | None, absences: Mapping[int, Absence]) -> Entry:
        number = len(self._journal.entries)
        if offer is None:
            state = absent_in(self.plan, number - 1, absences[slot])
            step = Counters.of(state).step
            entry = Entry(number=number, state=state.hash.hex(), step=step)
            self._journal.append(entry, state)
            return entry
        counters = Counters.of(self._exchange.get(offer.leaf))
        entry = Entry(
            number=number,
            state=offer.leaf,
            step=counters.step,
            stop=counters.stop,
            trained=offer.trained,
            train_s=offer.train_s,
            trace_s=offer.trace_s,
            sent_bytes=offer.delta_bytes * (self.plan.workers - 1),
            energy=offer.energy,
        )
        self._journal.append(entry, self._exchange.path_of(offer.leaf))
        return entry

    def _take_up(self) -> None:
        """Go back to the last round before which all that it starts from is here, whole."""
        while self.has_begun:
            self._journal.rewind(self.plan.before(self.round) + 1)
            if self.is_complete or self._can_go_on():
                break
            self._journal.rewind(self.plan.before(self.round))
        number = self.round if self.has_begun else 0
        self._exchange.forget(number + 1)
        try:
            decided = self.decided() if self.has_begun and not self.is_complete else None
            for slot in range(self.plan.workers):
                if decided is not None and slot not in decided:
                    self._exchange.get(self.offer(slot).delta or self.globe)
        except (RunError, StateError):
            self._exchange.forget(number)
        if not self.has_begun:
            self._exchange.forget(0)

    def _can_go_on(self) -> bool:
        call = self.call()
        return all(self._exchange.has(name) for name in (call.globe, *call.last) if name)


def _mean(parts: list[Measured | None]) -> Measured | None:
    figures = [part for part in parts if part is not None]
    if not figures:
        return None
    examples = sum(one.examples for one in figures)
    return Measured(
        loss=sum(one.loss * one.examples for one in figures) / examples,
        metrics={
            name: sum(one.metrics[name] * one.examples for one in figures) / examples
            for name in figures[0].metrics
        },
        examples=examples,
    )
