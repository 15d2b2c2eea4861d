"""Profiles: what a worker says of itself, whose digest is on chain with its registration. No I/O.

The digest makes it the worker's own word, wherever the bytes came from. That it is true is another
matter: a gateway may be named that is not there, or that serves nothing.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from trainyard.protocol.errors import PermanentError
from trainyard.protocol.ledger.book import ZERO_WORD, Book
from trainyard.protocol.manifest.canonical import canonical

LARGEST_PROFILE_BYTES = 8 << 10
# Of tasks that were given up, the last ones.
MOST_NOTICES, LONGEST_REASON = 8, 200
# Whose gateways are asked for what a task needs; a task may have more slots than that.
MOST_PROFILES = 32
_ORIGIN = re.compile(
    r"https?://(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])"
    r"(?::([1-9][0-9]{0,4}))?"
)


class ProfileError(PermanentError, ValueError):
    """A document that is no profile."""


def gateway_address(text: str) -> str:
    """A gateway as workers name theirs: without a path, so that none can be led elsewhere by it."""
    found = _ORIGIN.fullmatch(text)
    if found is None or int(found[1] or 1) > 65_535:
        raise ValueError('a gateway is "http://host:port" or "https://host", without a path')
    return text


GatewayAddress = Annotated[str, Field(max_length=300), AfterValidator(gateway_address)]


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else " " for one in text)


class Notice(BaseModel):
    """What the worker says of a task that it gave up, for whoever posted it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    task: Annotated[int, Field(ge=1, le=2**53 - 1)]
    reason: Annotated[str, Field(min_length=1, max_length=LONGEST_REASON)]

    @classmethod
    def of(cls, task: int, reason: str) -> "Notice":
        """In one line, as long as it may be."""
        line = _printable(reason).strip()
        short = line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"
        return cls(task=task, reason=short or "no reason is known")


class Profile(BaseModel):
    # Later versions may say more; what is said here is understood the same.
    model_config = ConfigDict(frozen=True, extra="ignore")

    version: Literal[1] = 1
    agent: str = Field(max_length=128)
    env_class: str = Field(alias="class", pattern="^[0-9a-f]{64}$")
    # Where all that the worker has to show can be fetched.
    gateway: GatewayAddress | None = None
    notices: Annotated[tuple[Notice, ...], Field(max_length=MOST_NOTICES)] | None = None

    @classmethod
    def of(
        cls,
        agent: str,
        env_class: bytes,
        gateway: str | None = None,
        notices: Sequence[Notice] = (),
    ) -> "Profile":
        given = {"agent": agent, "class": env_class.hex(), "gateway": gateway}
        return cls.model_validate({**given, "notices": tuple(notices) or None})

    def reasons(self, task: int) -> list[str]:
        """Why the worker gave a task up, in its own words, and such that a terminal can show."""
        return [_printable(one.reason) for one in self.notices or () if one.task == task]

    @property
    def data(self) -> bytes:
        """The one text of this profile."""
        document: dict[str, Any] = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return canonical(document)

    @classmethod
    def parse(cls, data: bytes) -> "Profile":
        if len(data) > LARGEST_PROFILE_BYTES:
            raise ProfileError(
                f"a profile of {len(data)} bytes, where at most {LARGEST_PROFILE_BYTES} are read"
            )
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "document"
            raise ProfileError(f"profile: {where[:64]}: {first['msg']}") from None


def profiles_of(book: Book, number: int) -> tuple[bytes, ...]:
    """The profiles of those who have or had a slot of a task, the leader's first."""
    task = book.tasks[number]
    holders = [task.slots[task.lead], *task.slots] if task.slots else []
    known = [book.workers.get(slot.worker) for slot in holders if slot.worker is not None]
    digests = [one.profile for one in known if one is not None and one.profile != ZERO_WORD]
    return tuple(dict.fromkeys(digests))[:MOST_PROFILES]
