"""Behind a signature: drafts and notifications."""

from typing import Annotated, Any, Literal

from pydantic import Field

from dapp.schemas.values import Address, Answer, Hex32, Question, Seconds


class Nonce(Answer):
    """For the message of EIP-4361; good once, and until it expires."""

    nonce: str
    domain: str
    uri: str
    chain_id: int
    statement: str
    issued_at: str
    expires_at: str


class SignIn(Question):
    """The message exactly as it was signed, and its signature (EIP-191)."""

    message: Annotated[str, Field(max_length=2_000, examples=["the message of EIP-4361"])]
    signature: Annotated[
        str, Field(pattern="^0x[0-9a-fA-F]{130}$", max_length=132, examples=["0x" + "ab" * 65])
    ]


class Session(Answer):
    """Who is signed in. The cookie is `HttpOnly`; changes need the header X-CSRF-Token."""

    address: Address | None
    expires_at: Seconds | None = None
    csrf_token: str | None = None


class DraftWrite(Question):
    title: Annotated[str, Field(max_length=200)] = ""
    # Whatever the page needs to go on with; at most `limits.draft_bytes` of JSON.
    document: dict[str, Any]


class Draft(Answer):
    id: str
    title: str
    document: dict[str, Any]
    created_at: Seconds
    updated_at: Seconds


class DraftPage(Answer):
    items: list[Draft]


class Notification(Answer):
    id: int
    task: int | None
    kind: Literal["joined", "started", "submitted", "disputed", "settled", "failed", "move", "paid"]
    text: str
    time: Seconds
    transaction: Hex32 | None = None
    is_read: bool


class NotificationPage(Answer):
    items: list[Notification]
    unread: int
    next: str | None


class ReadUpTo(Question):
    """Marks this notification and all before it as read."""

    id: Annotated[int, Field(ge=0, le=2**53 - 1)]
