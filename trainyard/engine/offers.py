"""Signed offers: the keys of a run's workers, and what is kept of what they signed.

A worker has a key for one run alone. Whoever has its offers can show what it vouched for.
"""

import secrets
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from trainyard.engine.errors import RunError, StateError
from trainyard.engine.exchange import Offer
from trainyard.engine.journal import write_whole
from trainyard.engine.plain_files import remove_unfinished
from trainyard.engine.signing import Statement, address_of
from trainyard.protocol.manifest import Manifest

OFFERS, SIGNERS = "offers", "signers.json"
_KEY = "key"
_KEY_BYTES = 32
_Address: TypeAlias = Annotated[str, Field(pattern="^0x[0-9a-fA-F]{40}$")]
Signers = tuple[_Address | tuple[_Address, ...], ...]
"""Who signs for each slot: an address, or where a slot changed hands all that it had, in order.

A signature says which of them it is of, so it need not be said from which round on each signed.
"""
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


def check_signed(offer: Offer, manifest: Manifest, signers: Signers) -> str:
    """Who signed an offer; one that no worker of its slot has signed is refused."""
    wanted = _all_of(signers[offer.slot])
    signer = statement_of(offer, manifest).signer(offer.signature)
    if signer is None or signer not in wanted:
        raise StateError(
            f"the offer of worker {offer.slot} in round {offer.round} is signed by "
            f"{signer or 'nobody'}, and not by {' or '.join(wanted) or 'anybody known'}"
        )
    return signer


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


def drop(run: Path, number: int, slot: int) -> None:
    (run / OFFERS / name_of(number, slot)).unlink(missing_ok=True)


def keep_signers(run: Path, signers: Signers) -> None:
    """Write down who signs in this run. Others can come, but nobody can be taken back."""
    path = run / OFFERS / SIGNERS
    path.parent.mkdir(exist_ok=True)
    remove_unfinished(path.parent, may_be_link=True)
    kept = read_signers(path.read_bytes()) if path.exists() else None
    if kept == signers:
        return
    if kept is None or _is_more(signers, kept):
        write_whole(path, _SIGNERS.dump_json(signers))
    else:
        raise RunError(
            f"the workers' keys are not those that {run} began with: put peers/*/{_KEY} back, or "
            "begin anew in another folder"
        )


def read_signers(data: bytes) -> Signers:
    try:
        return _SIGNERS.validate_json(data)
    except ValidationError as error:
        raise StateError("the run does not say who signs in it") from error


def sum_up_signers(run: Path, manifest: Manifest) -> None:
    """Write down who did sign, by the offers alone: so it is the same for all who have the run."""
    found: list[list[str]] = [[] for _ in range(manifest.training.workers)]
    for path in sorted((run / OFFERS).glob("[0-9]*.json"), key=_place):
        offer = Offer.model_validate_json(path.read_bytes())
        signer = statement_of(offer, manifest).signer(offer.signature)
        if signer is not None and signer not in found[offer.slot]:
            found[offer.slot].append(signer)
    signers = tuple(one[0] if len(one) == 1 else tuple(one) for one in found)
    write_whole(run / OFFERS / SIGNERS, _SIGNERS.dump_json(signers))


def _place(path: Path) -> tuple[int, int]:
    number, slot = path.stem.split("-")
    return int(number), int(slot)


def _all_of(signers: str | tuple[str, ...]) -> tuple[str, ...]:
    return (signers,) if isinstance(signers, str) else signers


def _is_more(signers: Signers, kept: Signers) -> bool:
    pairs = [(_all_of(one), _all_of(other)) for one, other in zip(signers, kept, strict=False)]
    return len(signers) == len(kept) and all(set(one) >= set(other) for one, other in pairs)


def _new_key(path: Path) -> bytes:
    key = secrets.token_bytes(_KEY_BYTES)
    # Of all numbers of this length, the few that are no key are never drawn.
    address_of(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Half a key could be neither used nor replaced: who signs cannot change in a run.
    write_whole(path, key, mode=0o600)
    return key
