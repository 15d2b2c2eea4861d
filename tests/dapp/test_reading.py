"""The market as the API tells it, on both databases."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from dapp.database.models import AccountRow
from dapp.reading.cursors import encode_cursor
from tests.dapp.server import Client, caught_up, dapp_for, settings_for
from tests.dapp.yard import Yard
from trainyard.protocol.market import Policy

_ETHER = 10**18
_FRAUD = 6


@pytest.fixture(scope="module")
def client(
    played: Yard, make_url: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """One server for all, which follows the chain also where a test takes something back."""
    folder = tmp_path_factory.mktemp("dapp")
    with dapp_for(settings_for(played, folder, make_url())) as found:
        yield found


def test_the_market_is_told_in_numbers(client: Client) -> None:
    stats = client.json("/stats")

    assert stats["tasks"] == 6
    assert stats["tasks_by_state"] == {"failed": 2, "open": 1, "settled": 3}
    assert stats["success_rate"] == pytest.approx(0.6)
    assert stats["disputes"] == stats["disputes_upheld"] == 1
    assert int(stats["held_wei"]) == int(_task(client, 1)["money"]["held_wei"])


def test_wallets_are_told_how_to_reach_the_chain(client: Client, played: Yard) -> None:
    config = client.json("/config")

    assert (config["chain_id"], config["market"]) == (played.chain_id, played.market)
    assert {"post", "cancel", "settle"} <= {one.get("name") for one in config["abi"]}
    assert config["has_faucet"] is False
    assert int(config["params"]["seat_bond"]) > 0


def test_pages_of_tasks_have_each_of_them_once(client: Client) -> None:
    for sort in ("newest", "oldest", "reward", "-reward", "deadline", "updated"):
        seen, cursor = [], None
        while True:
            more: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
            page = client.json("/tasks", sort=sort, limit=2, **more)
            seen += [one["id"] for one in page["items"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert sorted(seen) == [1, 2, 3, 4, 5, 6], sort
        assert page["total"] == 6
    assert [one["id"] for one in client.json("/tasks")["items"]] == [6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"state": "open"}, [1]),
        ({"state": ["settled", "failed"]}, [6, 5, 4, 3, 2]),
        ({"policy": "replicate"}, [3]),
        ({"active": True}, [1]),
        ({"active": False, "policy": "audit"}, [6, 5, 2]),
        ({"search": "#4"}, [4]),
        ({"search": "nothing is called that"}, []),
        ({"min_reward": str(2 * _ETHER)}, []),
        ({"listed": True}, []),
    ],
)
def test_filters_find_what_they_name(
    client: Client, query: dict[str, Any], found: list[int]
) -> None:
    assert [one["id"] for one in client.json("/tasks", **query)["items"]] == found


def test_people_find_their_tasks(client: Client, played: Yard) -> None:
    first, second = played.live.workers[:2]

    mine = client.json("/tasks", worker=first.lower())["items"]
    assert {one["id"] for one in mine} == {2, 3, 4, 5, 6}
    assert {one["id"] for one in client.json("/tasks", worker=second)["items"]} == {2, 3}
    posted = client.json("/tasks", requester=played.live.requester)
    assert posted["total"] == 6
    assert client.json("/tasks", search=played.live.requester[:12])["total"] == 6


def test_a_settled_task_is_told_whole(client: Client, played: Yard) -> None:
    task = _task(client, 2)

    assert task["task"]["state"] == "settled"
    assert [slot["worker"] for slot in task["slots"]] == played.live.workers[:3]
    assert all(slot["status"] == "answered" for slot in task["slots"])
    assert [seat["agrees"] for seat in task["seats"]] == [True] * len(task["seats"])
    assert task["clock"]["next"] is None
    money = task["money"]
    assert int(money["held_wei"]) == 0
    assert int(money["spent_wei"]) + int(money["refunded_wei"]) == int(money["escrow_wei"])
    assert money["rule"].startswith("It is over")


def test_an_open_task_says_who_moves_and_what_comes_back(client: Client) -> None:
    task = _task(client, 1)

    assert task["clock"]["next"]["call"] in ("join", "expire")
    calls = {move["call"] for move in task["clock"]["moves"]}
    assert "expire" in calls
    assert task["money"]["refund_call"] == "cancel"
    assert task["money"]["refundable_wei"] == task["money"]["escrow_wei"]


def test_a_timeline_has_every_event_with_its_transaction(client: Client, played: Yard) -> None:
    timeline = client.json("/tasks/2/timeline")

    assert [stage["status"] for stage in timeline["stages"]] == ["done"] * 6
    names = [event["name"] for event in timeline["events"]]
    assert names[0] == "TaskPosted"
    assert "TaskSettled" in names
    for event in timeline["events"]:
        receipt = played.anvil.web3.eth.get_transaction_receipt(event["transaction"])
        assert receipt["blockNumber"] == event["block"]
        assert event["confirmations"] > 0
        assert event["time"] == played.anvil.web3.eth.get_block(event["block"])["timestamp"]


def test_a_failed_task_says_why(client: Client) -> None:
    absent, fraud = _task(client, 5), _task(client, 6)

    assert (absent["task"]["failure"], fraud["task"]["failure"]) == ("no_quorum", "fraud")
    stages = client.json("/tasks/6/timeline")["stages"]
    assert stages[-1]["title"] == "Failed"
    assert stages[-1]["detail"] == "the workers' claim was wrong"


@pytest.mark.parametrize("number", range(2, 7))
def test_what_was_paid_is_what_was_spent(client: Client, number: int) -> None:
    """However it ended: the result, the money of the task and the chain say the same."""
    money = {name: int(wei) for name, wei in _money(client, number).items()}
    result = client.json(f"/tasks/{number}/result")

    assert money["held"] == 0
    assert money["spent"] + money["refunded"] == money["escrow"]
    assert int(result["paid_wei"]) == money["spent"]
    assert int(result["refunded_wei"]) == money["refunded"]
    # Only where workers were wrong is there more than was put in.
    assert (money["compensated"] > 0) == (number == _FRAUD)


def _money(client: Client, number: int) -> dict[str, str]:
    found = _task(client, number)["money"]
    names = ("escrow", "held", "spent", "refunded", "compensated")
    return {name: found[f"{name}_wei"] for name in names}


def test_a_trace_says_who_looked_and_what_they_found(client: Client) -> None:
    audited, disputed = client.json("/tasks/2/trace"), client.json("/tasks/6/trace")

    assert {one["status"] for one in audited["looked_at"]} == {"audited"}
    assert {one["audit"] for one in audited["looked_at"]} == {"agrees"}
    assert 0 < audited["detection"] < 1
    upheld = [one for one in disputed["looked_at"] if one["status"] == "upheld"]
    assert len(upheld) == 1
    assert upheld[0]["verdict"] == "the workers are wrong"
    assert len(upheld[0]["referees"]) == 3
    assert upheld[0]["challenger"] is not None


def test_workers_are_ranked_by_what_they_earned(client: Client, played: Yard) -> None:
    page = client.json("/workers", limit=3)

    earned = [int(one["earned_wei"]) for one in page["items"]]
    assert earned == sorted(earned, reverse=True)
    assert [one["rank"] for one in page["items"]] == [1, 2, 3]
    following = client.json("/workers", limit=3, cursor=page["next"])
    assert [one["rank"] for one in following["items"]] == [4, 5, 6]
    for sort in ("settled", "success", "bond"):
        assert len(client.json("/workers", sort=sort)["items"]) == 20


def test_a_long_record_is_ranked_too(client: Client, played: Yard) -> None:
    """Some thousand successes are more millionths than 32 bits have."""
    database = client.app.state.services.database
    first = played.live.workers[0]
    with database.writing() as session:
        before, session.get(AccountRow, first).settled = (
            session.get(AccountRow, first).settled,
            100_000,
        )

    best = client.json("/workers", sort="success", limit=1)
    following = client.json("/workers", sort="success", cursor=best["next"])

    assert best["items"][0]["address"] == first
    assert first not in {one["address"] for one in following["items"]}
    with database.writing() as session:
        session.get(AccountRow, first).settled = before


@pytest.mark.parametrize(
    ("path", "sort", "values"),
    [
        ("/workers", "settled", [2**62, "0x", 1]),
        ("/workers", "settled", [2**31, "0x", 1]),
        ("/workers", "success", [2**62, "0x", 1]),
        ("/workers", "since", [2**63, "0x", 1]),
        ("/workers", "since", [1, "0x", 2**62]),
        ("/workers", "earned", ["9" * 79, "0x", 1]),
        ("/workers", "earned", ["1", "\ud800", 1]),
        ("/workers", "settled", [True, "0x", 1]),
        ("/workers", "settled", [1.0, "0x", 1]),
        ("/tasks", "newest", [2**63, 1]),
        ("/tasks", "deadline", [-1, 1]),
        ("/tasks", "reward", ["\u0661", 1]),
    ],
)
def test_cursors_that_were_never_given_out_are_refused(
    client: Client, path: str, sort: str, values: list[Any]
) -> None:
    answer = client.get(path, params={"sort": sort, "cursor": encode_cursor(values)})

    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "query.cursor")


@pytest.mark.parametrize("sort", ["settled", "success", "bond", "since", "earned"])
def test_the_ends_of_what_cursors_can_say_are_answered(client: Client, sort: str) -> None:
    ends = {"settled": 2**31 - 1, "success": 999_999, "since": 2**63 - 1}
    last = encode_cursor([ends.get(sort, "9" * 78), "0x", 2**31 - 1])

    client.json("/workers", sort=sort, cursor=last)


def test_workers_are_found_by_address_and_by_class(client: Client, played: Yard) -> None:
    first = played.live.workers[0]
    env_class = client.json("/classes")["items"][0]["env_class"]

    assert [one["address"] for one in client.json("/workers", search=first[:16])["items"]] == [
        first
    ]
    assert client.json("/workers", search=env_class[:12])["total"] == 205
    assert client.json("/workers", search=env_class)["total"] == 205
    assert client.json("/workers", search="0x" + "ab" * 32)["total"] == 0


def test_a_worker_has_a_record_and_its_tasks(client: Client, played: Yard) -> None:
    worker = client.json(f"/workers/{played.live.workers[0].lower()}")

    assert worker["worker"]["settled"] == 3
    assert worker["worker"]["failed"] == 2
    assert {task["id"] for task in worker["tasks"]} == {2, 3, 4, 5, 6}
    assert sum(int(wei) for _, wei in worker["earnings"]) == int(worker["worker"]["earned_wei"])
    assert client.get("/workers/0x" + "11" * 20).status_code == 404


def test_a_class_has_its_capacity_and_prices(client: Client, played: Yard) -> None:
    (found,) = client.json("/classes")["items"]

    assert found["workers"] == 205
    assert found["auditors"] == 200
    assert int(found["median_reward_wei"]) == _ETHER
    assert found["open_tasks"] == 1


def test_an_account_has_its_credit(client: Client, played: Yard) -> None:
    account = client.json(f"/accounts/{played.live.requester}")

    assert account["tasks_posted"] == 6
    assert int(account["credit_wei"]) > 0
    assert client.json("/accounts/0x" + "11" * 20)["tasks_posted"] == 0


def test_rewards_are_sorted_as_they_are_called(client: Client, yard: Yard) -> None:
    for wei in (3 * _ETHER, _ETHER // 2):
        terms = replace(yard.live.terms(Policy.SCORE, 1), reward=wei)
        yard.live.call("post", terms.as_tuple(), by=yard.live.requester)
    caught_up(client, yard)

    def rewards(sort: str) -> list[int]:
        return [int(one["reward_wei"]) for one in client.json("/tasks", sort=sort)["items"]]

    highest, lowest = rewards("-reward"), rewards("reward")
    assert (highest[0], highest[-1]) == (3 * _ETHER, _ETHER // 2)
    assert highest == sorted(highest, reverse=True)
    assert lowest == sorted(lowest)


def test_who_is_there_longest_comes_first(client: Client, yard: Yard) -> None:
    youngest = yard.live.workers[0]
    yard.live.call("addBond", _ETHER, by=youngest, value=_ETHER)
    caught_up(client, yard)
    found: list[dict[str, Any]] = []
    more: dict[str, Any] = {}
    while True:
        page = client.json("/workers", sort="since", limit=100, **more)
        found += page["items"]
        if page["next"] is None:
            break
        more = {"cursor": page["next"]}

    assert len(found) == page["total"]
    there = [one for one in found if one["since"] is not None]
    # And after them who is not in the pool.
    assert found[: len(there)] == there
    assert len(there) < len(found)
    times = [one["since"] for one in there]
    assert times == sorted(times)
    assert times[0] < times[-1]
    assert there[-1]["address"] == youngest


def test_a_check_says_what_a_task_is_likely_to_cost(client: Client, played: Yard) -> None:
    """Of three entries in a contest one is paid: that is less than is locked."""
    terms = {
        "manifest": "0x" + "ab" * 32,
        "env_class": client.json("/classes")["items"][0]["env_class"],
        "policy": "contest",
        "slots": 3,
        "reward": str(_ETHER),
        "stake": str(_ETHER),
    }

    answer = client.post("/preflight", json={"terms": terms, "rehearse": False})

    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (int(found["at_most_wei"]), int(found["likely_wei"])) == (3 * _ETHER, _ETHER)
    assert found["sentence"].startswith("at most 3 ETH, likely 1 ETH, refundable from ")
    # Nobody has measured it, and nobody guesses.
    assert found["estimated_train_s"] is None


def test_what_happens_next_is_there_within_moments(client: Client, yard: Yard) -> None:
    yard.live.post(Policy.SCORE, 1)
    caught_up(client, yard)

    assert client.json("/tasks")["items"][0]["policy"] == "score"


def test_what_is_not_there_is_not_found(client: Client) -> None:
    for path in ("/tasks/99", "/tasks/99/timeline", "/tasks/99/trace", "/tasks/99/result"):
        answer = client.get(path)
        assert answer.status_code == 404, path
        assert answer.json()["error"]["code"] == "not_found"


def _task(client: Client, number: int) -> Any:
    return client.json(f"/tasks/{number}")
