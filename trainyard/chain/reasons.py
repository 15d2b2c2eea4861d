"""Why the market refused, as a sentence for people."""

from collections.abc import Callable, Mapping
from typing import Any

from trainyard.chain.codec import Refusal, market_codec
from trainyard.protocol.market import DisputeState, Policy, SeatState, TaskState

_SENTENCES = {
    "MarketAlreadyAnswered": "slot {slot} of task {id} has answered already",
    "MarketAlreadyPinged": "slot {slot} of task {id} was asked already and has time until {pongBy}",
    "MarketAlreadyRegistered": "{account} is registered already",
    "MarketBondInUse": "seats hold {locked} of the bond of {worker}",
    "MarketBondTooLow": "a bond of {bond} is too low: it takes {minimum}",
    "MarketConflict": "{account} has a part in task {id} that rules this one out",
    "MarketDrawPending": "the draw of task {id} waits for block {drawBlock}",
    "MarketInsufficientCredit": "{account} has a credit of {credit}, and needs {needed}",
    "MarketInvalidParams": "the market's parameters cannot work: {field}",
    "MarketInvalidTerms": "the task's terms cannot work: {field}",
    "MarketNoCode": "there is no contract at {part}",
    "MarketNoSuchSegment": "task {id} has no segment {segment}",
    "MarketNoVacancy": "task {id} has no free slot",
    "MarketNotAllowed": "{account} is not on the list of task {id}",
    "MarketNotParty": "{caller} is neither requester nor worker of task {id}",
    "MarketNotPinged": "nobody asked slot {slot} of task {id} for a sign of life",
    "MarketNotRegistered": "{account} is not registered as a worker",
    "MarketNotRequester": "{caller} did not post task {id}",
    "MarketNotRetired": "{account} has not retired",
    "MarketNotSeatHolder": "{caller} does not hold seat {seat} of task {id}",
    "MarketNotSlotHolder": "{caller} does not hold slot {slot} of task {id}",
    "MarketNotToken": "the market's currency is the chain's own, which knows no permits",
    "MarketRecordTooShort": "{account} has {settled} settled tasks on record, and needs {needed}",
    "MarketSignatureExpired": "the signature was good until {deadline}",
    "MarketTokenTookMore": "the token took {taken} where {asked} was asked for",
    "MarketTooEarly": "too early for task {id}: it is possible from {opensAt} on",
    "MarketTooFewAuditors": "{available} auditors can be found, and the task needs {needed}",
    "MarketTooLate": "too late for task {id}: the deadline was {deadline}",
    "MarketTransferFailed": "{amount} could not be sent to {to}",
    "MarketUnbonding": "the bond of {worker} is held until {until}",
    "MarketUnexpectedDispute": "the dispute about segment {segment} of task {id} is {state}",
    "MarketUnexpectedSeat": "seat {seat} of task {id} is {state}",
    "MarketUnexpectedState": "task {id} is {state}",
    "MarketWrongAnswer": "the answer is not what seat {seat} of task {id} committed to",
    "MarketWrongClaim": "this is not the claim of task {id}",
    "MarketWrongClass": "{account} is of class {envClass}, and the task is for class {needed}",
    "MarketWrongLength": "{given} values were given where {expected} belong",
    "MarketWrongPolicy": "this is not done under the policy of task {id}, {policy}",
    "MarketWrongProof": "the proof does not fit segment {segment} of task {id}",
    "MarketWrongReveal": "this is not what slot {index} of task {id} committed to",
    "MarketWrongShares": "these are not the shares that the slots of task {id} agreed on",
    "MarketWrongSignature": "the signature is not that of {signer}",
    "MarketWrongValue": "a value of {sent} was sent where {expected} belongs",
    "MarketZeroCommitment": "the commitment for task {id} is zero",
    "MarketZeroDigest": "a digest is zero",
    "EnforcedPause": "the market takes no new tasks at present",
    "OwnableUnauthorizedAccount": "{account} does not own the market",
    "Error": "{text}",
}
_STATES: dict[str, Callable[[int], Any]] = {
    "MarketUnexpectedDispute": DisputeState,
    "MarketUnexpectedSeat": SeatState,
    "MarketUnexpectedState": TaskState,
    "MarketWrongPolicy": Policy,
}


def sentence(data: bytes) -> str:
    """The reason that the bytes of a revert hold."""
    refusal = market_codec().refusal(data)
    if refusal is None:
        return f"refused without a reason that we know (0x{data.hex()})"
    template = _SENTENCES.get(refusal.name)
    if template is None:
        values = ", ".join(f"{name} {value}" for name, value in refusal.args.items())
        return f"refused with {refusal.name}({values})"
    return template.format_map(_shown(refusal))


def _shown(refusal: Refusal) -> Mapping[str, str]:
    return {name: _text(refusal.name, name, value) for name, value in refusal.args.items()}


def _text(error: str, name: str, value: Any) -> str:
    if name in ("state", "policy"):
        return str(_STATES[error](value).name).lower()
    if name == "field":
        # The name of a field, as ASCII.
        return bytes(value).rstrip(b"\0").decode("ascii", "replace")
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
