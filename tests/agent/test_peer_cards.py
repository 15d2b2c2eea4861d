"""A card is what its worker wrote for one task of one market, and nothing else is one."""

import json
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.peers_yard import MARKET, TASK, card_of, wallet
from trainyard.content.cid import Cid, Codec
from trainyard.protocol.cards import LARGEST_CARD_BYTES, CardError, PeerCard
from trainyard.protocol.commitments import Market
from trainyard.protocol.errors import PermanentError
from trainyard.protocol.manifest.canonical import canonical
from worker_agent.peers.errors import IdentityError
from worker_agent.peers.identity import own_identity

WORKER, OTHER = wallet("worker"), wallet("other")
ENDPOINTS = ["203.0.113.7:4000", "[2001:db8::1]:4000", "a-b.example.org:1", "relay:r.example:65535"]
Document = dict[str, Any]


def certificate_for(name: str, curve: ec.EllipticCurve, by: Any = None) -> str:
    key, now = ec.generate_private_key(curve), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(by or key, SHA256())
        .public_bytes(Encoding.PEM)
        .decode()
    )


def altered(certificate: str, old: str, new: str) -> str:
    """The same certificate with other bytes in it."""
    found = x509.load_pem_x509_certificate(certificate.encode()).public_bytes(Encoding.DER)
    assert bytes.fromhex(old) in found
    return ssl.DER_cert_to_PEM_cert(found.replace(bytes.fromhex(old), bytes.fromhex(new)))


P256 = ec.SECP256R1()
CERTIFICATE = certificate_for(WORKER.address, P256)
CERTIFICATE_OF_OTHER = certificate_for(OTHER.address, P256)
CARD = PeerCard.make(
    MARKET,
    TASK,
    WORKER.address,
    certificate=CERTIFICATE,
    endpoints=ENDPOINTS,
    signer=OTHER.address,
    sign=WORKER.sign_typed_data,
)


def parse(data: bytes, **changes: Any) -> PeerCard:
    return PeerCard.parse(
        data, **{"market": MARKET, "task": TASK, "worker": WORKER.address, **changes}
    )


def signed(by: Any = WORKER, **changes: Any) -> bytes:
    """A card that says what its worker should not have said, well signed."""
    said = json.loads(CARD.data) | changes
    market = Market(said["chain_id"], said["market"])
    message = market.card_message(
        said["task"], said["worker"], said["certificate"], said["endpoints"], said["signer"]
    )
    signature = by.sign_typed_data(full_message=message).signature
    return canonical(said | {"signature": f"0x{bytes(signature).hex()}"})


def test_a_card_says_what_was_written() -> None:
    card = parse(CARD.data)

    assert card == CARD
    assert card.endpoints == tuple(ENDPOINTS)
    assert (card.worker, card.signer, card.task) == (WORKER.address, OTHER.address, TASK)
    assert card.digest == sha256(CARD.data).digest() == Cid.of(Codec.RAW, CARD.data).digest
    assert (
        card.fingerprint
        == sha256(
            x509.load_pem_x509_certificate(CERTIFICATE.encode()).public_bytes(Encoding.DER)
        ).digest()
    )


def test_addresses_are_the_same_in_any_spelling() -> None:
    market = Market(MARKET.chain_id, MARKET.address.upper().replace("0X", "0x"))

    assert parse(CARD.data, market=market, worker=WORKER.address.lower()) == CARD


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"task": TASK + 1}, "for task 7, not for task 8"),
        ({"market": Market(1, MARKET.address)}, "on chain 1337, not for"),
        ({"market": Market(1337, "0x" + 40 * "2")}, "for the market 0x1111"),
        ({"worker": OTHER.address}, "of worker"),
    ],
)
def test_a_card_for_something_else_is_refused(given: Document, reason: str) -> None:
    with pytest.raises(CardError, match=reason):
        parse(CARD.data, **given)


@pytest.mark.parametrize(
    "change",
    [
        {"endpoints": ["203.0.113.8:4000"]},
        {"endpoints": ENDPOINTS[::-1]},
        {"signer": WORKER.address},
        {"certificate": certificate_for(WORKER.address, P256)},
        {"signature": "0x" + "00" * 65},
        {"signature": "0x" + "ff" * 65},
        {"signature": CARD.signature[:-2] + "ff"},
        {"signature": CARD.signature[:-2] + "00"},
    ],
)
def test_the_signature_is_of_all_that_the_card_says(change: Document) -> None:
    with pytest.raises(CardError, match="not signed by"):
        parse(canonical(json.loads(CARD.data) | change))


