"""What one address can have the server do, and how much of it at once."""

import io
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import httpx
import numpy as np
import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from hexbytes import HexBytes
from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dapp.app import create_app
from dapp.errors import ApiError, SettingsError
from dapp.faucet import Faucet
from dapp.personal.sessions import MOST_NONCES_PER_CLIENT
from dapp.posting.examples import examples
from dapp.posting.reachable import Look
from dapp.previewing.child import preview
from dapp.previewing.job import PreviewError, PreviewJob
from dapp.previewing.previewing import _array
from dapp.reaching import MOST_OF_ONE, BusyError, Reach, StoredOnly
from dapp.results.exporting import _named, _take
from dapp.security import guarding
from dapp.security.buckets import Buckets
from dapp.security.clients import asking, client_of
from dapp.security.guarding import cost_of
from dapp.services import ChainDesk, Turns
from dapp.serving import require_own_currency
from dapp.settings import Settings, read_settings
from scripts.deploy_settings import read_deploy_settings
from tests.dapp.server import Client, dapp_for, serving, settings_for, wait_for
from tests.dapp.yard import Yard
from trainyard.content.build import build_file
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import BlockNotFoundError
from trainyard.content.names import ContentPath
from trainyard.engine.confining import Confinement
from trainyard.engine.errors import RunError, TooLargeError
from trainyard.protocol.manifest import Manifest

_UNKNOWN = Cid(Codec.RAW, bytes(range(32)))
_WORKERS = 40
_ETHER = 10**18


@contextmanager
def with_routes(settings: Settings, *routes: Route) -> Iterator[Client]:
    """The server with routes of a test beside its own."""
    app = create_app(settings)
    app.router.routes[:0] = routes
    with (
        serving(app, settings) as address,
        Client(base_url=f"{address}/api/v1", timeout=30.0, trust_env=False) as client,
    ):
        client.app = app
        yield client


def root(client: Client) -> str:
    return str(client.base_url).split("/api/")[0]


@pytest.mark.parametrize(
    ("method", "path", "cost"),
    [
        ("GET", "/api/v1/stats", 0.0),
        ("GET", "/api/v1/content/bafy", 0.2),
        ("GET", "/api/v1/content/bafy/raw", 0.2),
        ("GET", "/api/v1/tasks/7", 0.0),
        ("GET", "/api/v1/tasks/7/result", 0.2),
        ("GET", "/api/v1/tasks/7/result/tensorboard", 0.2),
        ("GET", "/api/v1/tasks/7/result/receipt", 0.0),
        ("GET", "/api/v1/tasks/7/result/model.keras", 1.0),
        ("GET", "/api/v1/tasks/7/trace/3", 0.2),
        ("GET", "/api/v1/tasks/7/metrics", 0.0),
        ("GET", "/api/v1/tasks/7/metrics?points=1000", 0.0),
        ("GET", "/api/v1/tasks/7/metrics?points=2000", 0.05),
        ("GET", "/api/v1/tasks/7/metrics?points=10&points=%34000&after=1", 0.05),
        ("GET", "/api/v1/tasks/7/metrics?points=nonsense", 0.0),
        ("POST", "/api/v1/manifests", 0.1),
        ("POST", "/api/v1/content", 1.0),
        ("POST", "/api/v1/models", 1.0),
        ("PATCH", "/api/v1/uploads/a", 0.02),
        ("POST", "/api/v1/quotes", 0.0),
    ],
)
def test_what_is_made_or_kept_is_costly(method: str, path: str, cost: float) -> None:
    path, _, query = path.partition("?")
    assert cost_of(method, path, query.encode()) == cost


