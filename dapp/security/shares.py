"""How many places one client has at once."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from dapp.errors import unavailable
from dapp.security.clients import asking


class Shares:
    """Counts who is inside. Whoever is no client, such as the server itself, has no bound."""

    def __init__(self, most_of_one: int) -> None:
        self._most, self._inside = most_of_one, Counter[str]()
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, refusal: str, *, retry_after_s: float = 1.0) -> Iterator[None]:
        """503 with `refusal` where a client has all of its places already; nobody waits."""
        client = asking.get()
        with self._lock:
            if client and self._inside[client] >= self._most:
                raise unavailable(refusal, retry_after_s=retry_after_s)
            self._inside[client] += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside[client] -= 1
                # Also drops those who are not inside any more.
                self._inside += Counter()
