"""How far the agent is with a task, as the files in the task's folder tell.

Whoever does a piece of work writes one file when it is done, whole or not at all. So a killed agent
finds what it had, and deleting a folder only means to do the work again.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from trainyard.engine.journal import write_whole
from trainyard.protocol.commitments import Claim
from trainyard.protocol.trace import Trace

FETCHED, REFUSED, CARD, CLAIM = "fetched.json", "refused.json", "card.json", "claim.json"
TRACE, SERVED, LIVE, ANSWERS, FAILED = "trace.json", "served.json", "live.json", "answers", "failed"
# What we found wrong in what was computed together, or before a run's end; and that we looked.
WRONG, LOOKED = "wrong.json", "looked.json"
RUN, DATA, EVIDENCE, JOBS, PEER = "run", "data", "evidence", "jobs", "peer"
MANIFEST = "manifest.json"
# After a failure the same work is tried again later, and later still; but windows are not long.
_HOUR_S = 3600
_FIRST_WAIT_S, _LONGEST_WAIT_S, _MOST_DOUBLINGS = 2.0, 60.0, 10


@dataclass(frozen=True, slots=True)
class Fetched:
    """What is known of a task once its manifest is here."""

    mode: str
    workers: int
    segments: int
    hours: float
    memory_bytes: int
    disk_bytes: int
    # Of the whole task here, as estimated; zero where nothing is known of this machine.
    energy_j: float = 0.0
    # Whether the data is here too: before that, what it takes is what the manifest says.
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What a seat found: a state's hash, or scores; or that nothing was served."""

    value: bytes
    scores: tuple[int, ...] = ()
    reason: str = ""
    # What was asked, as `asked` says it.
    about: str = ""
    # Whether the segment changes nothing, as after the end of a run.
    is_idle: bool = False


@dataclass(frozen=True, slots=True)
class Wrong:
    """A segment that comes out differently here, time and again, with the trace that it is of."""

    segment: int
    trace: Trace


@dataclass(frozen=True, slots=True)
class Failure:
    """A piece of work that failed, how often in a row, and when it may be tried again."""

    reason: str
    count: int
    again_at: float
    # How often in a row it said that it can never be done, without getting any further between.
    permanent: int = 0
    # How far it was when it last said so.
    states: int = 0

    def is_due(self, clock: float) -> bool:
        """Whether it may be tried again; a clock that was put back makes nobody wait for hours."""
        return clock >= self.again_at or clock < self.again_at - _LONGEST_WAIT_S


@dataclass(frozen=True, slots=True)
class Progress:
    fetched: Fetched | None = None
    # Why the task can never be done here.
    refused: str | None = None
    card: bytes | None = None
    claim: Claim | None = None
    trace: Trace | None = None
    wrong: Wrong | None = None
    # Whether was looked behind a segment that changes nothing.
    has_looked: bool = False
    served: frozenset[int] = frozenset()
    is_open: bool = False
    # By panel and seat.
    answers: dict[tuple[int, int, int], Answer] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    # Slots from which nothing was heard, and for how many seconds.
    silent: dict[int, float] = field(default_factory=dict)
    # How long training still takes, by what it took so far; None before it has begun.
    left_s: float | None = None
    # How long one segment takes, by those that were finished; None before the first one is.
    segment_s: float | None = None

    @property
    def is_fetched(self) -> bool:
        """Whether all is here that training needs."""
        return self.fetched is not None and self.fetched.is_whole


NONE = Progress()


