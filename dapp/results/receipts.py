"""The receipt of a task as anybody reads it from the chain, for `trainyard verify`."""

from dapp.reading.task import Known
from dapp.settings import Settings
from trainyard.sdk.receipts import Receipt, receipt_of


def unsigned_receipt(known: Known, settings: Settings) -> Receipt:
    """What was trained, checked and paid. The requester alone could sign it, and no key is here."""
    return receipt_of(
        known.events,
        known.book,
        known.number,
        chain_id=settings.chain_id,
        market=settings.market,
        start_block=settings.start_block,
    )
