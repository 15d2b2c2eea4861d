"""The outbox's journal: what is to be done, and every transaction that was ever signed for it."""

from dataclasses import dataclass
from enum import StrEnum

from trainyard.chain.blocks import BlockRef
from trainyard.chain.calls import Call
from trainyard.chain.errors import IntentConflictError
from trainyard.chain.fees import Fees
from trainyard.chain.store import Store


class State(StrEnum):
    # Signed, and perhaps sent: after a crash nobody knows.
    PENDING = "pending"
    # In a block that may still fall out of the chain.
    MINED = "mined"
    # As deep as was asked for.
    DONE = "done"
    REVERTED = "reverted"
    # Somebody else used the nonce with the same key. It can never be mined.
    DISPLACED = "displaced"

    @property
    def is_final(self) -> bool:
        return self in (State.DONE, State.REVERTED, State.DISPLACED)


@dataclass(frozen=True, slots=True)
class Version:
    """One signed transaction; all versions of an intent have its nonce."""

    hash: bytes
    raw: bytes
    fees: Fees
    # The head when it was signed.
    since_block: int


@dataclass(frozen=True, slots=True)
class Entry:
    """An intent, and what became of it."""

    key: str
    nonce: int
    call: Call
    gas: int
    state: State
    # Why it reverted, or why it could not be sent the last time.
    why: str
    mined: bytes | None
    mined_in: BlockRef | None
    versions: tuple[Version, ...]

    @property
    def newest(self) -> Version:
        return self.versions[-1]


class Journal:
    def __init__(self, store: Store, sender: str) -> None:
        self._store, self._sender = store, sender

    def find(self, key: str, call: Call | None = None) -> Entry | None:
        """The intent of this key, which must be about this call."""
        rows = self._store.rows(f"{_SELECT} WHERE key = ? AND sender = ?", key, self._sender)
        if not rows:
            return None
        entry = self._entry(rows[0])
        if call is not None and call != entry.call:
            raise IntentConflictError(
                f"{key!r} is the key of another transaction, number {entry.nonce} of {self._sender}"
            )
        return entry

    def unfinished(self) -> list[Entry]:
        final = [state.value for state in State if state.is_final]
        marks = ",".join("?" * len(final))
        rows = self._store.rows(
            f"{_SELECT} WHERE sender = ? AND state NOT IN ({marks}) ORDER BY nonce",
            self._sender,
            *final,
        )
        return [self._entry(row) for row in rows]

    def finished(self, nonce: int) -> list[Entry]:
        """Those from `nonce` on for which there is nothing more to do."""
        final = [state.value for state in State if state.is_final]
        marks = ",".join("?" * len(final))
        rows = self._store.rows(
            f"{_SELECT} WHERE sender = ? AND nonce >= ? AND state IN ({marks}) ORDER BY nonce",
            self._sender,
            nonce,
            *final,
        )
        return [self._entry(row) for row in rows]

    def unseen(self, block: int) -> list[Entry]:
        """Those that wait for a block, or are in one after `block`, final or not."""
        rows = self._store.rows(
            f"{_SELECT} WHERE sender = ? AND (state = ? OR mined_block > ?) ORDER BY nonce",
            *(self._sender, State.PENDING, block),
        )
        return [self._entry(row) for row in rows]

    def counts(self) -> dict[str, int]:
        rows = self._store.rows(
            "SELECT state, count(*) FROM intents WHERE sender = ? GROUP BY state", self._sender
        )
        return {state.value: 0 for state in State} | dict(rows)

    def succeeded(self, prefix: str) -> int:
        """How many there were whose keys begin so, and that are in the chain."""
        row = self._store.row(
            "SELECT count(*) FROM intents WHERE sender = ? AND key >= ? AND key < ?"
            " AND (state = ? OR (state = ? AND why = ''))",
            *(self._sender, prefix, f"{prefix}\U0010ffff", State.DONE, State.MINED),
        )
        return 0 if row is None else int(row[0])

    def entries(self) -> list[Entry]:
        """All of them, in the order of their nonces."""
        rows = self._store.rows(f"{_SELECT} WHERE sender = ? ORDER BY nonce", self._sender)
        return [self._entry(row) for row in rows]

    def next_nonce(self, on_chain: int) -> int:
        row = self._store.row("SELECT max(nonce) FROM intents WHERE sender = ?", self._sender)
        return on_chain if row is None or row[0] is None else max(on_chain, int(row[0]) + 1)

    def add(self, key: str, nonce: int, call: Call, gas: int, version: Version) -> None:
        """To be called while writing, together with `next_nonce`."""
        self._store.write(
            "INSERT INTO intents (key, sender, nonce, target, data, value, gas, state)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *(key, self._sender, nonce, call.to, call.data, str(call.value), gas, State.PENDING),
        )
        self.add_version(key, version)

    def add_version(self, key: str, version: Version) -> None:
        self._store.write(
            "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?)",
            *(version.hash, key, version.raw, version.fees.max_fee, version.fees.tip),
            version.since_block,
        )

    def note(self, key: str, why: str) -> None:
        with self._store.writing():
            self._store.write("UPDATE intents SET why = ? WHERE key = ?", why, key)

    def move(
        self,
        key: str,
        state: State,
        *,
        why: str = "",
        mined: bytes | None = None,
        mined_in: BlockRef | None = None,
    ) -> None:
        with self._store.writing():
            self._set_state(key, state, why, mined, mined_in)

    def start_over(self, entry: Entry, head: int) -> None:
        """Wait again for an intent that was mined and is not any more."""
        with self._store.writing():
            self._set_state(entry.key, State.PENDING, "", None, None)
            self._store.write(
                "UPDATE versions SET since_block = ? WHERE hash = ?", head, entry.newest.hash
            )

    def _set_state(
        self, key: str, state: State, why: str, mined: bytes | None, mined_in: BlockRef | None
    ) -> None:
        number, hash_ = (mined_in.number, mined_in.hash) if mined_in else (None, None)
        self._store.write(
            "UPDATE intents SET state = ?, why = ?, mined = ?, mined_block = ?, mined_hash = ?"
            " WHERE key = ?",
            *(state, why, mined, number, hash_, key),
        )

    def _entry(self, row: tuple[object, ...]) -> Entry:
        key, nonce, target, data, value, gas, state, why, mined, number, hash_ = row
        assert isinstance(key, str)
        versions = self._store.rows(
            "SELECT hash, raw, max_fee, tip, since_block FROM versions WHERE intent = ?"
            " ORDER BY rowid",
            key,
        )
        return Entry(
            key,
            int(str(nonce)),
            Call(str(target), _bytes(data), int(str(value))),
            int(str(gas)),
            State(str(state)),
            str(why),
            None if mined is None else _bytes(mined),
            None if number is None else BlockRef(int(str(number)), _bytes(hash_)),
            tuple(
                Version(version, raw, Fees(max_fee, tip), since)
                for version, raw, max_fee, tip, since in versions
            ),
        )


_SELECT = (
    "SELECT key, nonce, target, data, value, gas, state, why, mined, mined_block, mined_hash"
    " FROM intents"
)


def _bytes(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value
