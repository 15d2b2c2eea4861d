"""Peer cards: how the workers of one task know and reach each other. No I/O.

A worker writes its card before it takes a slot, and the card's digest is on chain with the slot. So
whoever finds a card of that digest has what this worker wrote, wherever the bytes came from.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, Protocol

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from eth_account.messages import encode_typed_data
from eth_keys.datatypes import Signature
from eth_keys.exceptions import BadSignature
from eth_utils.address import is_checksum_address, to_checksum_address
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError as MalformedSignature
from pydantic import AfterValidator, Field, ValidationError

from trainyard.protocol.commitments import Market
from trainyard.protocol.errors import PermanentError
from trainyard.protocol.manifest.canonical import canonical, digest, read_json
from trainyard.protocol.manifest.errors import ManifestError
from trainyard.protocol.manifest.values import Strict

LARGEST_CARD_BYTES = 64 << 10
MOST_ENDPOINTS = 4
RELAYED = "relay:"
_LARGEST_CERTIFICATE = 8 << 10
# The largest integer that every reader of JSON has as it is.
_LARGEST_NUMBER = 2**53 - 1
_ENDPOINT = re.compile(
    r"(?:relay:)?(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])"
    r":([1-9][0-9]{0,4})"
)
# What the library makes of strangers' certificates.
_NO_CERTIFICATE = (
    ValueError,
    TypeError,
    InvalidSignature,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
)
# As Ethereum counts the two points that a signature can be of.
_FIRST_V = 27


class CardError(PermanentError, ValueError):
    """A card that is not what this worker of this task should have written."""


class Signed(Protocol):
    @property
    def signature(self) -> bytes: ...


class SignTypedData(Protocol):
    """As an account of eth_account does it."""

    def __call__(self, *, full_message: dict[str, Any]) -> Signed: ...


def _address(text: str) -> str:
    if not is_checksum_address(text):
        raise ValueError("an address is written with its checksum (EIP-55)")
    return text


def _endpoint(text: str) -> str:
    found = _ENDPOINT.fullmatch(text)
    if found is None or int(found[1]) > 65_535:
        raise ValueError('an endpoint is "host:port" or "relay:host:port"')
    return text


def _certificate(text: str) -> str:
    """One certificate that signs itself with P-256, in the one way to write it."""
    try:
        certificate = x509.load_pem_x509_certificate(text.encode("ascii"))
        certificate.verify_directly_issued_by(certificate)
        key = certificate.public_key()
        _ = certificate.subject  # read here, where a name that is none can be refused
        written = certificate.public_bytes(Encoding.PEM).decode()
    except _NO_CERTIFICATE as error:
        raise ValueError(f"no self-signed certificate in PEM: {error}") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("the certificate's key is not of P-256")
    if written != text:
        raise ValueError("PEM with more in it than one certificate")
    return text


Address = Annotated[str, AfterValidator(_address)]
Endpoint = Annotated[str, Field(max_length=300), AfterValidator(_endpoint)]
Number = Annotated[int, Field(ge=0, le=_LARGEST_NUMBER)]


class PeerCard(Strict):
    version: Literal[1]
    chain_id: Number
    market: Address
    task: Number
    worker: Address
    certificate: Annotated[
        str, Field(max_length=_LARGEST_CERTIFICATE), AfterValidator(_certificate)
    ]
    endpoints: Annotated[tuple[Endpoint, ...], Field(min_length=1, max_length=MOST_ENDPOINTS)]
    # By whose key the worker signs what it offers in rounds.
    signer: Address
    signature: Annotated[str, Field(pattern=r"^0x[0-9a-f]{130}$")]

    @classmethod
    def make(
        cls,
        market: Market,
        task: int,
        worker: str,
        *,
        certificate: str,
        endpoints: Sequence[str],
        signer: str,
        sign: SignTypedData,
    ) -> "PeerCard":
        """The card of `worker`, signed by its wallet, as `parse` will have it."""
        message = market.card_message(task, worker, certificate, endpoints, signer)
        signature = bytes(sign(full_message=message).signature)
        document = {
            "version": 1,
            "chain_id": market.chain_id,
            "market": to_checksum_address(market.address),
            "task": task,
            "worker": worker,
            "certificate": certificate,
            "endpoints": list(endpoints),
            "signer": signer,
            "signature": f"0x{signature.hex()}",
        }
        return cls.parse(canonical(document), market=market, task=task, worker=worker)

    @classmethod
    def parse(cls, data: bytes, *, market: Market, task: int, worker: str) -> "PeerCard":
        """The card that `worker` wrote for `task`, or CardError with the reason."""
        if len(data) > LARGEST_CARD_BYTES:
            raise CardError(
                f"a peer card of {len(data)} bytes, where at most {LARGEST_CARD_BYTES} are read"
            )
        try:
            read_json(data)
            card = cls.model_validate_json(data)
        except ManifestError as error:
            raise CardError(f"peer card: {error.reason}") from None
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "card"
            raise CardError(f"peer card: {where[:64]}: {first['msg']}") from None
        card._require(market, task, worker)
        if card.data != data:
            raise CardError("peer card: not in canonical form (RFC 8785)")
        return card

    @cached_property
    def data(self) -> bytes:
        """The one text of this card."""
        return canonical(self.model_dump(mode="json"))

    @property
    def digest(self) -> bytes:
        """What is on chain, and in the CID of the raw block that the card is."""
        return digest(self.data)

    @cached_property
    def fingerprint(self) -> bytes:
        """The SHA-256 of the certificate, by which TLS and relays know the worker."""
        return self._x509.fingerprint(SHA256())

    @cached_property
    def _x509(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate.encode("ascii"))

    def _require(self, market: Market, task: int, worker: str) -> None:
        if (self.chain_id, self.market.lower()) != (market.chain_id, market.address.lower()):
            raise CardError(
                f"peer card: for the market {self.market} on chain {self.chain_id}, not for "
                f"{market.address} on chain {market.chain_id}"
            )
        if self.task != task:
            raise CardError(f"peer card: for task {self.task}, not for task {task}")
        if self.worker.lower() != worker.lower():
            raise CardError(f"peer card: of worker {self.worker}, not of {worker}")
        if len(set(self.endpoints)) != len(self.endpoints):
            raise CardError("peer card: an endpoint is given twice")
        # The certificate signs the name of its worker, so that nobody can put it on another card
        # and be taken for the one who has its key.
        names = self._x509.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        if [name.value for name in names] != [self.worker]:
            raise CardError(f"peer card: the certificate is not in the name of {self.worker}")
        if self._signed_by() != self.worker:
            raise CardError(f"peer card: not signed by {self.worker}")

    def _signed_by(self) -> str | None:
        market = Market(self.chain_id, self.market)
        signable = encode_typed_data(
            full_message=market.card_message(
                self.task, self.worker, self.certificate, self.endpoints, self.signer
            )
        )
        said = keccak(b"\x19" + signable.version + signable.header + signable.body)
        data = bytes.fromhex(self.signature[2:])
        if data[-1] < _FIRST_V:
            return None
        try:
            signature = Signature(data[:-1] + bytes([data[-1] - _FIRST_V]))
            return signature.recover_public_key_from_msg_hash(said).to_checksum_address()
        except (BadSignature, MalformedSignature, ValueError):
            return None
