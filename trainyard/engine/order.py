"""Which records each step takes: a function of seed and step alone, with no state to carry.

Position p = step * batch + i lies in epoch p // n, and there it takes record order(p mod n), where
`order` is that epoch's own permutation of the n records. So every record comes exactly once an
epoch, no batch is short (one may span two epochs), and any step can be asked for at once.

A permutation is a Feistel network whose halves are numbers below two bounds, a and b, with a * b
just over n (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). What falls out of
range is sent through again until it is in, which happens to about one record in the root of n. All
arithmetic is on 64-bit integers, so every machine and every version of NumPy has the same order.
"""

import struct
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from math import isqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.int64]
_Words: TypeAlias = npt.NDArray[np.uint64]

LARGEST_SEED = 2**63 - 1
# The bounds of both halves stay below 2**31, and so each product below 2**64.
MOST_RECORDS = 2**60
# With eight, orders of five or six records are plainly uneven; from twelve on none was found so.
_ROUNDS = 16
# Up to this many records an epoch's order is kept whole: half a megabyte, and a batch is a slice.
_LARGEST_TABLE = 1 << 16
_EPOCH_LABEL, _SPLIT_LABEL = b"trainyard order", b"trainyard split"
_KEY = struct.Struct(">15sQQQ")
# The multipliers of SplitMix64 by Steele, Lea and Flood.
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_FIRST_SHIFT, _SECOND_SHIFT, _HALF = np.uint64(30), np.uint64(27), np.uint64(32)


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a run over `records` records, of which `held_out` are never trained on.

    What is held out is chosen by the seed, like the order, and is the same in every epoch.
    """

    seed: int
    records: int
    held_out: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= LARGEST_SEED:
            raise ValueError(f"a seed is 0 to {LARGEST_SEED}, not {self.seed}")
        if not 1 <= self.records <= MOST_RECORDS:
            raise ValueError(f"an order is over 1 to {MOST_RECORDS} records, not {self.records}")
        if not 0 <= self.held_out < self.records:
            raise ValueError(
                f"holding out {self.held_out} of {self.records} records leaves none to train on"
            )

    @property
    def trained(self) -> int:
        """How many records an epoch has."""
        return self.records - self.held_out

    def epoch_of(self, step: int, batch: int) -> int:
        """The epoch that the first record of the step's batch is in."""
        return _position(step, batch) // self.trained

    def records_at(self, step: int, batch: int) -> Numbers:
        """The records of one step's global batch, in order."""
        return self._trained_at(_position(step, batch), batch)

    def records_between(self, start: int, stop: int, batch: int) -> Numbers:
        """The batches of steps [start, stop), one a row: much quicker than step by step."""
        first = _position(start, batch)
        if stop < start:
            raise ValueError(f"steps {start} to {stop} run backwards")
        return self._trained_at(first, (stop - start) * batch).reshape(stop - start, batch)

    def held_out_at(self, start: int, stop: int) -> Numbers:
        """Of the records held out, those at places [start, stop) of their own fixed order."""
        if not 0 <= start <= stop <= self.held_out:
            raise IndexError(f"places {start} to {stop} of {self.held_out} records held out")
        return self._split().at(np.arange(start, stop, dtype=np.uint64) + np.uint64(self.trained))

    def _trained_at(self, first: int, count: int) -> Numbers:
        chosen = np.empty(count, np.int64)
        done = 0
        while done < count:
            epoch, place = divmod(first + done, self.trained)
            size = min(count - done, self.trained - place)
            chosen[done : done + size] = self._epoch(epoch, place, place + size)
            done += size
        return chosen

    def _epoch(self, epoch: int, start: int, stop: int) -> Numbers:
        if self.records <= _LARGEST_TABLE:
            return _table(self, epoch)[start:stop]
        return self._shuffled(epoch, start, stop)

    def _shuffled(self, epoch: int, start: int, stop: int) -> Numbers:
        places = np.arange(start, stop, dtype=np.uint64)
        numbers = _permutation(_EPOCH_LABEL, self.seed, epoch, self.trained).at(places)
        return self._split().at(numbers.view(np.uint64)) if self.held_out else numbers

    def _split(self) -> "_Permutation":
        # INVARIANT: its first `trained` places are trained on and its others held out.
        return _permutation(_SPLIT_LABEL, self.seed, 0, self.records)


def share_of(batch: int, workers: int, slot: int) -> slice:
    """The part of each global batch that one slot takes; sizes differ by one at most.

    Slots take contiguous parts in their order, so the global batch is the same for any number.
    """
    if not 0 <= slot < workers <= batch:
        raise ValueError(f"slot {slot} of {workers} workers has no part of a batch of {batch}")
    small, larger = divmod(batch, workers)
    start = slot * small + min(slot, larger)
    return slice(start, start + small + (slot < larger))


@dataclass(frozen=True, slots=True)
class _Permutation:
    """A keyed permutation of the numbers below `size`."""

    size: int
    # Bounds of the two halves of a number. The first is even, for else no odd permutation comes.
    bounds: tuple[int, int]
    keys: tuple[np.uint64, ...]

    def at(self, places: _Words) -> Numbers:
        numbers = self._once(places)
        while (outside := np.flatnonzero(numbers >= np.uint64(self.size))).size:
            numbers[outside] = self._once(numbers[outside])
        return numbers.view(np.int64)

    def _once(self, numbers: _Words) -> _Words:
        a, b = np.uint64(self.bounds[0]), np.uint64(self.bounds[1])
        left, right = np.divmod(numbers, b)
        for number, key in enumerate(self.keys):
            if number % 2 == 0:
                left = _add(left, _mixed(right, key), a)
            else:
                right = _add(right, _mixed(left, key), b)
        return left * b + right


@lru_cache(maxsize=4)
def _table(order: Order, epoch: int) -> Numbers:
    return order._shuffled(epoch, 0, order.trained)


@lru_cache(maxsize=16)
def _permutation(label: bytes, seed: int, epoch: int, size: int) -> _Permutation:
    keys: list[int] = []
    for part in range(_ROUNDS * 8 // sha256().digest_size):
        keys += struct.unpack(">4Q", sha256(_KEY.pack(label, seed, epoch, part)).digest())
    a = isqrt(size - 1) + 1
    a += a % 2
    return _Permutation(size, (a, -(-size // a)), tuple(np.uint64(key) for key in keys))


def _mixed(numbers: _Words, key: np.uint64) -> _Words:
    """32 bits for each number, in the low half of a word. NumPy's arrays wrap at 64 bits."""
    mixed = (numbers ^ key) * _FIRST_FACTOR
    mixed ^= mixed >> _FIRST_SHIFT
    mixed *= _SECOND_FACTOR
    mixed ^= mixed >> _SECOND_SHIFT
    mixed *= _FIRST_FACTOR
    return mixed >> _HALF


def _add(half: _Words, mixed: _Words, bound: np.uint64) -> _Words:
    """`half` plus a number below `bound`, modulo it."""
    mixed *= bound
    mixed >>= _HALF
    mixed += half
    mixed -= (mixed >= bound) * bound
    return mixed


def _position(step: int, batch: int) -> int:
    if step < 0 or batch < 1:
        raise ValueError(f"step {step} with a batch of {batch} has no place in an order")
    return step * batch
