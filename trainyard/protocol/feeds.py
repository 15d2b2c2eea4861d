"""What a worker signs when it tells of its run: the text, and nothing else. No I/O."""

from hashlib import sha256

HEADER = "X-Trainyard-Signature"


def feed_text(body: bytes) -> str:
    """The text that the wallet signs (EIP-191) for a body as it is sent, byte for byte."""
    return f"trainyard feed 1\nsha256 {sha256(body).hexdigest()}"
