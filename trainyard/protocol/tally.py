"""Who agreed with whom: the market's decisions as pure functions of what was answered.

Written from the rules of `docs/protocol.md` and not from the contract, so that each can be held
against the other.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence


def lead_of(claims: Sequence[bytes | None]) -> tuple[int, int]:
    """The lowest slot of the largest group of equal claims, and how many they are.

    A slot that gave no answer in time has None; without any answer the lead means nothing.
    """
    votes = Counter(claim for claim in claims if claim is not None)
    if not votes:
        return 0, 0
    most = max(votes.values())
    lead = next(slot for slot, claim in enumerate(claims) if claim and votes[claim] == most)
    return lead, most


def median(scores: Collection[int]) -> int:
    """The middle score; of an even number, the lower of the two."""
    return sorted(scores)[(len(scores) - 1) // 2]


def best_entry(rows: Collection[Sequence[int]], entries: Sequence[int]) -> tuple[int, int]:
    """The entry with the highest median, of equals the first, and its score.

    Each row has what one evaluator gave to every slot; only `entries` were revealed.
    """
    scores = {entry: median([row[entry] for row in rows]) for entry in entries}
    best = max(scores, key=lambda entry: (scores[entry], -entry))
    return best, scores[best]


def outliers(
    rows: Mapping[int, Sequence[int]], entries: Sequence[int], *, tolerance: int, seats: int
) -> set[int]:
    """Evaluators that are off the median of an entry while more than half of the panel is on it."""
    wrong: set[int] = set()
    for entry in entries:
        middle = median([row[entry] for row in rows.values()])
        off = {seat for seat, row in rows.items() if abs(row[entry] - middle) > tolerance}
        if 2 * (len(rows) - len(off)) > seats:
            wrong |= off
    return wrong


def majority(answers: Sequence[bytes], committee: int) -> bytes | None:
    """The answer of more than half of the committee's full size, if there is one."""
    for answer, votes in Counter(answers).most_common(1):
        if 2 * votes > committee:
            return answer
    return None
