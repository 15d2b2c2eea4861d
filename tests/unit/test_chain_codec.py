"""The market's ABI at work, without a chain."""

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from trainyard.chain.codec import MalformedLogError, market_codec
from trainyard.chain.errors import UnknownLogError
from trainyard.chain.reasons import _SENTENCES, sentence
from trainyard.protocol.market import TaskState

WHO = "0x5B38Da6a701c568545dCfcB03FcB875f56beddC4"
DEPOSITED = keccak(text="Deposited(address,uint256)")
WHO_TOPIC = encode(["address"], [WHO])


def _error(signature: str, types: list[str], values: list[object]) -> bytes:
    return keccak(text=signature)[:4] + encode(types, values)


def test_an_event_is_decoded_by_its_names() -> None:
    event = market_codec().event([DEPOSITED, WHO_TOPIC], encode(["uint256"], [5]))

    assert event.name == "Deposited"
    assert event.args == {"account": WHO, "amount": 5}
    assert list(event.args) == ["account", "amount"]


def test_an_unknown_event_asks_for_an_update() -> None:
    with pytest.raises(UnknownLogError, match="update Trainyard"):
        market_codec().event([keccak(text="Surprised()")], b"")


@pytest.mark.parametrize(
    ("topics", "data"),
    [
        ([DEPOSITED], encode(["uint256"], [5])),
        ([DEPOSITED, WHO_TOPIC, WHO_TOPIC], encode(["uint256"], [5])),
        ([DEPOSITED, WHO_TOPIC], b"\1\2"),
        ([DEPOSITED, b"\xff" * 32], encode(["uint256"], [5])),
    ],
)
def test_what_no_market_emits_is_malformed(topics: list[bytes], data: bytes) -> None:
    with pytest.raises(MalformedLogError, match="Deposited with"):
        market_codec().event(topics, data)


def test_every_error_of_the_market_has_a_sentence() -> None:
    ours = {name for name in market_codec().error_names if name.startswith("Market")}

    assert ours - set(_SENTENCES) == set()
    assert set(_SENTENCES) - market_codec().error_names == {"Error"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            _error(
                "MarketUnexpectedState(uint256,uint8)", ["uint256", "uint8"], [3, TaskState.SETTLED]
            ),
            "task 3 is settled",
        ),
        (
            _error("MarketInvalidTerms(bytes32)", ["bytes32"], [b"quorum"]),
            "the task's terms cannot work: quorum",
        ),
        (
            _error("MarketTooLate(uint256,uint256)", ["uint256", "uint256"], [1, 99]),
            "too late for task 1: the deadline was 99",
        ),
        (_error("Error(string)", ["string"], ["not so"]), "not so"),
        (_error("Panic(uint256)", ["uint256"], [17]), "refused with Panic(code 17)"),
        (_error("FailedCall()", [], []), "refused with FailedCall()"),
        (b"\1\2\3\4", "refused without a reason that we know (0x01020304)"),
        # Cut off.
        (keccak(text="MarketTooLate(uint256,uint256)")[:4], "refused without a reason"),
    ],
)
def test_refusals_are_sentences(data: bytes, said: str) -> None:
    assert sentence(data).startswith(said)


@pytest.mark.parametrize("name", sorted(_SENTENCES))
def test_sentences_name_only_what_the_error_has(name: str) -> None:
    entry = next((e for e in market_codec()._errors.values() if e["name"] == name), None)
    known = {part["name"]: "x" for part in entry["inputs"]} if entry else {"text": "x"}

    assert _SENTENCES[name].format_map(known)
