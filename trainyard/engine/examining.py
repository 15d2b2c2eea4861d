"""What is asked of an offer before anybody uses it: it comes from a stranger."""

import math

from trainyard.engine.counting import Counters, Stop
from trainyard.engine.deltas import is_finite, read_delta, shared_names
from trainyard.engine.errors import StateError
from trainyard.engine.exchange import Decision, Exchange, Offer
from trainyard.engine.journal import Measured
from trainyard.engine.leaves import COUNTED, Absence, absent, absent_in, delta_of
from trainyard.engine.limits import most_state_bytes
from trainyard.engine.merging import check_quorum, plan_of, rounds_of
from trainyard.engine.offers import Signers, check_signed
from trainyard.engine.state import OPTIMIZER, State
from trainyard.protocol.manifest import Local, Manifest

# Sums of as many numbers of 32 bits as a run can have steps are smaller.
_MOST_FIGURE = 1e60


def has_numbers(figures: Measured) -> bool:
    """Whether these are figures of some examples, with which one can go on computing."""
    values = (figures.loss, *figures.metrics.values())
    return figures.examples > 0 and all(
        math.isfinite(one) and abs(one) <= _MOST_FIGURE for one in values
    )


class Examiner:
    """Knows a run, the folder where its workers meet, and by whom each of them signs."""

    def __init__(self, manifest: Manifest, exchange: Exchange, signers: Signers) -> None:
        self._manifest, self._plan = manifest, plan_of(manifest)
        self._exchange, self._signers = exchange, signers
        self._most_bytes = most_state_bytes(manifest)
        if len(signers) != self._plan.workers:
            raise StateError(f"{len(signers)} sign in a run of {self._plan.workers} workers")

    def check(self, offer: Offer | None, number: int, slot: int, globe: State) -> Offer:
        """The offer, if worker `slot` can have made it in round `number`."""
        offer = self._vouched(offer, number, slot, globe)
        leaf = self._exchange.get(offer.leaf, self._most_bytes)
        if offer.absence is not None:
            if leaf != self._absent(offer, globe):
                raise StateError(f"worker {slot} offers something else than that it has nothing")
            return offer
        digest = delta_of(leaf)
        if digest is None or digest.hex() != offer.delta:
            raise StateError(
                f"worker {slot} offers another delta than its state of the round names"
            )
        _, last = self._plan.bounds(self._plan.segment(Local(number, slot)))
        counters = Counters.of(leaf)
        if (counters.step, counters.stop) != (last, Stop.NO):
            raise StateError(f"the state that worker {slot} offers is not of the round's end")
        self._check_kept(leaf, globe, slot)
        self._delta(offer, globe)
        return offer

    def deltas(self, decision: Decision, number: int, globe: State) -> dict[int, State]:
        """What is merged by a decision, by slot. Who leads the run is a stranger as well."""
        if len(decision.offers) != self._plan.workers:
            raise StateError(f"the decision on round {number} is of another number of workers")
        there = {slot: one for slot, one in enumerate(decision.offers) if one is not None}
        for slot, offer in there.items():
            self._vouched(offer, number, slot, globe)
        is_in = [offer.absence is not Absence.OVER for offer in there.values()]
        check_quorum(self._manifest, globe, sum(is_in))
        return {slot: self._delta(offer, globe) for slot, offer in there.items() if offer.delta}

    def _vouched(self, offer: Offer | None, number: int, slot: int, globe: State) -> Offer:
        if offer is None or offer.globe != globe.hash.hex():
            raise StateError(f"worker {slot} has offered nothing for round {number}")
        if (offer.round, offer.slot) != (number, slot):
            raise StateError(
                f"worker {slot} offers in round {number} what worker {offer.slot} had in round "
                f"{offer.round}"
            )
        check_signed(offer, self._manifest, self._signers)
        self._check_figures(offer)
        return offer

    def _check_figures(self, offer: Offer) -> None:
        """Nothing depends on them, and nobody signs them. But they are added up and shown."""
        if offer.trained is None:
            return
        names = {metric.title for metric in self._manifest.training.metrics}
        if set(offer.trained.metrics) != names or not has_numbers(offer.trained):
            raise StateError(f"the figures of worker {offer.slot} are none of this run's")

    def _absent(self, offer: Offer, globe: State) -> State | None:
        """What a worker keeps of a round that it has nothing of; None if it must have something."""
        counters = Counters.of(globe)
        if offer.absence is Absence.OVER:
            return None if counters.stop is Stop.NO else absent(counters, Absence.OVER)
        segment = self._plan.segment(Local(offer.round, offer.slot))
        return absent_in(self._plan, segment, Absence.DIVERGED)

    def _check_kept(self, leaf: State, globe: State, slot: int) -> None:
        """Everybody fetches a leaf, so it has no more than what a worker keeps of a round."""
        shared = shared_names(globe)
        for name, tensor in leaf.tensors.items():
            if name in COUNTED or (self._plan.goes_on and name.startswith(OPTIMIZER)):
                continue
            like = globe.tensors.get(name) if name not in shared else None
            if like is None or (tensor.shape, tensor.dtype) != (like.shape, like.dtype):
                raise StateError(
                    f"the state that worker {slot} offers has {name}, which nobody keeps of a round"
                )

    def _delta(self, offer: Offer, globe: State) -> State:
        delta = self._exchange.get(offer.delta or "", self._most_bytes)
        compression = rounds_of(self._manifest).compression
        moved = read_delta(globe, delta, compression, self._manifest.model.still)
        if not is_finite(moved):
            raise StateError(f"the delta of worker {offer.slot} has values that are no numbers")
        return delta
