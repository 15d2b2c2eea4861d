"""The key by which a worker is known to the other workers of one task, and its certificate."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from trainyard.content.disk import write_durably
from worker_agent.peers.errors import IdentityError

FILE = "peer.pem"
# Always: a certificate is known by its bytes, for one task. Clocks of strangers may show anything.
_BEGIN, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Identity:
    """A key and its certificate, which lie in one file so that there is never one of them alone."""

    path: Path
    certificate: str
    fingerprint: bytes
    key: ec.EllipticCurvePrivateKey

    def sign(self, data: bytes) -> bytes:
        return self.key.sign(data, ec.ECDSA(SHA256()))

    @property
    def der(self) -> bytes:
        return x509.load_pem_x509_certificate(self.certificate.encode()).public_bytes(Encoding.DER)


def own_identity(folder: Path, worker: str) -> Identity:
    """The identity kept in `folder`, which is made if there is none yet.

    `worker` is the address that holds the slot, with its checksum: the certificate is in its name.
    """
    path = folder / FILE
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # The file is made for its owner's eyes only, and is whole when it gets its name.
        write_durably(path, _make(worker))
    return _load(path, worker)


def _make(worker: str) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, worker)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return secret + certificate.public_bytes(Encoding.PEM)


def _load(path: Path, worker: str) -> Identity:
    if path.stat().st_mode & 0o077:
        raise IdentityError(f"{path} can be read by others: chmod 600 it, or leave the task")
    data = path.read_bytes()
    try:
        key = load_pem_private_key(data, None)
        certificate = x509.load_pem_x509_certificate(data)
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion) as error:
        raise IdentityError(
            f"{path} is damaged: restore it, or leave the task, whose card names it ({error})"
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != (
        certificate.public_key()
    ):
        raise IdentityError(f"{path} has a key that is not its certificate's: restore it")
    (name,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if name.value != worker:
        raise IdentityError(
            f"{path} belongs to {name.value!r}, not to {worker}: use another folder"
        )
    text = certificate.public_bytes(Encoding.PEM).decode()
    return Identity(path, text, certificate.fingerprint(SHA256()), key)
