"""What a gateway has in its tests, and somebody who asks it for that."""

import io
import random

import urllib3

from trainyard.content.car import read_car
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.gateway_server import GatewayServer

DATA = random.Random(8).randbytes(40_000)
CHUNK = FixedChunker(100)
ABSENT = Cid.of(Codec.RAW, b"absent")


class Asker:
    def __init__(self, server: GatewayServer, http: urllib3.PoolManager) -> None:
        self._server, self._http = server, http

    def __call__(
        self, path: str, method: str = "GET", **headers: str
    ) -> urllib3.response.BaseHTTPResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._http.request(method, f"{self._server.address}/ipfs/{path}", headers=named)

    def car(self, path: str) -> list[tuple[Cid, bytes]]:
        answer = self(path)
        assert answer.status == 200, answer.data
        return list(read_car(io.BytesIO(answer.data)))
