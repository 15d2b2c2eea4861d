"""One endpoint: requests over web3's provider, and every failure as an error that names it.

The body of an answer is bounded in size and in time, however it comes. An error's text never has
the whole address: providers put their customers' keys into it.
"""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests import PreparedRequest, Response, Session
from requests.exceptions import ChunkedEncodingError, ContentDecodingError
from web3 import HTTPProvider
from web3.types import RPCEndpoint

from trainyard.chain.errors import (
    EndpointError,
    NodeRefusedError,
    RangeRefusedError,
    RevertedError,
)
from trainyard.chain.reasons import sentence
from trainyard.chain.wording import endpoint_name, is_busy, refuses_range, revert_data

_MOST_BYTES = 64 * 2**20
_PIECE_BYTES = 2**16
_REVERTED = 3
_LIMIT_EXCEEDED, _INTERNAL = -32005, -32603
_SEND = "eth_sendRawTransaction"


class TooLargeError(requests.RequestException):
    """An answer beyond the limit."""


class Rpc:
    """Requests to one endpoint."""

    def __init__(self, url: str, *, timeout_s: float = 10.0) -> None:
        self.name = endpoint_name(url)
        self._timeout_s = timeout_s
        self._provider = HTTPProvider(
            url,
            request_kwargs={"timeout": timeout_s, "stream": False, "allow_redirects": False},
            session=_BoundedSession(timeout_s, proxied=not _is_loopback(url)),
            # What is tried again, and where, is not one endpoint's to decide.
            exception_retry_configuration=None,
        )
        self._batches = True

    def request(self, method: str, *params: Any) -> Any:
        answer = self._ask(lambda: self._provider.make_request(RPCEndpoint(method), list(params)))
        return self._result(method, answer)

    def batch(self, method: str, each: Sequence[Sequence[Any]]) -> list[Any]:
        """One request per entry of `each`, in one message where the endpoint takes such."""
        if self._batches and len(each) > 1:
            asked = [(RPCEndpoint(method), list(params)) for params in each]
            answers = self._ask(lambda: self._provider.make_batch_request(asked))
            if isinstance(answers, list):
                if len(answers) != len(each):
                    raise self.error(f"{len(answers)} answers to {len(each)} requests")
                return [self._result(method, answer) for answer in answers]
            # One error for all: it takes no batches.
            self._batches = False
        return [self.request(method, *params) for params in each]

    def error(self, why: str) -> EndpointError:
        return EndpointError(self.name, why)

    def _ask(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except TooLargeError:
            raise RangeRefusedError(self.name, f"an answer of over {_MOST_BYTES} bytes") from None
        except requests.HTTPError as error:
            raise self._http_error(error.response) from None
        except (requests.Timeout, TimeoutError, urllib3.exceptions.TimeoutError):
            raise self.error(f"no answer within {self._timeout_s:g} s") from None
        except (ChunkedEncodingError, ContentDecodingError, urllib3.exceptions.HTTPError):
            raise self.error("its answer broke off") from None
        except requests.RequestException as error:
            # Their texts have the whole address.
            raise self.error(f"cannot be reached ({type(error).__name__})") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise self.error("its answer is no JSON-RPC") from None

    def _http_error(self, response: Response | None) -> EndpointError:
        if response is None:
            return self.error("answered with an HTTP error")
        after = response.headers.get("Retry-After", "")
        return EndpointError(
            self.name,
            f"answered with HTTP {response.status_code}",
            retry_after_s=float(after) if after.isdigit() else None,
        )

    def _result(self, method: str, answer: Any) -> Any:
        if not isinstance(answer, dict) or not ("result" in answer or "error" in answer):
            raise self.error(f"its answer to {method} is no JSON-RPC")
        if answer.get("error") is None:
            return answer.get("result")
        error = answer["error"]
        if not isinstance(error, dict):
            raise self.error(f"its answer to {method} is no JSON-RPC")
        raise self._refused(method, error)

    def _refused(self, method: str, error: dict[str, Any]) -> Exception:
        code, message = error.get("code"), str(error.get("message", ""))[:300]
        said = message.lower()
        if code == _REVERTED or "revert" in said:
            data = revert_data(error.get("data"))
            return RevertedError(sentence(data) if data else message, data)
        if method == "eth_getLogs" and refuses_range(said):
            return RangeRefusedError(self.name, f"it refused a range of blocks: {message}")
        # Some nodes call it an internal error that a transaction is not to their liking.
        internal = code == _INTERNAL and method != _SEND
        if code == _LIMIT_EXCEEDED or internal or is_busy(said):
            return self.error(f"it cannot answer now: {message}")
        return NodeRefusedError(self.name, code if isinstance(code, int) else 0, message)


class _BoundedSession(Session):
    """Reads an answer whole, within its time and size. Redirects would lead to other hosts."""

    def __init__(self, timeout_s: float, *, proxied: bool) -> None:
        super().__init__()
        self._timeout_s = timeout_s
        # No proxy between us and our own ports.
        self.trust_env = proxied

    def send(self, request: PreparedRequest, **kwargs: Any) -> Response:
        end = monotonic() + self._timeout_s
        response = super().send(request, **{**kwargs, "stream": True})
        pieces, size = [], 0
        while piece := response.raw.read1(_PIECE_BYTES, decode_content=True):
            size += len(piece)
            if size > _MOST_BYTES:
                response.close()
                raise TooLargeError
            if monotonic() > end:
                response.close()
                raise requests.Timeout
            pieces.append(piece)
        response._content = b"".join(pieces)
        response.raw.release_conn()
        return response


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost")
