"""Sign-in with Ethereum, and what is behind it."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from eth_account import Account
from eth_account.messages import encode_defunct
from eth_account.signers.local import LocalAccount
from sqlalchemy import text

from dapp.database.engine import Database
from dapp.database.models import ReadMark
from dapp.personal.notifications import mark_read, notifications
from dapp.signing.recovering import signer_of
from dapp.signing.siwe import SiweError, parse_message
from tests.dapp.server import Client, dapp_for, settings_for, wait_for
from tests.dapp.yard import Yard


@pytest.fixture(scope="module")
def client(
    played: Yard, make_url: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    settings = settings_for(played, tmp_path_factory.mktemp("dapp"), make_url(), drafts=3)
    with dapp_for(settings) as found:
        yield found


@pytest.fixture(autouse=True)
def _nobody_is_signed_in(client: Client) -> None:
    client.cookies.clear()


def message_of(given: dict[str, Any], address: str) -> str:
    field = {"address": address} | given
    return (
        f"{field['domain']} wants you to sign in with your Ethereum account:\n"
        f"{field['address']}\n\n{field['statement']}\n\n"
        f"URI: {field['uri']}\nVersion: 1\nChain ID: {field['chain_id']}\n"
        f"Nonce: {field['nonce']}\nIssued At: {field['issued_at']}\n"
        f"Expiration Time: {field['expires_at']}"
    )


def sign_in(client: Client, account: LocalAccount, **changed: Any) -> httpx.Response:
    nonce = client.json("/auth/nonce", address=account.address)
    return send(client, account, message_of(nonce | changed, account.address))


def send(client: Client, account: LocalAccount, message: str) -> httpx.Response:
    signed = account.sign_message(encode_defunct(text=message))
    return client.post(
        "/auth/sign-in",
        json={"message": message, "signature": f"0x{bytes(signed.signature).hex()}"},
    )


def signed_in(client: Client) -> tuple[LocalAccount, dict[str, str]]:
    account: LocalAccount = Account.create()
    answer = sign_in(client, account)
    assert answer.status_code == 200, answer.text
    return account, {"X-CSRF-Token": answer.json()["csrf_token"]}


def test_who_signs_is_signed_in(client: Client) -> None:
    account: LocalAccount = Account.create()

    answer = sign_in(client, account)

    assert answer.json()["address"] == account.address
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.json("/auth/session")["address"] == account.address


@pytest.mark.parametrize(
    "changed",
    [
        {"domain": "evil.example.org"},
        {"uri": "https://evil.example.org"},
        {"chain_id": 1},
        {"statement": "Give everything away."},
        {"nonce": "a" * 32},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"issued_at": "2100-01-01T00:00:00Z"},
        {"address": "0x" + "11" * 20},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_other_messages_sign_nobody_in(client: Client, changed: dict[str, Any]) -> None:
    answer = sign_in(client, Account.create(), **changed)

    assert answer.status_code == 401
    assert client.json("/auth/session")["address"] is None


def test_a_sign_in_cannot_be_replayed(client: Client) -> None:
    account: LocalAccount = Account.create()
    nonce = client.json("/auth/nonce", address=account.address)
    message = message_of(nonce, account.address)

    assert send(client, account, message).status_code == 200
    client.cookies.clear()
    again = send(client, account, message)

    assert (again.status_code, again.json()["error"]["code"]) == (401, "bad_nonce")


def test_somebody_elses_nonce_is_none_of_mine(client: Client) -> None:
    mine: LocalAccount = Account.create()
    theirs = client.json("/auth/nonce", address=Account.create().address)

    answer = send(client, mine, message_of(theirs, mine.address))

    assert answer.status_code == 401


def test_a_signature_has_one_form() -> None:
    account: LocalAccount = Account.create()
    signed = account.sign_message(encode_defunct(text="hello"))
    data = bytes(signed.signature)
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    mirrored = (order - int.from_bytes(data[32:64], "big")).to_bytes(32, "big")
    other = data[:32] + mirrored + bytes([55 - data[64]])

    assert signer_of("hello", f"0x{data.hex()}") == account.address
    assert signer_of("hello", f"0x{other.hex()}") is None
    assert signer_of("hello", "0x") is None


def test_messages_have_one_form() -> None:
    now = f"{datetime.fromtimestamp(time.time(), UTC):%Y-%m-%dT%H:%M:%S}Z"
    fields = {
        "domain": "a.example",
        "statement": "Hello.",
        "uri": "https://a.example",
        "chain_id": 1,
        "nonce": "abcdefgh1234",
        "issued_at": now,
        "expires_at": now,
    }
    message = message_of(fields, "0x" + "11" * 20)

    assert parse_message(message).domain == "a.example"
    for broken in (message + "\nmore", message.replace("Version: 1", "Version: 2"), message + " "):
        with pytest.raises(SiweError):
            parse_message(broken)


def test_drafts_are_kept_for_their_owner_alone(client: Client) -> None:
    _, token = signed_in(client)
    draft = client.post(
        "/drafts", json={"title": "mine", "document": {"step": 2}}, headers=token
    ).json()
    assert client.json(f"/drafts/{draft['id']}")["document"] == {"step": 2}
    changed = client.put(
        f"/drafts/{draft['id']}", json={"title": "new", "document": {}}, headers=token
    )
    assert changed.json()["title"] == "new"

    _, others = signed_in(client)

    assert client.json("/drafts")["items"] == []
    assert client.get(f"/drafts/{draft['id']}").status_code == 404
    for answer in (
        client.put(f"/drafts/{draft['id']}", json={"document": {}}, headers=others),
        client.delete(f"/drafts/{draft['id']}", headers=others),
    ):
        assert answer.status_code == 404


def test_changes_need_the_sessions_own_token(client: Client) -> None:
    _, token = signed_in(client)

    assert client.post("/drafts", json={"document": {}}).status_code == 403
    wrong = client.post("/drafts", json={"document": {}}, headers={"X-CSRF-Token": "wrong"})
    assert wrong.status_code == 403
    foreign = client.post(
        "/drafts", json={"document": {}}, headers=token | {"Sec-Fetch-Site": "cross-site"}
    )
    assert foreign.status_code == 403
    assert client.post("/drafts", json={"document": {}}, headers=token).status_code == 201


def test_drafts_are_bounded(client: Client) -> None:
    _, token = signed_in(client)
    for _ in range(3):
        assert client.post("/drafts", json={"document": {}}, headers=token).status_code == 201

    assert client.post("/drafts", json={"document": {}}, headers=token).status_code == 409
    large = {"document": {"text": "x" * 300_000}}
    assert client.post("/drafts", json=large, headers=token).status_code == 413
    zero = {"document": {"text": "\0"}}
    assert client.post("/drafts", json=zero, headers=token).status_code == 422


def test_without_a_session_nothing_personal_is_shown(client: Client) -> None:
    for path in ("/drafts", "/notifications"):
        assert client.get(path).status_code == 401
    client.cookies.set("trainyard_session", "a" * 43, path="/api/")
    assert client.get("/drafts").status_code == 401


def test_signing_out_ends_the_session(client: Client) -> None:
    _, token = signed_in(client)
    cookie = client.cookies["trainyard_session"]

    assert client.post("/auth/sign-out", headers=token).status_code == 204

    client.cookies.set("trainyard_session", cookie, path="/api/")
    assert client.get("/drafts").status_code == 401


def test_notifications_are_what_the_chain_says(client: Client, played: Yard) -> None:
    # Whoever has the address sees what happened to it; the key is not asked for here.
    services = client.app.state.services
    page = notifications(services, played.live.requester, None)
    assert {one.kind for one in page.items} >= {"settled", "failed", "joined", "disputed"}
    worker = notifications(services, played.live.workers[0], None)
    assert "paid" in {one.kind for one in worker.items}
    assert all(one.kind != "joined" for one in worker.items)
    assert page.unread > 0
    assert mark_read(services, played.live.requester, page.items[0].id).unread == 0


@pytest.mark.parametrize("most", [1, 4, 30])
def test_pages_of_notifications_are_all_of_them_once_each(
    client: Client, played: Yard, most: int
) -> None:
    services = client.app.state.services
    for who in (played.live.workers[0], played.live.workers[1], played.live.requester):
        whole = [one.id for one in notifications(services, who, None, most=1_000).items]
        shown, cursor, pages = list[int](), None, 0
        while pages == 0 or cursor is not None:
            page = notifications(services, who, cursor, most=most)
            assert 0 < len(page.items) <= most
            shown += [one.id for one in page.items]
            cursor, pages = page.next, pages + 1

        assert shown == whole == sorted(set(whole), reverse=True)
        assert pages == -(-len(whole) // most)


def test_what_counts_as_unread_is_what_is_shown(client: Client, played: Yard) -> None:
    """And not all that happened in somebody's tasks."""
    services = client.app.state.services
    for who in played.live.workers[:3]:
        page = notifications(services, who, None)
        assert page.unread == len(page.items) > 4
        assert mark_read(services, who, page.items[3].id).unread == 3


def test_two_first_marks_at_once_are_one(client: Client) -> None:
    services, who = client.app.state.services, Account.create().address
    database: Database = services.database
    with ThreadPoolExecutor(1) as pool:
        with database.writing() as session:
            session.add(ReadMark(address=who, up_to=7))
            session.flush()
            second = pool.submit(mark_read, services, who, 5)
            if database.engine.dialect.name == "postgresql":
                # It has seen no mark, and waits for us with one of its own.
                wait_for(lambda: _is_anybody_waiting(database), "the second")
        second.result(30)

    with database.reading() as session:
        mark = session.get(ReadMark, who)
    assert mark is not None
    assert mark.up_to == 7


def _is_anybody_waiting(database: Database) -> bool:
    with database.reading() as session:
        return bool(session.scalar(text("SELECT count(*) FROM pg_locks WHERE NOT granted")))
