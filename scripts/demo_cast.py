"""Who and what the demo is about: its people, and a stand-in for training."""

from dataclasses import dataclass
from typing import Any

from eth_utils.crypto import keccak

from trainyard.protocol.trace import Trace

ETHER = 10**18
ENV_CLASS = keccak(text="tensorflow-cpu 2.21, AVX2, one thread")
POOL = ("Abe", "Bea", "Cyd", "Dov", "Eda", "Fay", "Gil", "Hal")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with an account on the chain."""

    name: str
    account: Any

    @property
    def address(self) -> str:
        return str(self.account.address)

    @property
    def salt(self) -> bytes:
        """A real agent draws a new one for every commitment, and keeps it secret."""
        return keccak(text=f"secret of {self.name}")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Cast:
    requester: Person
    workers: tuple[Person, Person]
    cheat: Person
    pool: tuple[Person, ...]
    passer_by: Person

    @classmethod
    def of(cls, accounts: Any) -> "Cast":
        names = ("Rita", "Walt", "Wanda", "Mallory", "Sam", *POOL)
        # The first account deploys.
        people = [Person(name, accounts[i]) for i, name in enumerate(names, start=1)]
        rita, walt, wanda, mallory, sam, *pool = people
        return cls(rita, (walt, wanda), mallory, tuple(pool), sam)

    @property
    def trainers(self) -> tuple[Person, ...]:
        return (*self.workers, self.cheat)

    @property
    def everyone(self) -> tuple[Person, ...]:
        return (self.requester, *self.trainers, *self.pool, self.passer_by)

    def who(self, address: str) -> Person:
        return next(person for person in self.everyone if person.address == address)


@dataclass(frozen=True, slots=True)
class Job:
    """A training job. One step of hashing stands in for a hundred steps of an optimiser: like them,
    it depends on nothing but the manifest and the state before it, so anyone can do it again."""

    manifest: bytes
    segments: int

    @classmethod
    def named(cls, name: str, segments: int) -> "Job":
        return cls(keccak(text=f"manifest of {name}"), segments)

    def run_segment(self, start: bytes, segment: int) -> bytes:
        return keccak(self.manifest + start + segment.to_bytes(4, "big"))

    def train(self) -> Trace:
        states = [keccak(self.manifest)]
        for segment in range(self.segments):
            states.append(self.run_segment(states[-1], segment))
        return Trace(states)

    def make_up(self) -> Trace:
        """States as a cheat would claim them: nothing was computed."""
        first = keccak(self.manifest)
        return Trace([first, *(keccak(text=f"made up {i}") for i in range(self.segments))])

    def recompute(self, claimed: Trace, segment: int) -> bytes:
        """What an auditor finds who starts where the workers say that the segment starts."""
        return self.run_segment(claimed.states[segment], segment)
