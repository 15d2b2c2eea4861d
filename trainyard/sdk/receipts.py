"""Receipts: what was trained, checked and paid, signed by who paid for it.

All of it is on chain or in content, so a receipt proves nothing by itself: it names what is to be
looked up, and `trainyard verify` looks all of it up again.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainyard.protocol.ledger import Event
from trainyard.protocol.ledger.book import ZERO_WORD, Book
from trainyard.protocol.manifest.canonical import canonical
from trainyard.protocol.telling import task_of
from trainyard.sdk.errors import WrongReceiptError

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

_Hex32 = Annotated[str, Field(pattern="^0x[0-9a-f]{64}$")]
_Address = Annotated[str, Field(pattern="^0x[0-9a-fA-F]{40}$")]
_Wei = Annotated[str, Field(pattern="^[0-9]{1,40}$")]
_MOST_BYTES = 16 << 20
_INTRODUCTION = "trainyard receipt 1\n"
_REVEALS = ("AuditRevealed", "ScoresRevealed")


class Logged(Protocol):
    """An event and its transaction, whoever has read them from the chain."""

    @property
    def event(self) -> Event: ...

    @property
    def transaction(self) -> bytes: ...


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AuditLine(_Part):
    """A drawn segment: who recomputed it, what it found, and what the workers had claimed.

    The answer is zero where the member has revealed none, and what was opened where nobody did.
    Where results are scored, what the member gave to each entry, in millionths.
    """

    segment: Annotated[int, Field(ge=0)]
    member: _Address
    answer: _Hex32
    opened: _Hex32
    scores: tuple[Annotated[int, Field(ge=0)], ...] = ()


class DisputeLine(_Part):
    segment: Annotated[int, Field(ge=0)]
    outcome: str
    truth: _Hex32


class Receipt(_Part):
    """What was trained, checked and paid in one task, signed by who paid for it.

    It proves nothing by itself: it names what `trainyard verify` looks up again, on chain and in
    content.
    """

    version: Literal[1] = 1
    chain_id: Annotated[int, Field(ge=1)]
    market: _Address
    start_block: Annotated[int, Field(ge=0)]
    task: Annotated[int, Field(ge=1)]
    requester: _Address
    outcome: str
    failure: str | None = None
    policy: str
    manifest: _Hex32
    environment_class: _Hex32
    segments: Annotated[int, Field(ge=0)]
    result: _Hex32 | None = None
    root: _Hex32 | None = None
    # What the requester took as the result: the hash of the last state.
    state: _Hex32 | None = None
    workers: tuple[_Address | None, ...]
    audits: tuple[AuditLine, ...] = ()
    disputes: tuple[DisputeLine, ...] = ()
    escrow_wei: _Wei
    credited_wei: dict[_Address, _Wei]
    transactions: tuple[_Hex32, ...]
    # The requester's wallet over all of the above (EIP-191); None if nobody signed.
    signature: Annotated[str, Field(pattern="^0x[0-9a-f]{130}$")] | None = None

    @property
    def text(self) -> str:
        """What is signed."""
        return _INTRODUCTION + canonical(self._unsigned()).decode()

    def _unsigned(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude={"signature"})

    def signed(self, account: "LocalAccount") -> "Receipt":
        from eth_account.messages import encode_defunct

        found = account.sign_message(encode_defunct(text=self.text))
        return self.model_copy(update={"signature": f"0x{bytes(found.signature).hex()}"})

    @property
    def signer(self) -> str | None:
        """Whose signature it is; None for none, or one of nobody."""
        if self.signature is None:
            return None
        from eth_account import Account
        from eth_account.messages import encode_defunct

        try:
            message = encode_defunct(text=self.text)
            return str(Account.recover_message(message, signature=self.signature))
        except Exception:
            # Whatever the libraries say of bytes that are no signature.
            return None

    def save(self, path: Path | str) -> None:
        text = json.dumps(self.model_dump(mode="json", exclude_none=True), indent=2)
        Path(path).write_text(text + "\n")

    @classmethod
    def load(cls, path: Path | str) -> "Receipt":
        data = Path(path).read_bytes()
        if len(data) > _MOST_BYTES:
            raise WrongReceiptError(f"{path} has {len(data)} bytes: it is no receipt")
        return cls.parse(data, str(path))

    @classmethod
    def parse(cls, data: bytes, where: str) -> "Receipt":
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"])) or "the document"
            raise WrongReceiptError(
                f"{where} is no receipt of trainyard.fit: {place}: {first['msg']}"
            ) from None


def receipt_of(
    seen: Sequence[Logged],
    book: Book,
    number: int,
    *,
    chain_id: int,
    market: str,
    start_block: int,
    state: bytes | None = None,
) -> Receipt:
    """The receipt of a task, as the chain tells it."""
    task = book.tasks[number]
    lead = task.slots[task.lead].claim if task.slots else None
    mine = [one for one in seen if task_of(one.event) == number]
    credited: dict[str, int] = {}
    for one in mine:
        if one.event.name == "Credited":
            who = one.event.args["account"]
            credited[who] = credited.get(who, 0) + one.event.args["amount"]
    # What a seat holds before that is a commitment, and no answer.
    revealed = {one.event.args["seat"] for one in mine if one.event.name in _REVEALS}
    return Receipt(
        chain_id=chain_id,
        market=market,
        start_block=start_block,
        task=number,
        requester=task.requester,
        outcome=task.state.name.lower(),
        failure=None if task.failure is None else task.failure.name.lower(),
        policy=task.terms.policy.name.lower(),
        manifest=_hex(task.terms.manifest),
        environment_class=_hex(task.terms.env_class),
        segments=task.terms.segments,
        result=None if lead is None else _hex(lead.result),
        root=None if lead is None else _hex(lead.root),
        state=None if state is None else _hex(state),
        workers=tuple(slot.worker for slot in task.slots),
        audits=tuple(
            AuditLine(
                segment=seat.segment,
                member=seat.member,
                answer=_hex(seat.answer if index in revealed else ZERO_WORD),
                opened=_hex(seat.opened),
                scores=seat.scores,
            )
            for index, seat in enumerate(task.own_panel.seats)
        ),
        disputes=tuple(
            DisputeLine(segment=segment, outcome=one.state.name.lower(), truth=_hex(one.truth))
            for segment, one in sorted(task.disputes.items())
        ),
        escrow_wei=str(task.terms.escrow),
        credited_wei={who: str(wei) for who, wei in sorted(credited.items())},
        transactions=tuple(dict.fromkeys(_hex(one.transaction) for one in mine)),
    )


def _hex(data: bytes) -> str:
    return f"0x{data.hex()}"
