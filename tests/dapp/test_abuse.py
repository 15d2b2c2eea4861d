"""What strangers try: large and slow bodies, foreign hosts and pages, floods, strange paths."""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dapp import serving
from dapp.errors import SettingsError
from dapp.security.buckets import Buckets
from dapp.security.clients import client_of
from dapp.settings import read_settings
from tests.dapp.server import Client, dapp_for, settings_for
from tests.dapp.yard import Yard


@pytest.fixture(scope="module")
def client(played: Yard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("dapp")
    static = folder / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<!doctype html><title>Trainyard</title>")
    (static / "assets" / "app-1234.js").write_text("export {}")
    (folder / "secret.txt").write_text("secret")
    with dapp_for(settings_for(played, folder, body_s=1.0), static=static) as found:
        yield found


def base(client: Client) -> str:
    return str(client.base_url).split("/api/")[0]


def connection(client: Client) -> socket.socket:
    host, port = base(client).removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def test_every_answer_has_its_headers(client: Client) -> None:
    for path in ("/", "/api/v1/stats", "/api/v1/nothing", "/healthz"):
        headers = client.get(base(client) + path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
    assert client.get("/stats").headers["cache-control"] == "no-store"


def test_other_hosts_are_refused(client: Client) -> None:
    answer = client.get("/stats", headers={"Host": "evil.example.org"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "wrong_host")


def test_who_looks_after_the_server_may_call_it_by_its_number(client: Client) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        assert client.get(base(client) + path, headers={"Host": "10.1.2.3:8460"}).status_code == 200


def test_other_pages_cannot_change_anything(client: Client) -> None:
    answer = client.post("/content", files={"file": b"x"}, headers={"Sec-Fetch-Site": "cross-site"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "cross_site")


def test_large_bodies_are_refused_before_they_come(client: Client) -> None:
    with connection(client) as line:
        line.sendall(
            b"POST /api/v1/quotes HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n"
        )
        assert b" 413 " in line.recv(4096).split(b"\r\n")[0]


def test_endless_headers_are_refused(client: Client) -> None:
    sent = 0
    with connection(client) as line:
        line.sendall(b"GET /api/v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ")
        # No more is taken than what is on its way when the server closes the line.
        with suppress(ConnectionError):
            for _ in range(1000):
                line.sendall(b"a" * 4096)
                sent += 4096
                time.sleep(0.001)
            pytest.fail("all of it was taken")

    assert sent < 2 << 20


def test_headers_that_do_not_come_end_the_connection(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_HEADERS_S", 0.3)
    request = b"GET /api/v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    for first in (b"", request, request + b"\r\n" + request):
        with connection(client) as line:
            line.sendall(first)
            began, said = time.monotonic(), b""
            with suppress(ConnectionError):
                while data := line.recv(4096):
                    said += data
            assert time.monotonic() - began < 10
            assert said.startswith(b"HTTP/1.1 200") == (first.count(request) == 2)


def test_slow_bodies_are_cut(client: Client) -> None:
    began = time.monotonic()
    with connection(client) as line:
        line.sendall(
            b"POST /api/v1/quotes HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
        )
        answer = line.recv(4096)

    assert b" 408 " in answer.split(b"\r\n")[0]
    assert time.monotonic() - began < 15


def test_bodies_that_drip_are_cut_too(client: Client) -> None:
    with connection(client) as line:
        line.sendall(
            b"POST /api/v1/quotes HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
        )
        began = time.monotonic()
        answer = b""
        line.settimeout(0.3)
        while not answer and time.monotonic() - began < 20:
            line.sendall(b" ")
            try:
                answer = line.recv(4096)
            except TimeoutError:
                continue

    assert b" 408 " in answer.split(b"\r\n")[0]


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/assets/../../secret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/assets/..%5c..%5csecret.txt",
        "//etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_page(client: Client, path: str) -> None:
    with connection(client) as line:
        line.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
        )
        said = b""
        while data := line.recv(4096):
            said += data

    assert b"secret" not in said.partition(b"\r\n\r\n")[2]
    assert b"root:" not in said


def test_the_page_answers_to_its_own_routes(client: Client) -> None:
    page = client.get(f"{base(client)}/tasks/7")
    assert (page.status_code, page.headers["cache-control"]) == (200, "no-cache")
    asset = client.get(f"{base(client)}/assets/app-1234.js")
    assert "immutable" in asset.headers["cache-control"]
    assert asset.headers["content-type"].startswith("text/javascript")
    assert client.get(f"{base(client)}/assets/other.js").status_code == 404
    assert client.get(f"{base(client)}/api/v1/nothing").json()["error"]["code"] == "not_found"


def test_strange_values_are_refused_in_one_form(client: Client) -> None:
    for path, status in (
        ("/tasks/0", 422),
        ("/tasks/abc", 422),
        ("/tasks/99999999999999999999", 422),
        ("/tasks?limit=0", 422),
        ("/tasks?cursor=!!!", 422),
        ("/tasks?cursor=WzFd", 422),
        ("/tasks?state=nothing", 422),
        ("/tasks?search=%00", 404),
        ("/workers?search='; DROP TABLE tasks", 422),
        ("/accounts/0x12", 422),
        ("/manifests/0x12", 422),
    ):
        answer = client.get(path)
        assert answer.status_code == status, path
        assert answer.json()["error"]["message"]


def test_amounts_that_the_market_cannot_hold_are_refused(client: Client) -> None:
    terms = {"manifest": "0x" + "ab" * 32, "env_class": "0x" + "ab" * 32, "stake": "1"}
    for large in (2**96, 2**256 - 1):
        answer = client.post("/preflight", json={"terms": terms | {"reward": str(large)}})
        assert (answer.status_code, answer.json()["error"]["field"]) == (422, "body.terms.reward")
        answer = client.post(
            "/quotes", json={"manifest": "0x" + "ab" * 32, "audit_fee_wei": str(large)}
        )
        assert answer.status_code == 422


def test_no_other_method_of_the_chain_is_passed_on(client: Client, played: Yard) -> None:
    def ask(method: str, *params: object) -> int:
        document = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        return client.post("/rpc", json=document).status_code

    assert ask("eth_blockNumber") == 200
    assert ask("eth_getLogs", {}) == 422
    assert ask("anvil_setBalance", played.live.requester, "0x1") == 422
    assert ask("eth_sendRawTransaction", "0x1234") == 422
    assert ask("eth_sendRawTransaction", {"from": played.live.requester}) == 422
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}]
    assert client.post("/rpc", json=batch).status_code == 422


def test_transactions_to_others_are_not_passed_on(client: Client, played: Yard) -> None:
    from eth_account import Account

    signed = Account.create().sign_transaction(
        {
            "type": 2,
            "chainId": played.chain_id,
            "nonce": 0,
            "to": "0x" + "11" * 20,
            "value": 1,
            "gas": 21_000,
            "maxFeePerGas": 10**10,
            "maxPriorityFeePerGas": 1,
        }
    )
    raw = f"0x{signed.raw_transaction.hex()}"
    document = {"jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": [raw]}

    answer = client.post("/rpc", json=document)

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "other_target")


def test_floods_are_told_to_wait(played: Yard, tmp_path: Path) -> None:
    settings = settings_for(
        played, tmp_path, requests_per_s=5.0, request_burst=200, sse_clients_per_address=1
    )
    with dapp_for(settings) as client:
        answers = [client.get("/stats") for _ in range(300)]

        refused = [one for one in answers if one.status_code == 429]
        assert refused
        assert int(refused[0].headers["retry-after"]) >= 1
        assert refused[0].json()["error"]["retry_after_s"] > 0


def test_buckets_fill_up_again_and_are_few() -> None:
    now = 0.0
    buckets = Buckets(1.0, 2.0, most=2, clock=lambda: now)

    assert [buckets.take("a") for _ in range(3)] == [0.0, 0.0, 1.0]
    now = 1.0
    assert buckets.take("a") == 0.0
    for who in "bcd":
        buckets.take(who)
    # Forgotten, and so as good as new.
    assert buckets.take("a") == 0.0


def test_only_our_own_proxies_say_who_asks() -> None:
    scope = {
        "client": ("10.0.0.1", 1),
        "headers": [(b"x-forwarded-for", b"6.6.6.6, 1.2.3.4")],
    }

    assert client_of(scope, 0) == "10.0.0.1"
    assert client_of(scope, 1) == "1.2.3.4"
    assert client_of(scope, 3) == "10.0.0.1"


def test_a_bad_setting_is_named_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    good = {
        "endpoints": ("http://127.0.0.1:1",),
        "chain_id": 1,
        "market": "0x" + "11" * 20,
        "start_block": 0,
    }
    for changed, said in (
        ({"market": "0x12"}, "TRAINYARD_DAPP_MARKET"),
        ({"endpoints": ()}, "TRAINYARD_DAPP_ENDPOINTS"),
        ({"database_url": "mysql://x"}, "TRAINYARD_DAPP_DATABASE_URL"),
        ({"faucet_key_file": "/x"}, "FAUCET_KEY_FILE is for a devnet alone"),
    ):
        with pytest.raises(SettingsError, match=said):
            read_settings(**good | changed)
    monkeypatch.setenv("TRAINYARD_DAPP_PORT", "many")
    with pytest.raises(SettingsError, match="TRAINYARD_DAPP_PORT"):
        read_settings(**good)


def test_machines_see_how_it_is(client: Client) -> None:
    ready = client.get(f"{base(client)}/readyz").json()
    assert {one["name"] for one in ready["checks"]} == {"chain", "database", "store"}
    client.get("/stats")
    metrics = client.get(f"{base(client)}/metrics").text
    assert "trainyard_dapp_index_lag_blocks 0.0" in metrics
    assert 'route="/stats"' in metrics


def test_the_process_never_imports_tensorflow(client: Client) -> None:
    import subprocess
    import sys

    code = "import sys, dapp.app; sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code]).returncode == 0