class Shelf:
    """The folder of one task."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, *names: str) -> Path:
        return self.folder.joinpath(*names)

    def write(self, document: Any, *names: str) -> None:
        path = self.path(*names)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(document).encode())

    def read(self, *names: str) -> Any:
        """A document, or None; one that cannot be read is as good as none."""
        try:
            return json.loads(self.path(*names).read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None

    def note(self, work: str, reason: str, *, is_permanent: bool = False) -> None:
        """How work ended: well, without a reason."""
        if reason:
            self.note_failure(work, reason, is_permanent=is_permanent)
        else:
            self.note_success(work)

    def note_failure(self, work: str, reason: str, *, is_permanent: bool = False) -> None:
        before = self.read(FAILED, f"{work}.json") or {"count": 0}
        count = before["count"] + 1
        wait_s = min(_FIRST_WAIT_S * 2 ** min(count - 1, _MOST_DOUBLINGS), _LONGEST_WAIT_S)
        permanent, states = before.get("permanent", 0), before.get("states", 0)
        if is_permanent:
            reached = (self.read(LIVE) or {}).get("states", 0)
            permanent = 1 if reached > states else permanent + 1
            states = max(states, reached)
        note = {
            "reason": reason,
            "count": count,
            "again_at": time.time() + wait_s,
            "permanent": permanent,
            "states": states,
        }
        self.write(note, FAILED, f"{work}.json")

    def note_success(self, work: str) -> None:
        self.path(FAILED, f"{work}.json").unlink(missing_ok=True)

    def progress(self) -> Progress:
        if not self.folder.is_dir():
            return NONE
        fetched, refused = self.read(FETCHED), self.read(REFUSED)
        card, claim, trace = self.read(CARD), self.read(CLAIM), self.read(TRACE)
        served, live = self.read(SERVED) or {}, self.read(LIVE) or {}
        return Progress(
            fetched=None if fetched is None else Fetched(**fetched),
            refused=None if refused is None else refused["reason"],
            card=None if card is None else bytes.fromhex(card["digest"]),
            claim=None
            if claim is None
            else Claim.of(bytes.fromhex(claim["result"]), bytes.fromhex(claim["root"])),
            trace=None if trace is None else _trace(trace["states"]),
            wrong=self._wrong(),
            has_looked=self.path(LOOKED).exists(),
            served=frozenset(served.get("segments", ())),
            is_open=bool(served.get("is_open", False)),
            answers=dict(self._answers()),
            failures={
                path.stem: Failure(**found)
                for path in self._documents(FAILED)
                if (found := self.read(FAILED, path.name)) is not None
            },
            silent={int(slot): silent_s for slot, silent_s in live.get("silent", {}).items()},
            left_s=_left_s(live, None if fetched is None else fetched["hours"]),
            segment_s=_segment_s(live),
        )

    def _wrong(self) -> Wrong | None:
        found = self.read(WRONG)
        if found is None or found["segment"] is None:
            return None
        return Wrong(found["segment"], _trace(found["states"]))

    def _answers(self) -> list[tuple[tuple[int, int, int], Answer]]:
        found = []
        for path in self._documents(ANSWERS):
            segment, round_, seat = map(int, path.stem.split("-"))
            answer = self.read(ANSWERS, path.name)
            if answer is not None:
                value = Answer(
                    bytes.fromhex(answer["value"]),
                    tuple(answer["scores"]),
                    answer["reason"],
                    answer.get("about", ""),
                    answer.get("is_idle", False),
                )
                found.append(((segment, round_, seat), value))
        return found

    def _documents(self, folder: str) -> list[Path]:
        path = self.path(folder)
        return sorted(path.glob("[!.]*.json")) if path.is_dir() else []


def _trace(states: Sequence[str]) -> Trace:
    return Trace([bytes.fromhex(one) for one in states])


def asked(claims: Sequence[Claim | None], segment: int) -> str:
    """What a seat was asked. A reorg may give the same seat another segment, or other claims."""
    named = [b"" if one is None else one.result + one.root for one in claims]
    return f"{sha256(b','.join(named)).hexdigest()}/{segment}"


def _left_s(live: dict[str, Any], hours: float | None) -> float | None:
    done, segments, segment_s = live.get("states", 0) - 1, live.get("segments", 0), _segment_s(live)
    if segment_s is not None:
        return float(segment_s * (segments - done))
    has_begun = str(live.get("phase", "")).startswith("training")
    return hours * _HOUR_S if has_begun and hours is not None else None


def _segment_s(live: dict[str, Any]) -> float | None:
    timed = live.get("timed", 0)
    return float(live["train_s"] / timed) if timed else None


def answer_work(panel: tuple[int, int], seat: int) -> str:
    """How the work of finding a seat's answer is called."""
    return f"answer-{panel[0]}-{panel[1]}-{seat}"


def answer_name(panel: tuple[int, int], seat: int) -> str:
    return f"{panel[0]}-{panel[1]}-{seat}.json"
