"""By whom each slot of a run in rounds signs, now and before it changed hands."""

import json
from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from trainyard.engine.offers import Signers
from trainyard.protocol.errors import PermanentError
from worker_agent.progress import Shelf

_FILE = "signers.json"
_MOST_OF_A_SLOT = 64
_ADAPTER: TypeAdapter[Signers] = TypeAdapter(Signers)


class KnownSigners:
    """Kept with the task: who has left is on no card any more."""

    def __init__(self, shelf: Shelf, workers: int) -> None:
        self._shelf = shelf
        found = shelf.read(_FILE) or [[] for _ in range(workers)]
        self._slots: list[list[str]] = [list(one) for one in found]

    @property
    def is_complete(self) -> bool:
        return all(self._slots)

    @property
    def all(self) -> Signers:
        return tuple(one[0] if len(one) == 1 else tuple(one) for one in self._slots)

    @property
    def data(self) -> bytes:
        return json.dumps(self._slots).encode()

    def learn(self, signers: Mapping[int, str]) -> None:
        """Whom the cards of the present holders name."""
        for slot, signer in signers.items():
            if signer not in self._slots[slot]:
                self._slots[slot].append(signer)
        self._shelf.write(self._slots, _FILE)

    def take_over(self, data: bytes) -> None:
        """Those of before our time, as somebody tells of them."""
        try:
            told = _ADAPTER.validate_json(data)
        except ValidationError as error:
            raise PermanentError("a peer names signers that are none") from error
        if len(told) != len(self._slots):
            raise PermanentError("a peer names signers of another run")
        for slot, signers in enumerate(told):
            if isinstance(signers, tuple) and len(signers) <= _MOST_OF_A_SLOT:
                known = self._slots[slot]
                self._slots[slot] = list(dict.fromkeys([*signers, *known]))
        self._shelf.write(self._slots, _FILE)
