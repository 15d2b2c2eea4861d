"""What a devnet remembers from one run to the next, and what it says of a run."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from trainyard.devnet.errors import DevnetError
from trainyard.devnet.files import write_whole
from trainyard.devnet.options import Options
from trainyard.devnet.place import Place
from trainyard.protocol.market import Params

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the devnet listens on 127.0.0.1; zero where no port was needed yet."""

    chain: int = 0
    gateway: int = 0
    kubo: int = 0
    kubo_swarm: int = 0
    dapp: int = 0


@dataclass(frozen=True, slots=True)
class Market:
    address: str
    # The first block to read events from.
    start_block: int
    # That block, by which the chain is known again.
    block_hash: str
    params: Params


@dataclass(frozen=True, slots=True)
class Record:
    options: Options
    ports: Ports
    market: Market | None = None
    # Everybody's address by name.
    people: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, place: Place) -> Self | None:
        """What is remembered; None where there was no devnet yet."""
        try:
            found = json.loads(place.record.read_text())
            if found["version"] != _VERSION:
                raise DevnetError(
                    f"{place.record} is of version {found['version']}, and this is {_VERSION}: "
                    "'trainyard devnet reset' begins anew"
                )
            options, ports = Options(**found["options"]), Ports(**found["ports"])
            return cls(options, ports, _market(found["market"]), found["people"])
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DevnetError(
                f"{place.record} is damaged: 'trainyard devnet reset' begins anew"
            ) from error

    def write(self, place: Place) -> None:
        write_whole(place.record, json.dumps({"version": _VERSION, **asdict(self)}, indent=2))


def _market(found: dict[str, Any] | None) -> Market | None:
    return None if found is None else Market(**found | {"params": Params(**found["params"])})


@dataclass(frozen=True, slots=True)
class Running:
    """A run, as whoever runs it wrote it down when all of it was there."""

    url: str
    gateway: str
    kubo: str | None
    # The pid and the birth, by which a process is told from a later one of that pid.
    processes: dict[str, tuple[int, int]]
    # The page's address, if the dapp runs too.
    dapp: str | None = None

    @classmethod
    def read(cls, place: Place) -> Self | None:
        try:
            found = json.loads(place.running.read_text())
            each = {
                name: (int(pid), int(birth)) for name, (pid, birth) in found["processes"].items()
            }
            return cls(**found | {"processes": each})
        except (OSError, ValueError, TypeError, KeyError):
            # Of a run that is still coming up, or going down.
            return None

    def write(self, place: Place) -> None:
        write_whole(place.running, json.dumps(asdict(self), indent=2))
