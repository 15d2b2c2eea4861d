"""Sign-in with Ethereum (EIP-4361): messages exactly as this server asked for them."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

STATEMENT = "Sign in to Trainyard to keep drafts and notifications. This costs nothing."
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z"
_MESSAGE = re.compile(
    r"(?P<domain>[^\n]{1,255}) wants you to sign in with your Ethereum account:\n"
    r"(?P<address>0x[0-9a-fA-F]{40})\n"
    r"\n"
    r"(?P<statement>[^\n]{1,300})\n"
    r"\n"
    r"URI: (?P<uri>[^\n]{1,500})\n"
    r"Version: 1\n"
    r"Chain ID: (?P<chain_id>[1-9]\d{0,17})\n"
    r"Nonce: (?P<nonce>[A-Za-z0-9]{8,64})\n"
    rf"Issued At: (?P<issued_at>{_TIME})"
    rf"(?:\nExpiration Time: (?P<expires_at>{_TIME}))?"
    rf"(?:\nNot Before: (?P<not_before>{_TIME}))?"
)


class SiweError(ValueError):
    """A message that signs nobody in, with the reason."""


@dataclass(frozen=True, slots=True)
class Message:
    domain: str
    address: str
    statement: str
    uri: str
    chain_id: int
    nonce: str
    issued_at: float
    expires_at: float | None
    not_before: float | None


def parse_message(text: str) -> Message:
    """The fields of a message, in the one form that EIP-4361 has for them."""
    found = _MESSAGE.fullmatch(text)
    if found is None:
        raise SiweError("the message is not of the form of EIP-4361")
    return Message(
        domain=found["domain"],
        address=found["address"],
        statement=found["statement"],
        uri=found["uri"],
        chain_id=int(found["chain_id"]),
        nonce=found["nonce"],
        issued_at=_seconds(found["issued_at"]),
        expires_at=_optional(found["expires_at"]),
        not_before=_optional(found["not_before"]),
    )


def check_message(
    message: Message, *, domain: str, uri: str, chain_id: int, now: float, skew_s: float = 60.0
) -> None:
    """Refuse what was signed for somebody else, for another time, or for another page."""
    if message.domain != domain:
        raise SiweError(f"the message is for {message.domain[:80]}, not for {domain}")
    if message.uri != uri:
        raise SiweError(f"the message is for {message.uri[:80]}, not for {uri}")
    if message.chain_id != chain_id:
        raise SiweError(f"the message is for chain {message.chain_id}, not for {chain_id}")
    if message.statement != STATEMENT:
        raise SiweError("the message states something else than this server asked for")
    if message.issued_at > now + skew_s:
        raise SiweError("the message is of the future")
    if message.expires_at is None or message.expires_at <= now:
        raise SiweError("the message has expired, or has no end")
    if message.not_before is not None and message.not_before > now + skew_s:
        raise SiweError("the message is not valid yet")


def stamp(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}Z"


def _optional(text: str | None) -> float | None:
    return None if text is None else _seconds(text)


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError as error:
        raise SiweError(f"{text!r} is no time") from error
