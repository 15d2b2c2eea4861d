"""Addresses of gateways."""

import pytest

from trainyard.content.gateway_client import GatewaySource
from trainyard.content.ports import StreamingSource
from trainyard.protocol.errors import PermanentError


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("http://127.0.0.1:8080", "gateway http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080/", "gateway http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080/ipfs/", "gateway http://127.0.0.1:8080"),
        ("https://gateway.example/below", "gateway https://gateway.example/below"),
        ("http://[::1]:8080", "gateway http://[::1]:8080"),
    ],
)
def test_an_address_is_brought_to_one_form(address: str, name: str) -> None:
    source = GatewaySource(address)

    assert source.name == name
    assert isinstance(source, StreamingSource)
    source.close()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "127.0.0.1:8080",
        "/ip4/127.0.0.1/tcp/8080",
        "ftp://host",
        "file:///etc/passwd",
        "http://",
        "http://user:secret@host",
        "http://host/?query",
        "http://[::1",
        "http://host:99999999",
    ],
)
def test_what_is_no_address_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(PermanentError, match=r"write it like http://127\.0\.0\.1:8080") as caught:
        GatewaySource(address)
    assert "secret" not in str(caught.value)
