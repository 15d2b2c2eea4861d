"""Signed offers: the keys of a run's workers, and what is kept of what they signed.

A worker has a key for one run alone. Whoever has its offers can show what it vouched for.
"""

import secrets
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from trainyard.engine.errors import RunError, StateError
from trainyard.engine.exchange import Offer
from trainyard.engine.journal import write_whole
from trainyard.engine.signing import Statement, address_of
from trainyard.protocol.manifest import Manifest

OFFERS, SIGNERS = "offers", "signers.json"
_KEY = "key"
_KEY_BYTES = 32
Signers = tuple[Annotated[str, Field(pattern="^0x[0-9a-fA-F]{40}$")], ...]
_SIGNERS: TypeAdapter[Signers] = TypeAdapter(Signers)


def own_key(folder: Path) -> bytes:
    """The key of the worker of `folder`, made when it is first asked for."""
    path = folder / _KEY
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return _new_key(path)
    if len(key) != _KEY_BYTES:
        raise RunError(f"{path} is no key of a worker")
    return key


def signed(offer: Offer, manifest: Manifest, key: bytes) -> Offer:
    return offer.model_copy(update={"signature": statement_of(offer, manifest).sign(key)})


def check_signed(offer: Offer, manifest: Manifest, signers: Signers) -> None:
    """Refuse an offer that the worker of its slot has not signed."""
    wanted = signers[offer.slot]
    signer = statement_of(offer, manifest).signer(offer.signature)
    if signer != wanted:
        by = "nobody" if signer is None else signer
        raise StateError(
            f"the offer of worker {offer.slot} in round {offer.round} is signed by {by}, and not "
            f"by {wanted}"
        )


def statement_of(offer: Offer, manifest: Manifest) -> Statement:
    return Statement(
        manifest=manifest.digest,
        round=offer.round,
        slot=offer.slot,
        globe=bytes.fromhex(offer.globe),
        leaf=bytes.fromhex(offer.leaf),
        delta=None if offer.delta is None else bytes.fromhex(offer.delta),
        absence=offer.absence,
    )


def name_of(number: int, slot: int) -> str:
    return f"{number:06}-{slot}.json"


def keep(run: Path, offer: Offer) -> None:
    """Keep an offer with the run: what lies where the workers meet, they could change."""
    write_whole(run / OFFERS / name_of(offer.round, offer.slot), offer.model_dump_json().encode())


def keep_signers(run: Path, signers: Signers) -> None:
    """Write down who signs in this run, which cannot change in it."""
    path = run / OFFERS / SIGNERS
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        write_whole(path, _SIGNERS.dump_json(signers))
    elif read_signers(path.read_bytes()) != signers:
        raise RunError(
            f"the workers' keys are not those that {run} began with: put peers/*/{_KEY} back, or "
            "begin anew in another folder"
        )


def read_signers(data: bytes) -> Signers:
    try:
        return _SIGNERS.validate_json(data)
    except ValidationError as error:
        raise StateError("the run does not say who signs in it") from error


def _new_key(path: Path) -> bytes:
    key = secrets.token_bytes(_KEY_BYTES)
    # Of all numbers of this length, the few that are no key are never drawn.
    address_of(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Half a key could be neither used nor replaced: who signs cannot change in a run.
    write_whole(path, key, mode=0o600)
    return key
