"""A real HTTP server in front of anvil that does what bad endpoints do."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import sleep
from typing import Any

from requests import Session

# Changes the answer to one request: its method, its parameters, and what anvil said.
Change = Callable[[str, list[Any], dict[str, Any]], dict[str, Any]]


class Proxy:
    """What is set here holds from the next request on."""

    def __init__(self, target: str) -> None:
        self.target, self.url = target, ""
        self._session = Session()
        self._session.trust_env = False
        self._session.headers["Content-Type"] = "application/json"
        self.asked: list[str] = []
        self.change: Change = lambda method, params, answer: answer
        self.status, self.headers = 200, dict[str, str]()
        self.body: bytes | None = None
        self.promised_bytes: int | None = None
        self.drip_s = 0.0
        self.batches = True
        # These never reach anvil.
        self.refused_methods = set[str]()

    def questions(self, method: str) -> int:
        return self.asked.count(method)

    def answer(self, body: bytes) -> bytes:
        asked = json.loads(body)
        several = isinstance(asked, list)
        if several and not self.batches:
            return json.dumps({"id": None, "error": {"code": -32600, "message": "one"}}).encode()
        if not several and asked["method"] in self.refused_methods:
            error = {"code": -32005, "message": "limit exceeded"}
            return json.dumps({"id": asked["id"], "error": error}).encode()
        answers = self._session.post(self.target, body, timeout=30).json()
        if not several:
            return json.dumps(self._changed(asked, answers)).encode()
        by_id = {answer["id"]: answer for answer in answers}
        return json.dumps([self._changed(each, by_id[each["id"]]) for each in asked]).encode()

    def _changed(self, asked: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(asked["method"])
        return self.change(asked["method"], asked["params"], answer)


@contextmanager
def proxy_before(target: str) -> Iterator[Proxy]:
    proxy = Proxy(target)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            said = proxy.answer(body) if proxy.body is None else proxy.body
            self.send_response(proxy.status)
            for name, value in proxy.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(proxy.promised_bytes or len(said)))
            self.end_headers()
            if not proxy.drip_s:
                self.wfile.write(said)
            for byte in said if proxy.drip_s else b"":
                try:
                    self.wfile.write(bytes([byte]))
                except OSError:
                    break
                sleep(proxy.drip_s)
            if proxy.promised_bytes:
                self.close_connection = True

        def log_message(self, *args: Any) -> None:
            """Tests say what they need to."""

    # Threads end with the server: none outlives its test.
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