def test_the_costly_has_an_allowance_of_its_own(
    played: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long all of this takes, nothing of the allowance comes back meanwhile.
    monkeypatch.setattr(guarding, "Buckets", partial(Buckets, clock=lambda: 0.0))
    with dapp_for(settings_for(played, tmp_path, costly_per_min=3.0)) as client:
        stored = [client.post("/content", files={"file": b"x"}).status_code for _ in range(4)]
        assert stored == [201, 201, 201, 429]
        refused = client.get(f"/content/{_UNKNOWN}")
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_often")
        assert int(refused.headers["retry-after"]) >= 1
        assert client.get("/stats").status_code == 200


def test_strangers_cannot_have_us_fetch(played: Yard, tmp_path: Path) -> None:
    """A gateway that never answers is there, and is asked by nobody."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        gateway = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with dapp_for(settings_for(played, tmp_path, gateways=(gateway,))) as client:
            # The index asks for the manifest that tasks name: that is not a stranger's wish.
            began = time.monotonic()
            for path in (f"/content/{_UNKNOWN}", f"/content/{_UNKNOWN}/raw"):
                answer = client.get(path)
                assert answer.status_code == 404
                assert answer.json()["error"]["code"] == "content_unavailable"
            manifest = client.json(f"/manifests/0x{bytes(range(32)).hex()}")
            assert manifest["manifest"] is None
            assert httpx.get(f"{root(client)}/ipfs/{_UNKNOWN}?format=raw").status_code == 404
            assert time.monotonic() - began < 5


def test_what_a_task_names_is_fetched_from_others(played: Yard, tmp_path: Path) -> None:
    with dapp_for(settings_for(played, tmp_path / "other")) as other:
        cid = other.post("/content", files={"file": b"of somebody else"}).json()["cid"]
        settings = settings_for(played, tmp_path / "own", gateways=(root(other),))
        with dapp_for(settings) as client:
            address = f"{root(client)}/ipfs/{cid}?format=raw"
            assert client.get(address).status_code == 404

            client.app.state.services.reach.note_named(Cid.parse(cid))

            assert client.get(address).content == b"of somebody else"
            assert client.get(f"/content/{cid}").status_code == 404


def test_a_store_is_asked_for_nothing_that_it_lacks(tmp_path: Path) -> None:
    class Node(EmbeddedStore):
        """As Kubo: it looks among its peers for what it lacks."""

        asked: ClassVar[list[Cid]] = []

        def fetch(self, cid: Cid) -> bytes:
            self.asked.append(cid)
            return super().fetch(cid)

    node = Node(tmp_path / "store")
    with node.batch() as batch:
        here = Cid.of(Codec.RAW, b"here")
        batch.put(here, b"here")
    stored = StoredOnly(node)

    assert stored.fetch(here) == b"here"
    with pytest.raises(BlockNotFoundError):
        stored.fetch(_UNKNOWN)
    assert node.asked == [here]


def test_only_so_many_wait_for_others(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "store")
    content = Content(store)
    reach = Reach(Content(StoredOnly(store)), content, 1)
    with store.batch() as batch:
        here = Cid.of(Codec.RAW, b"here")
        batch.put(here, b"here")

    with reach.held():
        with pytest.raises(BusyError), reach.held():
            pass
        # What is here needs nobody.
        assert reach.get(lambda one: one.fetcher.get(here).block) == b"here"
        with pytest.raises(BusyError):
            reach.get(lambda one: one.stat(ContentPath(_UNKNOWN)))
    with reach.held():
        pass


def test_one_client_does_not_take_the_whole_line(tmp_path: Path) -> None:
    content = Content(EmbeddedStore(tmp_path / "store"))
    reach = Reach(content, content, MOST_OF_ONE + 1)
    one, other = copy_context(), copy_context()
    one.run(asking.set, "192.0.2.1")
    other.run(asking.set, "192.0.2.2")

    with ExitStack() as inside:
        for _ in range(MOST_OF_ONE):
            one.run(inside.enter_context, reach.held())
        with pytest.raises(BusyError, match="for you"):
            one.run(inside.enter_context, reach.held())
        other.run(inside.enter_context, reach.held())
        with pytest.raises(BusyError, match="at once"):
            reach.held().__enter__()
    with reach.held():
        pass


def test_what_is_here_is_kept_without_waiting_for_others(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "store")
    content = Content(store)
    reach = Reach(Content(StoredOnly(store)), content, 1)
    here = content.add(io.BytesIO(bytes(1000)), pin=False).cid

    with reach.held():
        assert reach.keep(ContentPath(here), 1000) == here
        with pytest.raises(TooLargeError):
            reach.keep(ContentPath(content.add(io.BytesIO(bytes(1001))).cid), 1000)
        with pytest.raises(BusyError):
            reach.keep(ContentPath(_UNKNOWN), 1000)
    assert here in store.pins()


class Slow:
    """Somebody who has a file of two pieces, and is slow to send the second."""

    name = "slow"

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()
        self._blocks = dict[Cid, bytes]()
        data = io.BytesIO(bytes(1000) + b"the end")
        self.root = build_file(data, self._blocks.__setitem__, FixedChunker(1000)).cid
        self.last = Cid.of(Codec.RAW, b"the end")

    def fetch(self, cid: Cid) -> bytes:
        if cid not in self._blocks:
            raise BlockNotFoundError(cid, self.name)
        if cid == self.last:
            self.asked.set()
            self.go.wait(60)
        return self._blocks[cid]


class Refusing:
    """A sandbox in which nothing runs, for tests of what comes before it."""

    def running(self, *_: Any, **__: Any) -> Any:
        raise RunError("nothing runs here")


@pytest.fixture
def slow() -> Iterator[Slow]:
    found = Slow()
    yield found
    found.go.set()


def test_a_stream_has_its_place_in_the_line_until_it_ends(
    played: Yard, tmp_path: Path, slow: Slow
) -> None:
    with dapp_for(settings_for(played, tmp_path, fetches=1)) as client:
        services = client.app.state.services
        services.content.fetcher.add_sources([slow])
        services.reach.note_named(slow.root)
        address = f"{root(client)}/ipfs/{slow.root}?format=car"
        with client.stream("GET", address) as answer:
            assert answer.status_code == 200
            assert slow.asked.wait(30)
            assert client.get(address).status_code == 503
            slow.go.set()
            assert b"the end" in answer.read()

        assert client.get(address).status_code == 200


@pytest.mark.parametrize("way", ["models", "preview", "preflight"])
def test_nobody_waits_for_the_engine_while_another_fetches(
    played: Yard, tmp_path: Path, slow: Slow, way: str
) -> None:
    def ask() -> httpx.Response:
        if way == "models":
            return client.post("/models", json={"cid": str(slow.root)})
        if way == "preview":
            return client.post("/data/preview", json={"cid": str(slow.root)})
        return client.post("/preflight", json={"terms": terms_for(client, str(slow.root))})

    nowhere = cast(Confinement, Refusing())
    with dapp_for(settings_for(played, tmp_path), confinement=nowhere) as client:
        services = client.app.state.services
        services.content.fetcher.add_sources([slow])
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(ask)
            assert slow.asked.wait(30), asked.result(60).text
            with services.engine.taken():
                assert services.reach._inside.total() == 1
            slow.go.set()
            asked.result(60)


def terms_for(
    client: Client, data: str, *, test: str | None = None, state: str | None = None
) -> dict[str, Any]:
    """Of a task with the first example's model on such data."""
    document = client.json("/examples")["items"][0]["manifest"]
    for part in document["data"].values():
        part["path"] = f"ipfs://{data}"
    if test is not None:
        document["data"]["test"]["path"] = f"ipfs://{test}"
    if state is not None:
        document["initial_state"] = state
    manifest = client.post("/manifests", json={"manifest": document}).json()
    quote = client.post("/quotes", json={"manifest": manifest["digest"]})
    terms: dict[str, Any] = quote.json()["terms"]
    return terms


def checks_of(client: Client, data: str, **more: str) -> dict[str, Any]:
    answer = client.post("/preflight", json={"terms": terms_for(client, data, **more)})
    assert answer.status_code == 200, answer.text
    return {check["name"]: check for check in answer.json()["checks"]}


def test_data_that_is_out_of_reach_is_not_rehearsed(played: Yard, tmp_path: Path) -> None:
    nowhere = cast(Confinement, Refusing())
    with dapp_for(settings_for(played, tmp_path), confinement=nowhere) as client:
        checks = checks_of(client, str(_UNKNOWN))

    assert checks["content"]["status"] == "failed"
    assert checks["rehearsal"]["status"] == "skipped"


def test_a_leaf_that_nobody_has_is_named(played: Yard, tmp_path: Path) -> None:
    """The root is there, and so is all but one of what hangs below it."""
    nowhere = cast(Confinement, Refusing())
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    for folder, last in ((whole, b"here"), (torn, b"lost")):
        folder.mkdir()
        (folder / "one.tfrecord").write_bytes(b"a shard")
        (folder / "two.tfrecord").write_bytes(last * 1000)
    blocks = dict[Cid, bytes]()
    lost = build_file(io.BytesIO(b"lost" * 1000), blocks.__setitem__, FixedChunker(3000))
    (leaf,) = (cid for cid, block in blocks.items() if len(block) == 1000)
    with dapp_for(settings_for(played, tmp_path), confinement=nowhere) as client:
        content = client.app.state.services.content
        data = str(content.add(whole).cid)
        chunker = FixedChunker(3000)
        test = str(content.add(torn, chunker=chunker).cid)
        os.remove(content.store._path(leaf))

        there = checks_of(client, data)
        tested = checks_of(client, data, test=test)
        begun = checks_of(client, data, state=str(lost.cid))

    assert there["content"]["status"] == "ok"
    assert "3 blocks" in there["content"]["message"]
    for found, place in (
        (tested, f"data.test ({test}/two.tfrecord): "),
        (begun, f"initial_state ({lost.cid}): "),
    ):
        assert found["content"]["status"] == "failed"
        assert found["content"]["message"].startswith(place)
        assert str(leaf) in found["content"]["message"]
        assert found["rehearsal"]["status"] == "skipped"


def test_a_look_at_content_is_bounded(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "store")
    content = Content(store)
    whole = content.add(io.BytesIO(bytes(range(256)) * 100), chunker=FixedChunker(1000)).cid
    document = deepcopy(examples().items[0].manifest)
    for part in document["data"].values():
        part["path"] = f"ipfs://{whole}"
    manifest = Manifest.of(document)
    beside = Content(EmbeddedStore(tmp_path / "other"), [store])

    assert Look(manifest, 0).through(content)
    assert not Look(manifest, 0, most_blocks=5).through(content)
    assert not Look(manifest, 0, longest_s=0.0).through(content)
    # What others have to send is counted by its bytes.
    assert Look(manifest, 100_000).through(beside)
    assert not Look(manifest, 2_000).through(beside)


def test_no_more_is_fetched_for_a_rehearsal_than_is_looked_at(played: Yard, tmp_path: Path) -> None:
    nowhere = cast(Confinement, Refusing())
    settings = settings_for(played, tmp_path, upload_bytes=1000)
    with dapp_for(settings, confinement=nowhere) as client:
        example = client.post("/examples/moons").json()["manifest"]
        data = example["data"]["train"]["path"].removeprefix("ipfs://")
        checks = checks_of(client, data)
        preview = client.post("/data/preview", json={"cid": data})

    assert checks["content"]["status"] == "ok"
    assert checks["rehearsal"]["status"] == "warning"
    assert "over the 1,000 that are allowed" in checks["rehearsal"]["message"]
    assert (preview.status_code, preview.json()["error"]["code"]) == (413, "too_large")


def test_the_line_before_the_engine_is_short() -> None:
    turns = Turns(1, patience_s=30.0)
    inside, go = threading.Event(), threading.Event()

    def first() -> None:
        with turns.taken():
            inside.set()
            go.wait(30)

    def second() -> None:
        with turns.taken():
            pass

    people = [threading.Thread(target=first), threading.Thread(target=second)]
    people[0].start()
    assert inside.wait(30)
    people[1].start()
    wait_for(lambda: turns._line._value == 0, "the one who waits")

    with pytest.raises(ApiError) as third, turns.taken():
        pass

    go.set()
    for one in people:
        one.join(30)
    assert (third.value.status, third.value.retry_after_s) == (503, 15.0)
    with turns.taken():
        pass


def test_who_looks_after_it_is_answered_while_all_threads_wait(
    played: Yard, tmp_path: Path
) -> None:
    go, waiting = threading.Event(), threading.Semaphore(0)

    def wait(request: Request) -> Response:
        waiting.release()
        go.wait(60)
        return PlainTextResponse("at last")

    settings = settings_for(played, tmp_path)
    with with_routes(settings, Route("/wait", wait)) as client, ExitStack() as ending:
        wait_for(lambda: client.get(f"{root(client)}/readyz").status_code == 200, "the index")
        pool = ending.enter_context(ThreadPoolExecutor(_WORKERS + 5))
        ending.callback(go.set)
        for _ in range(_WORKERS + 5):
            pool.submit(httpx.get, f"{root(client)}/wait", timeout=60, trust_env=False)
        for _ in range(_WORKERS):
            assert waiting.acquire(timeout=30)

        began = time.monotonic()
        assert client.get(f"{root(client)}/readyz").status_code == 200
        assert client.get(f"{root(client)}/healthz").status_code == 200
        assert client.get(f"{root(client)}/metrics").status_code == 200
        assert time.monotonic() - began < 5


def test_a_server_whose_chain_is_away_is_not_ready(played: Yard, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings = settings_for(played, tmp_path, endpoints=(f"http://127.0.0.1:{port}",))
    with with_routes(settings) as client:
        answer = client.get(f"{root(client)}/readyz")

        assert answer.status_code == 503
        checks = {one["name"]: one["ok"] for one in answer.json()["checks"]}
        assert checks == {"chain": False, "database": True, "store": True}
        assert client.get(f"{root(client)}/healthz").status_code == 200


def test_a_market_that_is_paid_in_a_token_is_refused(yard: Yard, tmp_path: Path) -> None:
    live = yard.live
    disputes = live._create("MarketDisputes")
    settlement = live._create("MarketSettlement", disputes)
    # Any contract will do as the token: nobody pays here.
    params = read_deploy_settings({}).params.as_tuple()
    market = live._create("TrainingMarket", disputes, live.requester, settlement, params)
    settings = settings_for(yard, tmp_path, market=market)

    require_own_currency(yard.endpoints(), settings_for(yard, tmp_path))
    with pytest.raises(SettingsError, match=f"paid in the token {disputes}"):
        require_own_currency(yard.endpoints(), settings)
    # Also one whose chain was away when it began.
    with with_routes(settings) as client:
        wait_for(lambda: "token" in client.get(f"{root(client)}/readyz").text, "the reason")
        assert client.json("/tasks")["items"] == []


def test_a_failure_has_its_headers_and_its_number(played: Yard, tmp_path: Path) -> None:
    def fail(request: Request) -> Response:
        raise RuntimeError("nobody thought of that")

    with with_routes(settings_for(played, tmp_path), Route("/api/v1/fail", fail)) as client:
        answer = client.get("/fail")

        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "failed")
        assert "nobody thought" not in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert len(answer.headers["x-request-id"]) == 16
        metrics = client.get(f"{root(client)}/metrics").text
        assert 'status="500"' in metrics
        assert 'status="499"' not in metrics


def test_sign_ins_are_counted_for_each_client(played: Yard, tmp_path: Path) -> None:
    def ask(who: str) -> int:
        path = f"/auth/nonce?address={played.live.requester}"
        return client.get(path, headers={"X-Forwarded-For": who}).status_code

    with dapp_for(settings_for(played, tmp_path, proxies=1)) as client:
        flood = [ask("1.1.1.1") for _ in range(MOST_NONCES_PER_CLIENT + 1)]

        assert flood == [200] * MOST_NONCES_PER_CLIENT + [429]
        assert ask("2.2.2.2") == 200


def test_all_lines_of_proxies_are_one_list() -> None:
    scope: dict[str, Any] = {
        "client": ("10.0.0.1", 1),
        "headers": [(b"x-forwarded-for", b"6.6.6.6"), (b"x-forwarded-for", b"1.2.3.4")],
    }

    assert client_of(scope, 1) == "1.2.3.4"
    assert client_of(scope, 2) == "6.6.6.6"


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::7", "2001:db8:1:3::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
    ],
)
def test_a_network_of_ipv6_is_one_client(address: str, client: str) -> None:
    assert client_of({"client": (address, 1), "headers": []}, 0) == client
    line = [(b"x-forwarded-for", address.encode())]
    assert client_of({"client": ("10.0.0.1", 1), "headers": line}, 1) == client


