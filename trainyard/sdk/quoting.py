"""What a task will cost, how long it will take, and how surely a cheat is found: before it is paid.

One batch is rehearsed in the local sandbox, and prices are those of the open market.
"""

from dataclasses import dataclass
from typing import Any

from trainyard.engine.rehearsing import rehearse
from trainyard.protocol.market import Terms
from trainyard.protocol.offering import (
    HALF,
    TENTH,
    detection_of,
    detection_words,
    likely_cost,
    warnings_of,
)
from trainyard.protocol.telling import amount, counted
from trainyard.sdk.market import Market
from trainyard.sdk.posting import Offer

_WINDOWS = ("join_for", "train_for", "audit_for", "answer_for", "challenge_for")


@dataclass(frozen=True, slots=True)
class Quote:
    """A price, a time, and what may go wrong. `terms` can be posted as they are."""

    terms: Terms
    # What is locked, and what of it is likely spent.
    at_most_wei: int
    likely_wei: int
    # By the rehearsal on this machine; None if there was none.
    seconds_per_step: float | None
    train_s: float | None
    first_loss: float | None
    # The chance that a worker is found who fakes half of its work, or a tenth of it.
    detection_of_half: float | None
    detection_of_tenth: float | None
    # If everybody is as slow as may be, that long until the money is free again.
    longest_s: int
    workers_free: int
    auditors_free: int
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """For people."""
        found = [f"price     at most {amount(self.at_most_wei)}, likely {amount(self.likely_wei)}"]
        if self.train_s is not None and self.seconds_per_step is not None:
            found.append(
                f"time      about {self.train_s:,.0f} s of training, at {self.seconds_per_step:.3f}"
                f" s a step as here; then {self.terms.challenge_for} s for challenges"
            )
        found += [
            f"trust     {words}"
            for fraction, share in ((HALF, "half"), (TENTH, "a tenth"))
            if (words := detection_words(self.terms, fraction, share)) is not None
        ]
        found.append(
            f"worst     {amount(self.at_most_wei)} are locked for {self.longest_s:,} s, and come "
            "back if nobody delivers; a result that is wrong and not found costs the whole price"
        )
        found.append(
            f"market    {counted(self.workers_free, 'worker')} free, "
            f"{counted(self.auditors_free, 'auditor')} can be drawn"
        )
        return [*found, *(f"warning   {one}" for one in self.warnings)]

    def document(self) -> dict[str, Any]:
        """For programs; amounts as text, since JSON's numbers are too small for them."""
        found: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        terms = {name: getattr(self.terms, name) for name in Terms.__dataclass_fields__}
        for name, value in terms.items():
            if isinstance(value, bytes):
                terms[name] = f"0x{value.hex()}"
        for name in ("reward", "stake", "audit_fee"):
            terms[name] = str(terms[name])
        found["terms"] = terms | {"policy": self.terms.policy.name.lower()}
        found |= {name: str(found[name]) for name in ("at_most_wei", "likely_wei")}
        return found | {"warnings": list(self.warnings)}


def quote_for(market: Market, offer: Offer, *, with_rehearsal: bool = True) -> Quote:
    """The quote of an offer; RunError if one batch of it does not even train here."""
    terms, manifest = offer.terms, offer.manifest
    rehearsal = None
    if with_rehearsal:
        rehearsal = rehearse(manifest, market.content, market.confinement())
    per_step = None if rehearsal is None else rehearsal.seconds_per_step
    train_s = None if rehearsal is None else rehearsal.train_s(manifest)
    warnings = warnings_of(terms, offer.supply, offer.params)
    if train_s is not None and train_s > terms.train_for:
        warnings.append(
            f"training takes about {train_s:,.0f} s as here, and workers have {terms.train_for:,} "
            "s: give a later deadline, or nobody may be done in time"
        )
    return Quote(
        terms=terms,
        at_most_wei=terms.escrow,
        likely_wei=likely_cost(terms),
        seconds_per_step=per_step,
        train_s=train_s,
        first_loss=None if rehearsal is None else rehearsal.first_loss,
        detection_of_half=detection_of(terms.segments, terms.audits, HALF),
        detection_of_tenth=detection_of(terms.segments, terms.audits, TENTH),
        longest_s=sum(getattr(terms, name) for name in _WINDOWS),
        workers_free=offer.supply.free,
        auditors_free=offer.supply.auditors,
        warnings=tuple(warnings),
    )
