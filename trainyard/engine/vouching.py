"""Who answers for the parts of a run in rounds: the signed offers beside its trace."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from trainyard.engine.errors import StateError
from trainyard.engine.exchange import Offer
from trainyard.engine.leaves import Absences
from trainyard.engine.offers import SIGNERS, Signers, check_signed, name_of, read_signers
from trainyard.protocol.manifest import Local, Manifest, RoundsPlan

Read = Callable[[str], bytes | None]
"""Gives a file of the run's offers by its name; None if there is none."""


@dataclass(frozen=True, slots=True)
class Voucher:
    """The address that signed a part, or what is wrong with what there is of a signature."""

    signer: str | None = None
    problem: str = ""


def voucher_of(
    manifest: Manifest,
    states: Sequence[str],
    segment: int,
    read: Read,
    signers: Signers | None = None,
) -> Voucher | None:
    """Who signed a segment of this trace; None for one that nobody signs.

    Nobody signs merges, which anybody can make, and parts of workers that were not there. Without
    `signers`, who signs is what the run says: that binds those addresses, whoever they are.
    """
    plan = manifest.plan
    if not isinstance(plan, RoundsPlan):
        return None
    part = plan.part(segment)
    why = Absences(plan, states).why(segment + 1)
    if not isinstance(part, Local) or (why is not None and why.is_told):
        return None
    try:
        offer = _offer(read, part)
        claimed = states[plan.before(part.round)], states[segment + 1]
        if (offer.round, offer.slot) != (part.round, part.slot) or (
            (offer.globe, offer.leaf) != claimed
        ):
            raise StateError(f"worker {part.slot} signed something else than this part")
        if signers is None:
            signers = read_signers(read(SIGNERS) or b"")
        if len(signers) != plan.workers:
            raise StateError(f"{len(signers)} sign in a run of {plan.workers} workers")
        return Voucher(check_signed(offer, manifest, signers))
    except StateError as error:
        return Voucher(problem=str(error))


def _offer(read: Read, part: Local) -> Offer:
    data = read(name_of(part.round, part.slot))
    if data is None:
        raise StateError(f"no offer of worker {part.slot} in round {part.round} is here")
    try:
        return Offer.model_validate_json(data)
    except ValidationError as error:
        raise StateError(f"the offer of worker {part.slot} is none of a round") from error
