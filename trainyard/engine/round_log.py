"""The trace of a run in rounds, as far as it has come, between the journal and the workers' folder.

The documents of a round are written before the journal's lines, so that after a crash the same
round is taken up with the same decision.
"""

import sys
import time
from collections.abc import Mapping

from trainyard.engine.counting import Counters
from trainyard.engine.energy import Energy
from trainyard.engine.errors import RunError, StateError
from trainyard.engine.examining import Examiner
from trainyard.engine.exchange import Call, Decision, Exchange, Offer
from trainyard.engine.journal import Entry, Journal, Measured, Validated
from trainyard.engine.leaves import Absence, Absences, absent_in
from trainyard.engine.merging import merge_round, plan_of
from trainyard.engine.offers import Signers, drop, keep, keep_signers
from trainyard.engine.state import State
from trainyard.engine.summaries import SUMMARIES, Summaries
from trainyard.protocol.manifest import Local, Manifest


class RoundLog:
    """Which round it is, and all that is known of it and of those before."""

    def __init__(
        self, manifest: Manifest, journal: Journal, exchange: Exchange, signers: Signers
    ) -> None:
        self.manifest, self.plan = manifest, plan_of(manifest)
        self._journal, self._exchange = journal, exchange
        self._examiner = Examiner(manifest, exchange, signers)
        # Those of this round that can be used, by slot.
        self._offers: dict[int, Offer] = {}
        self._held: State | None = None
        self._agreed: State | None = None
        self._merged: State | None = None
        self._merge_s = 0.0
        self._trained: Measured | None = None
        # Of the round that is agreed on: by who took longest, and by all together.
        self._part_s = 0.0
        self._energy: Energy | None = None
        self._summaries = Summaries(journal.folder / SUMMARIES)
        exchange.prepare()
        keep_signers(journal.folder, signers)
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
        if Counters.of(self._exchange.get(start)).step != 0:
            raise StateError("the state before the first round is one of a later step")
        entry = Entry(number=0, state=start, step=0)
        self._journal.append(entry, self._exchange.path_of(start))
        return entry

    def call(self) -> Call:
        return self._call(self.round, self._states)

    def call_after(self, decision: Decision) -> Call | None:
        """The call of the round after one that is agreed on, before that is in the trace."""
        if self._agreed is None or self.round + 1 == self.plan.rounds:
            return None
        first = len(self._journal.entries)
        leaves = [
            absent_in(self.plan, first + slot - 1, decision.told[slot]).hash.hex()
            if offer is None
            else offer.leaf
            for slot, offer in enumerate(decision.offers)
        ]
        states = [*self._states, *leaves, self._agreed.hash.hex()]
        return self._call(self.round + 1, states)

    def _call(self, number: int, states: list[str]) -> Call:
        absences = Absences(self.plan, states)
        last = []
        for slot in range(self.plan.workers):
            segment = self.plan.segment(Local(number, slot))
            _, *own = self.plan.inputs_of(segment, absences)
            last.append(states[own[0]] if own else None)
        return Call(round=number, globe=states[self.plan.before(number)], last=tuple(last))

    @property
    def _states(self) -> list[str]:
        return [entry.state for entry in self._journal.entries]

    def take(self, slot: int) -> None:
        """Take what a worker offers in this round, if it can be used."""
        offer = self._exchange.offer(self.round, slot)
        self._offers[slot] = self._examiner.check(offer, self.round, slot, self._globe)

    def settle(self, absences: Mapping[int, Absence]) -> list[Entry]:
        """Decide that the round goes on without `absences`, and put its parts into the trace."""
        slots = range(self.plan.workers)
        decision = Decision(
            round=self.round,
            offers=tuple(None if slot in absences else self._offers[slot] for slot in slots),
            absences=tuple(absences.get(slot) for slot in slots),
        )
        self.agree(decision)
        return self.enter(decision)

    def agree(self, decision: Decision) -> State:
        """Merge the round by a decision on it, whoever made that, and let workers know of it."""
        began = time.perf_counter()
        sent = self._examiner.deltas(decision, self.round, self._globe)
        merged = merge_round(self.manifest, self.round, self._globe, sent)
        self._merge_s = time.perf_counter() - began
        self._exchange.put(merged)
        for slot, offer in enumerate(decision.offers):
            # The round may have been decided otherwise before, and taken back.
            drop(self._journal.folder, self.round, slot)
            if offer is not None:
                keep(self._journal.folder, offer)
        self._exchange.post(decision)
        self._agreed = merged
        return merged

    def check(self, decision: Decision) -> None:
        """Refuse a decision by parts that no worker can have made; their states must be here."""
        for slot, offer in enumerate(decision.offers):
            if offer is not None:
                self._examiner.check(offer, self.round, slot, self._globe)

    def enter(self, decision: Decision) -> list[Entry]:
        """Put the parts that were agreed on into the trace.

        Only now, for with its parts in the journal the round is not to be decided anew.
        """
        offers = {offer.slot: offer for offer in decision.offers if offer is not None}
        self._trained = _mean([offer.trained for offer in offers.values() if offer.delta])
        self._part_s = max((offer.train_s for offer in offers.values()), default=0.0)
        self._energy = _added([offer.energy for offer in offers.values()])
        slots = range(self.plan.workers)
        entries = [self._enter(slot, offers.get(slot), decision.told) for slot in slots]
        self._merged = self._agreed
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
        # All workers as one: at the pace of their parts, not of the merge.
        shown = {"train_s": self._part_s, "energy": self._energy}
        self._summaries.write(entry.model_copy(update=shown))
        self._agreed = self._merged = None
        self._offers.clear()
        return entry

    def globe_before(self, number: int) -> str | None:
        """The hash of the global state before round `number`, if it is known."""
        place = self.plan.before(number)
        return self._journal.entries[place].state if place < len(self._journal.entries) else None

    def go_back(self, number: int) -> None:
        """Forget round `number` and all later ones."""
        self._journal.rewind(self.plan.before(number) + 1)
        self._exchange.forget(number)
        self._offers.clear()
        self._agreed = self._merged = None

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
        return None if decision is None else decision.told

    @property
    def _globe(self) -> State:
        if self._held is None or self._held.hash.hex() != self.globe:
            self._held = self._exchange.get(self.globe)
        return self._held

    def _enter(self, slot: int, offer: Offer | None, absences: Mapping[int, Absence]) -> Entry:
        number = len(self._journal.entries)
        if offer is None:
            state = absent_in(self.plan, number - 1, absences[slot])
            step = Counters.of(state).step
            entry = Entry(number=number, state=state.hash.hex(), step=step)
            self._journal.append(entry, state)
            return entry
        leaf = self._exchange.get(offer.leaf)
        counters = Counters.of(leaf)
        entry = Entry(
            number=number,
            state=offer.leaf,
            step=counters.step,
            stop=counters.stop,
            trained=offer.trained,
            train_s=offer.train_s,
            trace_s=offer.trace_s,
            # All others fetch both: the delta to merge it, the leaf to vouch for the trace.
            sent_bytes=(offer.delta_bytes + leaf.size) * (self.plan.workers - 1),
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
            if self.has_begun and not self.is_complete:
                self._take_up_offers()
        except StateError:
            self._exchange.forget(number)
        if not self.has_begun:
            self._exchange.forget(0)

    def _take_up_offers(self) -> None:
        """Take the offers again that a round was decided by before a crash."""
        decision = self._exchange.decision(self.round)
        offers = () if decision is None else decision.offers
        for slot, offer in enumerate(offers):
            if offer is not None:
                self._offers[slot] = self._examiner.check(offer, self.round, slot, self._globe)

    def _can_go_on(self) -> bool:
        call = self.call()
        return all(self._exchange.has(name) for name in (call.globe, *call.last) if name)


def _mean(parts: list[Measured | None]) -> Measured | None:
    """Whatever the figures are, a run does not end by them: they were decided on already."""
    figures = [part for part in parts if part is not None]
    examples = sum(one.examples for one in figures)
    if not examples:
        return None
    shares = [one.examples / examples for one in figures]
    common = set.intersection(*(set(one.metrics) for one in figures))
    return Measured(
        loss=sum(one.loss * share for one, share in zip(figures, shares, strict=True)),
        metrics={
            name: sum(one.metrics[name] * share for one, share in zip(figures, shares, strict=True))
            for name in figures[0].metrics
            if name in common
        },
        examples=examples,
    )


def _added(estimates: list[Energy | None]) -> Energy | None:
    known = [one for one in estimates if one is not None]
    if not known:
        return None
    joules = min(sum(one.joules for one in known), sys.float_info.max)
    return Energy(joules=joules, by=known[0].by)
