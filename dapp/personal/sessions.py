"""Nonces, sign-ins and sessions. A nonce is good once; a session is known by a cookie."""

import hashlib
import hmac
import secrets
import time
from typing import Annotated
from urllib.parse import urlsplit

from eth_utils.address import to_checksum_address
from fastapi import Depends, Request
from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session as OrmSession

from dapp.database.models import NonceRow, SessionRow
from dapp.errors import ApiError
from dapp.schemas.personal import Nonce, Session, SignIn
from dapp.services import Services, ServicesDep
from dapp.signing.recovering import signer_of
from dapp.signing.siwe import STATEMENT, SiweError, check_message, parse_message, stamp

COOKIE = "trainyard_session"
CSRF_HEADER = "X-CSRF-Token"
_NONCE_S = 600
SESSION_S = 7 * 24 * 3600
# Nobody needs more sign-ins at once; what is asked for and not used is forgotten.
_MOST_NONCES, MOST_NONCES_PER_CLIENT = 100_000, 100


def origin_of(services: Services, request: Request) -> str:
    """Where the page is: as configured, or as asked for, which the guard has checked."""
    if services.settings.public_url is not None:
        return services.settings.public_url
    return f"http://{request.headers.get('host', services.settings.host)}"


def make_nonce(services: Services, request: Request, address: str) -> Nonce:
    now, origin = int(time.time()), origin_of(services, request)
    nonce, client = secrets.token_hex(16), request.scope["trainyard.client"]

    def hold(session: OrmSession) -> None:
        session.execute(delete(NonceRow).where(NonceRow.expires_at <= now))
        held = select(func.count()).select_from(NonceRow)
        mine = session.scalar(held.where(NonceRow.client == client)) or 0
        if mine >= MOST_NONCES_PER_CLIENT or (session.scalar(held) or 0) >= _MOST_NONCES:
            raise ApiError(429, "too_often", "too many sign-ins at once", retry_after_s=60)
        session.execute(
            insert(NonceRow).values(
                nonce=nonce,
                address=address,
                issued_at=now,
                expires_at=now + _NONCE_S,
                client=client,
            )
        )

    services.database.write(hold)
    return Nonce(
        nonce=nonce,
        domain=urlsplit(origin).netloc,
        uri=origin,
        chain_id=services.settings.chain_id,
        statement=STATEMENT,
        issued_at=stamp(now),
        expires_at=stamp(now + _NONCE_S),
    )


def sign_in(services: Services, request: Request, given: SignIn) -> tuple[str, Session]:
    """The token of a new session, and what the page may know of it."""
    now, origin = time.time(), origin_of(services, request)
    try:
        message = parse_message(given.message)
        check_message(
            message,
            domain=urlsplit(origin).netloc,
            uri=origin,
            chain_id=services.settings.chain_id,
            now=now,
        )
    except SiweError as error:
        raise ApiError(401, "bad_message", str(error), fix="ask for a new nonce") from error
    address = to_checksum_address(message.address)
    if signer_of(given.message, given.signature) != address:
        raise ApiError(401, "bad_signature", f"the message is not signed by {address}")
    token, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(24)
    expires_at = int(now) + SESSION_S

    def enter(session: OrmSession) -> None:
        # INVARIANT: a nonce signs in once. Who deletes the row is the one.
        found = session.execute(
            delete(NonceRow)
            .where(
                NonceRow.nonce == message.nonce,
                NonceRow.address == address,
                NonceRow.expires_at > int(now),
            )
            .returning(NonceRow.nonce)
        ).first()
        if found is None:
            raise ApiError(401, "bad_nonce", "the nonce was used, is too old, or is not ours")
        session.execute(delete(SessionRow).where(SessionRow.expires_at <= int(now)))
        session.execute(
            insert(SessionRow).values(
                token=_hashed(token), address=address, csrf=csrf, expires_at=expires_at
            )
        )

    services.database.write(enter)
    return token, Session(address=address, expires_at=expires_at, csrf_token=csrf)


def session_of(services: Services, request: Request) -> SessionRow | None:
    token = request.cookies.get(COOKIE)
    if not token or len(token) > 100:
        return None
    with services.database.reading() as session:
        row = session.get(SessionRow, _hashed(token))
    return None if row is None or row.expires_at <= time.time() else row


def sign_out(services: Services, row: SessionRow) -> None:
    with services.database.writing() as session:
        session.execute(delete(SessionRow).where(SessionRow.token == row.token))


def _signed_in(services: ServicesDep, request: Request) -> SessionRow:
    row = session_of(services, request)
    if row is None:
        raise ApiError(
            401, "signed_out", "this is behind a sign-in", fix="GET /api/v1/auth/nonce begins one"
        )
    if request.method not in ("GET", "HEAD") and not hmac.compare_digest(
        request.headers.get(CSRF_HEADER, "").encode(), row.csrf.encode()
    ):
        raise ApiError(403, "csrf", f"the header {CSRF_HEADER} is missing or of another session")
    return row


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


SignedIn = Annotated[SessionRow, Depends(_signed_in)]