def test_a_server_that_others_reach_has_a_name() -> None:
    good: dict[str, Any] = {
        "endpoints": ("http://127.0.0.1:1",),
        "chain_id": 1,
        "market": "0x" + "11" * 20,
        "start_block": 0,
    }

    with pytest.raises(SettingsError, match="PUBLIC_URL is missing"):
        read_settings(**good, host="192.0.2.1")
    read_settings(**good, host="192.0.2.1", public_url="https://dapp.example.org")
    read_settings(**good, host="localhost")


def test_only_plain_files_come_out_of_the_sandbox(tmp_path: Path) -> None:
    secret, out = tmp_path / "secret.npy", tmp_path / "out"
    out.mkdir()
    np.save(secret, np.arange(3))
    (out / "train.link.npy").symlink_to(secret)
    os.mkfifo(out / "train.pipe.npy")
    np.save(out / "train.x.npy", np.arange(3))

    assert list(_array(out, "train.x.npy")) == [0, 1, 2]
    for name in ("train.link.npy", "train.pipe.npy", "../secret.npy", "train.none.npy"):
        with pytest.raises(ApiError) as refused:
            _array(out, name)
        assert refused.value.status == 422
    (out / "model.keras").symlink_to(secret)
    with pytest.raises(RunError, match="no plain file"):
        _take(out / "model.keras", tmp_path / "model.keras")
    assert not (tmp_path / "model.keras").exists()


