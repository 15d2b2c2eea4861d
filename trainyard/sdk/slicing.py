"""How a prediction is cut: slices for workers, and segments of each slice. No I/O."""

from dataclasses import dataclass

# So that two audits recompute a twenty-fifth of the work.
_SEGMENTS = 50
# Of the predictions of a segment: it is held in memory, and fetched as one file.
_SEGMENT_BYTES = 32 << 20
# Of one value, at most.
_VALUE_BYTES = 8
_LONGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Slice:
    """Records of one worker: `count` of them from `first` on."""

    first: int
    count: int

    @property
    def title(self) -> str:
        return f"records {self.first} to {self.first + self.count - 1}"


def slices_of(records: int, batch: int, workers: int) -> list[Slice]:
    """Slices in the order of the records, whose sizes differ by one batch at most.

    INVARIANT: each begins where a batch begins, so the batches, and with them the bits of the
    predictions, are the same for any number of workers.
    """
    if min(records, batch, workers) < 1:
        raise ValueError(f"{records} records cannot be cut for {workers} in batches of {batch}")
    batches = -(-records // batch)
    small, larger = divmod(batches, min(workers, batches))
    found: list[Slice] = []
    first = 0
    for worker in range(min(workers, batches)):
        count = min((small + (worker < larger)) * batch, records - first)
        found.append(Slice(first, count))
        first += count
    return found


def segment_length(records: int, batch: int, row: int) -> int:
    """Steps of a segment, for rows of so many values: as many as make the usual number of segments,
    and fewer where their predictions would be too large to be handled at once."""
    steps = -(-records // batch)
    fitting = _SEGMENT_BYTES // (batch * row * _VALUE_BYTES)
    return max(1, min(-(-steps // _SEGMENTS), fitting, _LONGEST))