def test_nobody_else_signs_for_a_worker() -> None:
    with pytest.raises(CardError, match="not signed by"):
        parse(signed(by=OTHER))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 2}, "version"),
        ({"task": "7"}, "task"),
        ({"more": 1}, "more"),
        ({"worker": WORKER.address.lower()}, "checksum"),
        ({"endpoints": []}, "endpoints"),
        ({"endpoints": [f"203.0.113.7:{port}" for port in range(1, 6)]}, "endpoints"),
        ({"endpoints": ["a:1", "a:1"]}, "given twice"),
        ({"certificate": CERTIFICATE + CERTIFICATE}, "more in it than one"),
        ({"certificate": "a line\n" + CERTIFICATE}, "more in it than one"),
        ({"certificate": CERTIFICATE_OF_OTHER}, "not in the name of"),
        ({"certificate": certificate_for(WORKER.address, ec.SECP384R1())}, "not of P-256"),
        (
            {
                "certificate": certificate_for(
                    WORKER.address, P256, by=ec.generate_private_key(P256)
                )
            },
            "no self-signed certificate",
        ),
        ({"certificate": CERTIFICATE.replace("M", "N")}, "no self-signed certificate"),
        # Of a version, with a key of a kind, on a curve and with a name that nobody knows.
        ({"certificate": altered(CERTIFICATE, "a003020102", "a003020107")}, "no self-signed"),
        (
            {"certificate": altered(CERTIFICATE, "2a8648ce3d0201", "2a8648ce3d0209")},
            "no self-signed",
        ),
        (
            {"certificate": altered(CERTIFICATE, "2a8648ce3d030107", "2a8648ce3d03017f")},
            "no self-signed",
        ),
        ({"certificate": altered(CERTIFICATE, "0c2a3078", "0c2affff")}, "no self-signed"),
        ({"certificate": "-----BEGIN CERTIFICATE-----\n"}, "no self-signed certificate"),
        ({"certificate": "é"}, "no self-signed certificate"),
        ({"certificate": CERTIFICATE + 10_000 * "\n"}, "certificate"),
    ],
)
def test_a_worker_cannot_say_just_anything(change: Document, reason: str) -> None:
    with pytest.raises(CardError, match=reason) as caught:
        parse(signed(**change))
    assert isinstance(caught.value, PermanentError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "endpoint",
    [
        *("", "host", "host:", ":1", "host:0", "host:65536", "host:01", "host:1 ", "ho st:1"),
        *("relay:host", "relay::1", "udp:host:1", "2001:db8::1:4000", "[2001:db8::1:4000"),
        *(
            "-host:1",
            "host-:1",
            "host:1\n",
            "user@host:1",
            "host/path:1",
            "höst:1",
            "a" * 300 + ":1",
        ),
    ],
)
def test_an_endpoint_is_a_host_and_a_port(endpoint: str) -> None:
    with pytest.raises(CardError, match=r"endpoints\.0"):
        parse(signed(endpoints=[endpoint]))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 10_000,
        b" " * LARGEST_CARD_BYTES + CARD.data,
        CARD.data + b" ",
        CARD.data.replace(b'":', b'": '),
        CARD.data.replace(b'"version":1', b'"version":1,"version":1'),
        CARD.data.replace(b'"task":7', b'"task":7.0'),
        CARD.data[:-1],
    ],
    # By number: the card is another one in each process.
    ids=map(str, range(12)),
)
def test_what_is_no_card_is_refused(data: bytes) -> None:
    with pytest.raises(CardError):
        parse(data)


# What the library only warns of is refused for another reason.
@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@given(st.data())
def test_no_other_bytes_are_the_card(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(CARD.data) - 1))
    letter = data.draw(st.integers(0, 255))
    other = CARD.data[:place] + bytes([letter]) + CARD.data[place + 1 :]

    if other == CARD.data:
        assert parse(other) == CARD
    else:
        with pytest.raises(CardError):
            parse(other)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_in_one_way(data: bytes) -> None:
    with pytest.raises(CardError):
        parse(data)


def test_an_identity_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    made = own_identity(tmp_path / "task", WORKER.address)
    again = own_identity(tmp_path / "task", WORKER.address)

    assert (again.certificate, again.fingerprint) == (made.certificate, made.fingerprint)
    assert made.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in made.path.parent.iterdir()] == ["peer.pem"]
    assert card_of(made, WORKER, "a:1").fingerprint == made.fingerprint


def _lend(path: Path) -> None:
    path.chmod(0o640)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def _mix(path: Path) -> None:
    secret = path.read_text().partition("-----BEGIN CERTIFICATE")[0]
    path.write_text(secret + CERTIFICATE)


def _give(path: Path) -> None:
    path.write_bytes(own_identity(path.parent / "other", OTHER.address).path.read_bytes())


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (_lend, "chmod 600"),
        (_cut, "is damaged"),
        (_mix, "not its certificate's"),
        (_give, "belongs to"),
    ],
)
def test_a_spoilt_identity_is_not_used(
    harm: Callable[[Path], None], reason: str, tmp_path: Path
) -> None:
    harm(own_identity(tmp_path, WORKER.address).path)

    with pytest.raises(IdentityError, match=reason):
        own_identity(tmp_path, WORKER.address)