def test_an_export_is_put_into_the_store_once(played: Yard, tmp_path: Path) -> None:
    with dapp_for(settings_for(played, tmp_path)) as client:
        services = client.app.state.services
        kept = tmp_path / "model.keras"
        kept.write_bytes(b"weights")
        first = _named(services, kept)

        # Bytes that were added again would have another name.
        kept.write_bytes(b"others")
        assert _named(services, kept) == first
        services.content.unpin(first)
        services.content.gc()
        assert _named(services, kept) != first


def test_whole_numbers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    def look(labels: list[int]) -> Any:
        source, out = tmp_path / "data.npz", tmp_path / "arrays"
        out.mkdir(exist_ok=True)
        np.savez(source, x=np.zeros((2, 3)), y=np.array(labels, np.int64))
        return preview(PreviewJob(source=source, out=out))

    assert look([0, 2**31 - 1]).target == "y"
    for large in (2**31, -(2**31) - 1, 2**40):
        with pytest.raises(PreviewError, match=f"{large} does not fit 32 bits"):
            look([0, large])


def test_a_faucet_gives_so_much_and_so_often(yard: Yard) -> None:
    giver: LocalAccount = Account.create()
    yard.anvil.request("anvil_setBalance", giver.address, hex(100 * _ETHER))
    chain = ChainDesk((yard.url,), yard.chain_id, yard.market)
    faucet = Faucet(SecretStr(giver.key.hex()), chain, yard.chain_id, _ETHER)
    taker = Account.create().address

    for _ in range(2):
        grant = faucet.grant(taker)
        yard.anvil.receipt(HexBytes(grant.transaction))
    assert yard.anvil.web3.eth.get_balance(taker) == 2 * _ETHER
    with pytest.raises(ApiError) as enough:
        faucet.grant(taker)
    assert (enough.value.status, enough.value.code) == (409, "has_enough")
    with pytest.raises(ApiError) as often:
        faucet.grant(taker)
    assert (often.value.status, often.value.code) == (429, "too_often")
    assert 0 < (often.value.retry_after_s or 0) <= 60
    # Others are not told to wait for that.
    other = faucet.grant(Account.create().address)
    assert other.amount_wei == _ETHER
    # Mined before the fixture undoes it: else anvil is left with a head that it does not have.
    yard.anvil.receipt(HexBytes(other.transaction))
