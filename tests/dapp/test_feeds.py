"""Run feeds: who may tell, what is kept, and how those who watch hear of it."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from eth_account import Account
from eth_account.messages import encode_defunct
from eth_account.signers.local import LocalAccount
from sqlalchemy import func, select

from dapp.database.models import LiveRow, PointRow
from dapp.indexer.indexing import Chain, Indexer
from dapp.signing.feeds import MOST_NAMES
from tests.dapp.server import Client, caught_up, dapp_for, settings_for, wait_for
from tests.dapp.yard import Yard
from trainyard.protocol.feeds import HEADER, feed_text
from trainyard.protocol.market import Policy

_ETHER = 10**18
_GAS = 3_000_000


class Feed:
    """A worker of a task that is being trained, and the requests that it makes."""

    def __init__(self, client: Client, yard: Yard, worker: LocalAccount, task: int) -> None:
        self.client, self.yard, self.worker, self.task = client, yard, worker, task
        self.sequence = int(time.time() * 1000)

    def batch(self, **more: Any) -> dict[str, Any]:
        self.sequence += 1
        return {
            "version": 1,
            "chain_id": self.yard.chain_id,
            "market": self.yard.market,
            "task": self.task,
            "worker": self.worker.address,
            "slot": 0,
            "sequence": self.sequence,
            "sent_at": int(time.time()),
            "phase": "training",
            "points": [],
            "lines": [],
        } | more

    def post(
        self, batch: dict[str, Any], *, by: LocalAccount | None = None, signature: str | None = None
    ) -> httpx.Response:
        body = json.dumps(batch).encode()
        if signature is None:
            signed = (by or self.worker).sign_message(encode_defunct(text=feed_text(body)))
            signature = f"0x{bytes(signed.signature).hex()}"
        return self.client.post(
            f"/tasks/{self.task}/feed", content=body, headers={HEADER: signature}
        )


@pytest.fixture(scope="module")
def server(
    played: Yard, make_url: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """One for all tests, which follows the chain also where a test takes something back."""
    settings = settings_for(
        played,
        tmp_path_factory.mktemp("dapp"),
        make_url(),
        kept_points=100,
        kept_lines=100,
        kept_live=100,
        kept_live_bytes=1 << 20,
    )
    with dapp_for(settings) as client:
        yield client


@pytest.fixture
def feed(yard: Yard, server: Client) -> Feed:
    yard.anvil.request("anvil_autoImpersonateAccount", True)
    worker = registered(yard)
    # The next test's task has the same number, and none of what was told of this one.
    return joined(server, yard, worker, yard.live.post(Policy.AUDIT, 1))


def registered(yard: Yard) -> LocalAccount:
    worker: LocalAccount = Account.create()
    yard.anvil.request("anvil_setBalance", worker.address, hex(100 * _ETHER))
    env_class = yard.live.terms(Policy.AUDIT, 1).env_class
    terms = (bytes([2]) * 32, env_class, 0)
    yard.live.call("register", *terms, by=worker.address, value=10 * _ETHER)
    return worker


def joined(server: Client, yard: Yard, worker: LocalAccount, task: int) -> Feed:
    yard.live.call("join", task, bytes([1]) * 32, [], by=worker.address)
    caught_up(server, yard)
    return Feed(server, yard, worker, task)


def _point(step: int, **values: float) -> dict[str, Any]:
    return {"time": time.time(), "step": step, "steps": 100, "values": values}


def test_what_a_worker_tells_is_shown(feed: Feed) -> None:
    lines = [{"time": time.time(), "level": "warning", "text": "a line\x07 with a bell"}]
    points = [_point(1, loss=2.0, accuracy=0.1), _point(2, loss=1.0, accuracy=0.5)]

    assert feed.post(feed.batch(points=points, lines=lines)).json() == {
        "sequence": feed.sequence,
        "points": 2,
        "lines": 1,
        "dropped": 0,
    }

    view = feed.client.json(f"/tasks/{feed.task}/metrics")
    by_name = {one["name"]: one for one in view["series"]}
    assert by_name["loss"]["values"] == [2.0, 1.0]
    assert by_name["accuracy"]["steps"] == [1, 2]
    (line,) = feed.client.json(f"/tasks/{feed.task}/logs", level="warning")["items"]
    assert line["text"] == "a line� with a bell"
    assert feed.client.json(f"/tasks/{feed.task}/logs", level="error")["items"] == []
    assert feed.client.json(f"/tasks/{feed.task}")["task"]["progress"] == pytest.approx(0.02)


def test_who_takes_over_has_done_what_came_after(feed: Feed) -> None:
    feed.post(feed.batch(points=[_point(step, loss=1.0) for step in (1, 40, 75)]))
    (slot,) = feed.client.json(f"/tasks/{feed.task}")["slots"]
    assert slot["contribution"] == 1.0
    live = feed.yard.live
    live.call("ping", feed.task, 0, by=live.requester)
    feed.yard.anvil.next_block_at(live._read("slot", feed.task, 0).pongBy + 1)
    live.call("evict", feed.task, 0, by=live.requester)
    second = joined(feed.client, feed.yard, registered(feed.yard), feed.task)

    second.post(second.batch(points=[_point(76, loss=0.9)]))
    second.post(second.batch(points=[_point(100, loss=0.8)]))

    (slot,) = feed.client.json(f"/tasks/{feed.task}")["slots"]
    assert (slot["worker"], slot["contribution"]) == (second.worker.address, 0.25)


def test_nobody_else_can_tell(feed: Feed) -> None:
    stranger: LocalAccount = Account.create()

    wrong = feed.post(feed.batch(), by=stranger)
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (401, "bad_signature")
    unsigned = feed.post(feed.batch(), signature="0x" + "00" * 65)
    assert unsigned.status_code == 401
    nonsense = feed.post(feed.batch(), signature="hello")
    assert nonsense.status_code == 401
    none = feed.client.post(f"/tasks/{feed.task}/feed", json=feed.batch())
    assert none.status_code == 422
    # Signed well, and by somebody who has no slot.
    outside = feed.post(feed.batch(worker=stranger.address), by=stranger)
    assert (outside.status_code, outside.json()["error"]["code"]) == (403, "no_slot")
    assert feed.post(feed.batch(slot=3)).status_code == 403
    assert feed.post(feed.batch(chain_id=1)).status_code == 403
    assert feed.post(feed.batch(sent_at=int(time.time()) - 86_400)).status_code == 403
    ended = feed.post(feed.batch(task=2))
    assert ended.status_code == 422


def test_a_batch_counts_once(feed: Feed) -> None:
    batch = feed.batch(points=[_point(1, loss=1.0)])

    assert feed.post(batch).status_code == 200
    again = feed.post(batch)

    assert (again.status_code, again.json()["error"]["code"]) == (409, "replayed")
    view = feed.client.json(f"/tasks/{feed.task}/metrics")
    assert view["series"][0]["values"] == [1.0]


def test_a_changed_body_is_not_what_was_signed(feed: Feed) -> None:
    batch = feed.batch(points=[_point(1, loss=1.0)])
    body = json.dumps(batch).encode()
    signed = feed.worker.sign_message(encode_defunct(text=feed_text(body)))

    answer = feed.client.post(
        f"/tasks/{feed.task}/feed",
        content=body.replace(b"1.0", b"0.1"),
        headers={HEADER: f"0x{bytes(signed.signature).hex()}"},
    )

    assert answer.status_code == 401


def test_what_is_kept_is_bounded(feed: Feed) -> None:
    for start in range(0, 1200, 200):
        points = [_point(step, loss=float(step)) for step in range(start, start + 200)]
        lines = [{"time": time.time(), "text": f"line {n}"} for n in range(start, start + 200)]
        assert feed.post(feed.batch(points=points, lines=lines)).status_code == 200

    (loss,) = feed.client.json(f"/tasks/{feed.task}/metrics")["series"]
    assert 50 < len(loss["values"]) <= 100
    # The older, the fewer.
    assert loss["steps"][1] - loss["steps"][0] > loss["steps"][-1] - loss["steps"][-2] == 1
    assert (loss["steps"][0], loss["steps"][-1]) == (0, 1199)
    page = feed.client.json(f"/tasks/{feed.task}/logs", limit=1000)
    assert len(page["items"]) <= 100
    assert page["items"][-1]["text"] == "line 1199"
    too_many = [_point(step, loss=1.0) for step in range(300)]
    assert feed.post(feed.batch(points=too_many)).status_code == 422


def test_pages_of_lines_go_both_ways(feed: Feed) -> None:
    lines = [{"time": float(n), "text": f"line {n}"} for n in range(10)]
    feed.post(feed.batch(lines=lines))

    tail = feed.client.json(f"/tasks/{feed.task}/logs", limit=3)
    assert [one["text"] for one in tail["items"]] == ["line 7", "line 8", "line 9"]
    before = feed.client.json(f"/tasks/{feed.task}/logs", limit=3, before=tail["first"])
    assert [one["text"] for one in before["items"]] == ["line 4", "line 5", "line 6"]
    after = feed.client.json(f"/tasks/{feed.task}/logs", after=before["last"])
    assert [one["text"] for one in after["items"]] == ["line 7", "line 8", "line 9"]


def test_a_run_has_so_many_numbers_and_no_more(feed: Feed) -> None:
    kept = []
    for batch in range(4):
        names = {f"metric_{batch}_{n}": float(n) for n in range(32)}
        told = feed.post(feed.batch(points=[_point(batch, **names)])).json()
        kept.append((told["points"], told["dropped"]))
    # Who tells is told what was left out; a point of which nothing is left is none.
    assert kept == [(1, 0), (1, 0), (0, 32), (0, 32)]
    # What is known goes on, whatever else is told.
    known = feed.post(feed.batch(points=[_point(9, metric_0_0=9.0, new=1.0)])).json()
    assert (known["points"], known["dropped"]) == (1, 1)
    with feed.client.app.state.services.database.reading() as session:
        assert session.scalar(select(func.count()).select_from(PointRow)) == 3

    series = feed.client.json(f"/tasks/{feed.task}/metrics")["series"]
    assert len(series) == MOST_NAMES
    by_name = {one["name"]: one for one in series}
    assert by_name["metric_0_0"]["values"] == [0.0, 9.0]
    assert "new" not in by_name
    assert len(feed.client.json(f"/tasks/{feed.task}/result")["metrics"]) == MOST_NAMES


def test_batches_that_come_at_once_count_once_each(feed: Feed) -> None:
    """The first ones, too, of which each would make the row of the feed."""
    batches = [feed.batch(points=[_point(n, loss=float(n))]) for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda one: feed.post(one).status_code, batches))

    # A batch that was overtaken is refused, and nothing fails.
    assert set(statuses) <= {200, 409}
    (loss,) = feed.client.json(f"/tasks/{feed.task}/metrics")["series"]
    assert len(loss["values"]) == statuses.count(200) >= 1


class Listener(threading.Thread):
    """Reads a stream of events until it is told to end."""

    def __init__(self, feed: Feed, *topics: str, after: str | None = None) -> None:
        super().__init__(daemon=True)
        self.events: list[dict[str, Any]] = []
        self._address = str(feed.client.base_url)
        self._topics, self._after = topics, after
        self._response: httpx.Response | None = None
        # The last number that was said, with an event or before the first one.
        self.place: str | None = None
        self.start()
        wait_for(lambda: self._response is not None, "the stream")

    def run(self) -> None:
        headers = {} if self._after is None else {"Last-Event-ID": self._after}
        with (
            httpx.Client(timeout=30, trust_env=False) as client,
            client.stream(
                "GET",
                f"{self._address}events",
                params=[("topic", topic) for topic in self._topics],
                headers=headers,
            ) as response,
        ):
            self._response = response
            event: dict[str, Any] = {}
            try:
                for line in response.iter_lines():
                    if not line:
                        if "event" in event:
                            self.events.append(event)
                        event = {}
                    name, _, value = line.partition(": ")
                    if name == "id":
                        self.place = value
                    if name in ("id", "event", "data"):
                        event[name] = json.loads(value) if name == "data" else value
            except (httpx.HTTPError, OSError):
                return

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.events if one["event"] == kind]


def test_who_listens_hears_within_moments(feed: Feed) -> None:
    listener = Listener(feed, f"task:{feed.task}")
    began = time.monotonic()

    feed.post(feed.batch(points=[_point(1, loss=0.5)]))
    wait_for(lambda: listener.of("metrics"), "the metrics")

    assert time.monotonic() - began < 2.0
    (told,) = listener.of("metrics")
    assert told["data"]["points"][0]["values"] == {"loss": 0.5}


def test_who_was_away_goes_on_where_it_was(feed: Feed) -> None:
    first = Listener(feed, f"task:{feed.task}")
    feed.post(feed.batch(points=[_point(1, loss=1.0)]))
    wait_for(lambda: first.of("metrics"), "the metrics")
    place = first.of("metrics")[0]["id"]
    feed.post(feed.batch(points=[_point(2, loss=0.9)]))
    feed.post(feed.batch(lines=[{"time": 0.0, "text": "meanwhile"}]))

    again = Listener(feed, f"task:{feed.task}", after=place)

    wait_for(lambda: again.of("logs"), "what was missed")
    assert [one["data"]["points"][0]["step"] for one in again.of("metrics")] == [2]
    assert again.of("reset") == []


def test_who_has_heard_nothing_yet_misses_nothing(feed: Feed) -> None:
    feed.post(feed.batch(points=[_point(1, loss=1.0)]))
    # Of another task: this one hears nothing, and its line breaks.
    first = Listener(feed, "task:999")
    wait_for(lambda: first.place is not None, "the hello")
    feed.post(feed.batch(points=[_point(2, loss=0.9)]))

    again = Listener(feed, f"task:{feed.task}", after=first.place)

    wait_for(lambda: again.of("metrics"), "what was missed")
    assert [one["data"]["points"][0]["step"] for one in again.of("metrics")][-1] == 2
    assert first.events == again.of("reset") == []


def test_who_has_heard_of_the_future_begins_anew(feed: Feed) -> None:
    listener = Listener(feed, f"task:{feed.task}", after="999999999")

    wait_for(lambda: listener.of("reset"), "the reset")


def test_who_missed_too_much_begins_anew(feed: Feed) -> None:
    """What is told is kept by its bytes: a few large batches are enough to lose the first."""
    first = Listener(feed, f"task:{feed.task}")
    feed.post(feed.batch(points=[_point(1, loss=1.0)]))
    wait_for(lambda: first.of("metrics"), "the metrics")
    place = first.of("metrics")[0]["id"]
    lines = [{"time": 0.0, "text": "x" * 1_500} for _ in range(256)]
    for _ in range(4):
        assert feed.post(feed.batch(lines=lines)).status_code == 200

    again = Listener(feed, f"task:{feed.task}", after=place)

    wait_for(lambda: again.of("reset"), "the reset")
    with feed.client.app.state.services.database.reading() as session:
        kept = session.scalar(select(func.sum(func.length(LiveRow.data))))
        assert 0 < kept <= 1 << 20
        assert session.scalar(select(func.min(LiveRow.id))) > int(place)
    # And goes on from the newest.
    feed.post(feed.batch(points=[_point(2, loss=0.5)]))
    wait_for(lambda: again.of("metrics"), "what comes next")


def test_everybody_hears_that_all_begins_anew(feed: Feed) -> None:
    """An index that is rebuilt: whatever somebody looks at may be otherwise now."""
    people = [Listener(feed, topic) for topic in (f"task:{feed.task}", "market")]
    place = people[0]
    feed.post(feed.batch(points=[_point(1, loss=1.0)]))
    wait_for(lambda: place.of("metrics"), "the metrics")
    services = feed.client.app.state.services
    chain = Chain(feed.yard.chain_id, feed.yard.market, feed.yard.start)
    Indexer(services.database, feed.yard.endpoints(), chain).rebuild()

    wait_for(lambda: all(one.of("reset") for one in people), "the reset")
    # And so does who was away meanwhile.
    late = Listener(feed, f"task:{feed.task}", after=place.of("metrics")[0]["id"])
    wait_for(lambda: late.of("reset"), "the reset")


def test_the_chain_is_heard_and_so_are_its_reorgs(feed: Feed) -> None:
    yard = feed.yard
    listener = Listener(feed, "market")
    before = yard.anvil.request("evm_snapshot")

    posted = yard.live.post(Policy.SCORE, 1)
    wait_for(lambda: listener.of("task"), "the task")
    assert listener.of("task")[-1]["data"]["task"] == posted
    yard.anvil.request("evm_revert", before)
    yard.anvil.mine(3)

    wait_for(lambda: listener.of("undone"), "the reorg")
    assert listener.of("undone")[0]["data"]["tasks"] == [posted]
    wait_for(lambda: feed.client.get(f"/tasks/{posted}").status_code == 404, "the task to be gone")


def test_topics_are_checked(feed: Feed) -> None:
    assert feed.client.get("/events", params={"topic": "everything"}).status_code == 422
    assert feed.client.get("/events", params={"topic": ["market"] * 9}).status_code == 422
