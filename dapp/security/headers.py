"""Headers that go with every answer."""

from collections.abc import Callable

from dapp.settings import Settings

# No inline script or style, and nothing from anywhere else. Images in `data:` are the icons of
# wallets (EIP-6963) and previews of records.
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'none'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_ALWAYS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "x-frame-options": "DENY",
}
_HSTS = ("strict-transport-security", "max-age=31536000; includeSubDomains")

Headers = list[tuple[bytes, bytes]]


def headers_for(settings: Settings) -> Callable[[str], Headers]:
    """The headers of an answer to a path."""
    always = [(name.encode(), value.encode()) for name, value in _ALWAYS.items()]
    if settings.public_url is not None and settings.public_url.startswith("https://"):
        always.append((_HSTS[0].encode(), _HSTS[1].encode()))
    # What the API says is of this moment, and some of it is somebody's own.
    fresh = [*always, (b"cache-control", b"no-store")]

    def headers(path: str) -> Headers:
        return fresh if path.startswith("/api/") else always

    return headers
