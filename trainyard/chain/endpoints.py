"""Several endpoints as one: the first that is well is asked, and the next if it fails.

What is found: no answer, errors, garbage, another chain, a head that lags or stands still, and
whatever the caller finds out about an answer (`Rpc.error`). What is not: an endpoint that makes up
a whole chain with sound hashes. Name endpoints of people that you trust that far.
"""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, TypeVar

from trainyard.chain.errors import (
    EndpointError,
    NodeRefusedError,
    NoEndpointError,
    RangeRefusedError,
    WrongChainError,
)
from trainyard.chain.health import Health, Patience, staleness
from trainyard.chain.quantities import number_in
from trainyard.chain.rpc import Rpc

_Result = TypeVar("_Result")


class Endpoints:
    """Endpoints of one chain, the preferred one first. For one thread at a time."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        chain_id: int,
        patience: Patience | None = None,
        timeout_s: float = 10.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        if not urls:
            raise ValueError("no endpoint is named")
        self.chain_id = chain_id
        self._patience = patience or Patience()
        self._clock = clock
        self._rpcs = _named_apart([Rpc(url, timeout_s=timeout_s) for url in urls])
        self._healths = [Health() for _ in urls]
        self._heads_at: float | None = None

    def check(self) -> None:
        """Refuse an endpoint of another chain, for an entry point to call at its start.

        Endpoints that cannot be asked now pass: they are checked before they are used.
        """
        for rpc, health in zip(self._rpcs, self._healths, strict=True):
            try:
                self._check_chain(rpc, health)
            except EndpointError as error:
                self._note(health, error)

    def call(self, method: str, *params: Any) -> Any:
        return self.run(lambda rpc: rpc.request(method, *params))

    def run(self, work: Callable[[Rpc], _Result]) -> _Result:
        """Do all of `work` with one endpoint; if that fails, all of it with the next.

        Answers of different nodes may be of different forks, so what belongs together is asked of
        one.
        """
        refusal: EndpointError | None = None
        failures: list[str] = []
        self._see_heads()
        for index, rpc in enumerate(self._rpcs):
            health = self._healths[index]
            if ill := self._illness(index):
                failures.append(f"{rpc.name}: {ill}")
                continue
            try:
                self._check_chain(rpc, health)
                result = work(rpc)
            except (NodeRefusedError, RangeRefusedError) as error:
                # The node is well; another may know, or dare, what this one does not.
                refusal = refusal or error
            except WrongChainError as error:
                failures.append(str(error))
            except EndpointError as error:
                failures.append(str(error))
                self._note(health, error)
            else:
                health.succeed()
                return result
        if refusal is not None:
            raise refusal
        raise NoEndpointError(failures, self._wait_s())

    def states(self) -> dict[str, str]:
        """Each endpoint, and what is wrong with it; nothing if it is well."""
        return {rpc.name: self._illness(index) for index, rpc in enumerate(self._rpcs)}

    def _illness(self, index: int) -> str:
        now, health = self._clock(), self._healths[index]
        if health.waits(now):
            return health.why
        return staleness(self._healths, index, now, self._patience) or ""

    def _check_chain(self, rpc: Rpc, health: Health) -> None:
        if health.chain_checked:
            return
        found = number_in(rpc, rpc.request("eth_chainId"))
        if found != self.chain_id:
            error = WrongChainError(rpc.name, found, self.chain_id)
            health.refuse(str(error))
            raise error
        health.chain_checked = True

    def _see_heads(self) -> None:
        """Ask everybody for its head, now and then. Alone, nobody can be stale."""
        now = self._clock()
        fresh = self._heads_at is not None and now - self._heads_at < self._patience.heads_s
        if len(self._rpcs) == 1 or fresh:
            return
        for rpc, health in zip(self._rpcs, self._healths, strict=True):
            if health.waits(now):
                continue
            try:
                self._check_chain(rpc, health)
                health.see_head(number_in(rpc, rpc.request("eth_blockNumber")), self._clock())
            except EndpointError as error:
                self._note(health, error)
            except WrongChainError:
                continue
        self._heads_at = self._clock()

    def _note(self, health: Health, error: EndpointError) -> None:
        health.fail(error.why, self._clock(), self._patience, error.retry_after_s)

    def _wait_s(self) -> float:
        """How long until one of them may be asked again."""
        now = self._clock()
        waits = [health.retry_at - now for health in self._healths if not health.refused]
        return max(0.0, min(waits, default=self._patience.longest_wait_s))


def _named_apart(rpcs: list[Rpc]) -> list[Rpc]:
    """Two addresses of one host, told apart by their places."""
    names = [rpc.name for rpc in rpcs]
    for place, rpc in enumerate(rpcs, 1):
        if names.count(rpc.name) > 1:
            rpc.name = f"{rpc.name} (number {place})"
    return rpcs
