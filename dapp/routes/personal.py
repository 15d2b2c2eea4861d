"""Sign-in, drafts and notifications."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from dapp.personal import drafts, sessions
from dapp.personal.notifications import mark_read, notifications
from dapp.personal.sessions import SignedIn
from dapp.routes.documented import cursor_query, refusals
from dapp.schemas import (
    Draft,
    DraftPage,
    DraftWrite,
    Nonce,
    NotificationPage,
    ReadUpTo,
    Session,
    SignIn,
)
from dapp.schemas.values import Address
from dapp.services import ServicesDep

router = APIRouter(tags=["personal"], responses=refusals(401))
DraftId = Annotated[str, Path(pattern="^[0-9a-f]{24}$", examples=["0" * 24])]
_CHANGES = refusals(401, 403, 404, 409, 413)


@router.get("/auth/nonce")
def nonce(services: ServicesDep, request: Request, address: Address) -> Nonce:
    """The fields of the message to sign."""
    return sessions.make_nonce(services, request, address)


@router.post("/auth/sign-in")
def sign_in(given: SignIn, services: ServicesDep, request: Request, response: Response) -> Session:
    """Sign in with a signed message; sets the session's cookie."""
    token, session = sessions.sign_in(services, request, given)
    response.set_cookie(
        sessions.COOKIE,
        token,
        max_age=sessions.SESSION_S,
        path="/api/",
        httponly=True,
        samesite="strict",
        secure=sessions.origin_of(services, request).startswith("https://"),
    )
    return session


@router.get("/auth/session")
def session(services: ServicesDep, request: Request) -> Session:
    """Who is signed in; nobody is no error."""
    row = sessions.session_of(services, request)
    if row is None:
        return Session(address=None)
    return Session(address=row.address, expires_at=row.expires_at, csrf_token=row.csrf)


@router.post("/auth/sign-out", status_code=204, responses=_CHANGES)
def sign_out(services: ServicesDep, me: SignedIn, response: Response) -> None:
    """End the session."""
    sessions.sign_out(services, me)
    response.delete_cookie(sessions.COOKIE, path="/api/")


@router.get("/drafts")
def list_drafts(services: ServicesDep, me: SignedIn) -> DraftPage:
    """One's own drafts, the latest first."""
    return drafts.list_drafts(services, me.address)


@router.post("/drafts", status_code=201, responses=_CHANGES)
def add_draft(given: DraftWrite, services: ServicesDep, me: SignedIn) -> Draft:
    """Keep a draft."""
    return drafts.add_draft(services, me.address, given)


@router.get("/drafts/{draft_id}", responses=_CHANGES)
def read_draft(draft_id: DraftId, services: ServicesDep, me: SignedIn) -> Draft:
    """One of one's own drafts."""
    return drafts.read_draft(services, me.address, draft_id)


@router.put("/drafts/{draft_id}", responses=_CHANGES)
def write_draft(draft_id: DraftId, given: DraftWrite, services: ServicesDep, me: SignedIn) -> Draft:
    """Replace a draft."""
    return drafts.write_draft(services, me.address, draft_id, given)


@router.delete("/drafts/{draft_id}", status_code=204, responses=_CHANGES)
def remove_draft(draft_id: DraftId, services: ServicesDep, me: SignedIn) -> None:
    """Delete a draft."""
    drafts.remove_draft(services, me.address, draft_id)


@router.get("/notifications")
def list_notifications(
    services: ServicesDep,
    me: SignedIn,
    cursor: Annotated[str | None, cursor_query(7_000_000)] = None,
) -> NotificationPage:
    """What happened in one's own tasks, the latest first."""
    return notifications(services, me.address, cursor)


@router.post("/notifications/read", responses=_CHANGES)
def read_notifications(given: ReadUpTo, services: ServicesDep, me: SignedIn) -> NotificationPage:
    """Mark one and all before it as read."""
    return mark_read(services, me.address, given.id)
