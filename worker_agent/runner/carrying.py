"""Carries the states and documents of a run in rounds from other workers into our own folder.

Nothing comes in that is not what its name says, or that is larger than the manifest allows.
"""

import asyncio
import json
import secrets
from pathlib import Path

from pydantic import ValidationError

from trainyard.engine.exchange import Decision, Exchange, Offer, is_hash
from trainyard.engine.limits import most_state_bytes
from trainyard.engine.state import State
from trainyard.protocol.errors import PermanentError
from trainyard.protocol.manifest import Manifest
from worker_agent.peers.plane import PeerPlane

ASK_S = 20.0
_AT_ONCE = 4


class Carrier:
    """Brings what others have into `exchange`, by way of the folder `desk`, which is ours alone."""

    def __init__(
        self, plane: PeerPlane, manifest: Manifest, exchange: Exchange, desk: Path
    ) -> None:
        self._plane, self._exchange, self._desk = plane, exchange, desk
        self._most_bytes = most_state_bytes(manifest)
        self._free = asyncio.Semaphore(_AT_ONCE)
        desk.mkdir(parents=True, exist_ok=True)

    async def states(self, slot: int, *names: str | None) -> None:
        """Have these states here, from the worker of `slot` if they are not yet."""
        wanted = {name for name in names if name is not None}
        await asyncio.gather(*(self._state(slot, name) for name in wanted))

    async def offer(self, slot: int, number: int) -> None:
        """Have the offer of the worker of `slot` here, and all that it names."""
        data = await self._ask(slot, "offer", number)
        try:
            offer = Offer.model_validate_json(data)
        except ValidationError as error:
            raise PermanentError(f"worker {slot} sent an offer that is none") from error
        if (offer.slot, offer.round) != (slot, number):
            raise PermanentError(f"worker {slot} sent an offer of another part")
        await self.states(slot, offer.leaf, offer.delta)
        self._exchange.post(offer)

    async def _state(self, slot: int, name: str) -> None:
        if not is_hash(name):
            raise PermanentError(f"worker {slot} names a state {name[:64]!r}, which none can be")
        if await asyncio.to_thread(self._exchange.has, name):
            return
        async with self._free:
            # A name of ours: what others say is no part of any path here.
            path = self._desk / secrets.token_hex(8)
            body = json.dumps(name).encode()
            try:
                await self._plane.fetch(slot, "state", body, path, most_bytes=self._most_bytes)
                await asyncio.to_thread(self._keep, path, name, slot)
            finally:
                path.unlink(missing_ok=True)

    def _keep(self, path: Path, name: str, slot: int) -> None:
        state = State.load(path)
        if state.hash.hex() != name:
            raise PermanentError(f"worker {slot} sent another state than it named")
        self._exchange.put(state)

    async def _ask(self, slot: int, kind: str, what: object) -> bytes:
        return await self._plane.ask(slot, kind, json.dumps(what).encode(), timeout_s=ASK_S)


def needed_to_merge(decision: Decision) -> list[str | None]:
    return [offer.delta for offer in decision.offers if offer is not None]


def needed_to_keep(decision: Decision) -> list[str | None]:
    return [offer.leaf for offer in decision.offers if offer is not None]
