"""Which endpoint is asked, how much is offered, and how far a question reaches: all without I/O."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.chain.blocks import BlockRef, Header
from trainyard.chain.fees import GWEI, FeePolicy, Fees
from trainyard.chain.health import Health, Patience, staleness
from trainyard.chain.spans import Span
from trainyard.chain.wording import endpoint_name, is_busy, refuses_range, revert_data

PATIENCE = Patience(lag_blocks=3, still_s=60.0)
WEI = st.integers(min_value=1, max_value=10**12)


def _health(head: int | None, moved_at: float = 0.0) -> Health:
    return Health(head=head, moved_at=moved_at)


@pytest.mark.parametrize(
    ("heads", "stale"),
    [
        ([100, 100], [False, False]),
        ([100, 103], [False, False]),
        ([100, 104], [True, False]),
        ([None, 104], [False, False]),
        ([90], [False]),
    ],
)
def test_a_lagging_head_is_stale(heads: list[int | None], stale: list[bool]) -> None:
    each = [_health(head) for head in heads]

    found = [staleness(each, index, 1.0, PATIENCE) is not None for index in range(len(each))]

    assert found == stale


@pytest.mark.parametrize(
    ("one", "other", "stale"),
    [
        (_health(100, 0.0), _health(101, 50.0), True),
        # Nobody moved: the chain stands still.
        (_health(100, 0.0), _health(100, 0.0), False),
        # It moved a moment ago.
        (_health(100, 50.0), _health(101, 60.0), False),
        (_health(101, 0.0), _health(100, 50.0), False),
    ],
)
def test_a_head_that_stands_still_is_stale(one: Health, other: Health, stale: bool) -> None:
    assert (staleness([one, other], 0, 61.0, PATIENCE) is not None) == stale


def test_a_head_of_somebody_ill_makes_nobody_stale() -> None:
    liar, honest = _health(10**9), _health(100)
    assert staleness([liar, honest], 1, 1.0, PATIENCE) is not None

    liar.fail("it has no such block", 1.0, PATIENCE)

    assert staleness([liar, honest], 1, 1.0, PATIENCE) is None


def test_waiting_doubles_and_ends_with_a_success() -> None:
    health = Health()
    waits = []
    for _ in range(3):
        health.fail("busy", 0.0, PATIENCE)
        waits.append(health.retry_at)

    assert waits == [1.0, 2.0, 4.0]
    assert health.waits(3.9)
    assert not health.waits(4.0)
    health.succeed()
    health.fail("busy", 10.0, PATIENCE)
    assert health.retry_at == 11.0


def test_a_wait_that_was_asked_for_is_kept_but_not_for_ever() -> None:
    health = Health()

    health.fail("busy", 0.0, PATIENCE, after_s=20.0)
    assert health.retry_at == 20.0
    health.fail("busy", 0.0, PATIENCE, after_s=1e9)
    assert health.retry_at == PATIENCE.longest_wait_s


def test_a_span_halves_and_doubles_within_its_bounds() -> None:
    span = Span(most=10)

    assert [span.size for _ in range(4) if span.shrink()] == [5, 2, 1]
    assert not span.shrink()
    sizes = []
    for _ in range(5):
        span.grow()
        sizes.append(span.size)
    assert sizes == [2, 4, 8, 10, 10]


@given(old=st.builds(Fees, max_fee=WEI, tip=WEI), base_fee=WEI, tip=WEI)
def test_a_replacement_offers_an_eighth_more(old: Fees, base_fee: int, tip: int) -> None:
    new = FeePolicy(most_wei=10**15).raised(old, base_fee, tip)

    assert new is not None
    assert new.max_fee * 8 >= old.max_fee * 9
    assert new.tip * 8 >= old.tip * 9
    assert new.max_fee >= base_fee


@given(base_fee=WEI, tip=WEI)
def test_no_offer_is_beyond_the_limit(base_fee: int, tip: int) -> None:
    policy = FeePolicy(most_wei=GWEI)

    first = policy.first(base_fee, tip)

    assert first.tip <= first.max_fee <= GWEI
    raised = policy.raised(first, base_fee, tip)
    assert raised is None or raised.tip <= raised.max_fee <= GWEI


def test_an_endpoint_is_named_without_its_secrets() -> None:
    name = endpoint_name("https://user:pass@node.example:8545/v3/key?token=t")

    assert name == "https://node.example:8545"
    with pytest.raises(ValueError, match="not one of 'ftp'"):
        endpoint_name("ftp://node.example")


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("query returned more than 10000 results", True),
        ("eth_getlogs is limited to a 10,000 range", True),
        ("exceed maximum block range: 5000", True),
        ("log response size exceeded", True),
        ("daily request count exceeded, request rate limited", False),
        ("execution aborted", False),
    ],
)
def test_a_refused_range_is_told_from_other_errors(said: str, refused: bool) -> None:
    assert refuses_range(said) == refused


@pytest.mark.parametrize(
    ("said", "busy"),
    [
        ("project is over its request count", True),
        ("429 too many requests", True),
        ("gas limit exceeded", False),
        ("nonce too low", False),
    ],
)
def test_a_busy_node_is_told_from_one_that_refuses(said: str, busy: bool) -> None:
    assert is_busy(said) == busy


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ("0x0102", b"\1\2"),
        ({"data": "0x0102"}, b"\1\2"),
        ("Reverted 0x0102", b"\1\2"),
        (None, b""),
        ("nonsense", b""),
        (7, b""),
    ],
)
def test_the_bytes_of_a_revert_are_found(data: object, found: bytes) -> None:
    assert revert_data(data) == found


@pytest.mark.parametrize(("asked", "tip"), [(0, 1), (7, 7), (90, 50)])
def test_gas_costs_the_base_fee_and_the_tip_that_is_offered(asked: int, tip: int) -> None:
    head = Header(BlockRef(7, b"h" * 32), b"p" * 32, 1_000, 3 * GWEI, b"")
    assert FeePolicy().price(head, asked * GWEI) == (3 + tip) * GWEI
