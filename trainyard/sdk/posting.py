"""Posting a task: the terms, whether they can be paid, and the one transaction."""

from dataclasses import dataclass

from trainyard.chain.codec import market_codec
from trainyard.chain.quantities import parse_bytes
from trainyard.protocol.ledger.book import Book
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import Params, Terms
from trainyard.protocol.offering import (
    DEVNET_WINDOWS,
    WINDOWS,
    OfferError,
    Supply,
    Wish,
    best_supply,
    supplies_of,
    terms_for,
    too_few,
)
from trainyard.protocol.telling import amount
from trainyard.sdk.errors import NoMarketError, TooDearError
from trainyard.sdk.following import Known
from trainyard.sdk.market import Market

# Of the currency that fees are paid in, beside what is locked.
_FEE_RESERVE = 10**16


@dataclass(frozen=True, slots=True)
class Offer:
    """Terms for a manifest on a market, as it is now."""

    manifest: Manifest
    terms: Terms
    supply: Supply
    params: Params


def offer_for(market: Market, manifest: Manifest, wish: Wish) -> Offer:
    return offer_in(market, market.read().book, manifest, wish)


def offer_in(market: Market, book: Book, manifest: Manifest, wish: Wish) -> Offer:
    """The same on a market that has just been read."""
    if not book.params:
        raise NoMarketError(f"there is no market at {market.address} since its start block")
    supplies = supplies_of(book)
    if manifest.environment is not None:
        wanted = bytes.fromhex(manifest.environment)
        supply: Supply | None = supplies.get(wanted, Supply(wanted))
    else:
        supply = best_supply(supplies.values())
    if supply is None:
        raise NoMarketError(
            "no worker is registered on this market yet, so nobody could train: wait for one; a "
            f"devnet has some {_with_agents(4)}"
        )
    params = book.params[-1]
    windows = DEVNET_WINDOWS if market.place.is_devnet else WINDOWS
    terms = terms_for(manifest, supply, params, wish, windows)
    _require_enough(terms, supply)
    return Offer(manifest, terms, supply, params)


def _require_enough(terms: Terms, supply: Supply) -> None:
    missing = too_few(terms, supply)
    # Where there are no auditors at all, the market itself says so.
    if missing is None or supply.auditors < terms.min_audits:
        return
    raise OfferError(
        f"{missing}, so it would be trained and then paid back: ask for fewer workers or audits "
        f"(verify 'audit:{max(0, supply.workers - terms.slots)}'), or wait for more people; a "
        f"devnet has more {_with_agents(terms.slots + terms.min_audits)}"
    )


def _with_agents(count: int) -> str:
    """How to get so many agents on a devnet, which has to be down for that."""
    return f"after 'trainyard devnet down' and 'trainyard devnet up --agents {count}'"


def check_budget(terms: Terms, budget: int | None) -> None:
    check_total(terms.escrow, budget)


def check_total(escrow: int, budget: int | None) -> None:
    """The same for what several tasks lock together."""
    if budget is not None and escrow > budget:
        raise TooDearError(
            f"it would cost up to {amount(escrow)}, and the budget is {amount(budget)}: "
            "raise it, offer a lower reward, or ask for fewer workers or audits"
        )


@dataclass(frozen=True, slots=True)
class Posted:
    """A task's number, and what it is known by if the chain is reorganised."""

    number: int
    known: Known


def post(market: Market, offer: Offer) -> Posted:
    """Lock the escrow and post the task.

    What is credited to us in the market already is used first.
    """
    terms = offer.terms
    value = require_money(market, terms.escrow)
    market.put(offer.manifest.canonical)
    transaction = market.send("post", market.calls.post(terms, value=value))
    try:
        known = Known(terms.manifest, market.account.address, transaction)
        return Posted(_number_in(market, transaction), known)
    except Exception as error:
        error.add_note(
            f"the task is posted, by the transaction 0x{transaction.hex()}: 'trainyard tasks' "
            "shows its number"
        )
        raise


def require_money(market: Market, escrow: int) -> int:
    """What has to be sent along for so much to be locked; TooDearError if it is not there."""
    account = market.account
    credit = market.client.account(account.address).credit
    value = 0 if market.client.currency() is not None else max(0, escrow - credit)
    has = market.balance(account.address)
    if has < value + _FEE_RESERVE:
        raise TooDearError(
            f"{account.address} has {amount(has)}, and {amount(value)} are needed, and some more "
            "for fees: put money there, or offer less"
        )
    return value


def _number_in(market: Market, transaction: bytes) -> int:
    receipt = market.endpoints.call("eth_getTransactionReceipt", f"0x{transaction.hex()}")
    codec = market_codec()
    for log in receipt["logs"]:
        topics = [parse_bytes(one, 32) for one in log["topics"]]
        if log["address"].lower() != market.address.lower() or topics[0] not in codec.topics:
            continue
        event = codec.event(topics, parse_bytes(log["data"]))
        if event.name == "TaskPosted":
            return int(event.args["id"])
    raise NoMarketError(f"{market.address} took the post and says nothing of it: it is no market")
