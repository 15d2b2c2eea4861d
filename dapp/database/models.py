"""The tables. Those above the line are a function of the chain, and can be dropped at any time."""

from sqlalchemy import BigInteger, Index, Integer, LargeBinary, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from dapp.database.types import WeiText

# SQLite counts up by itself only in columns of its own integers.
_SERIAL = BigInteger().with_variant(Integer, "sqlite")
_ADDRESS = String(42)


class Base(DeclarativeBase):
    pass


class Bound(Base):
    """Which market on which chain the rows are of."""

    __tablename__ = "bound"

    chain_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    market: Mapped[str] = mapped_column(_ADDRESS)
    start_block: Mapped[int] = mapped_column(BigInteger)


class Block(Base):
    """The last blocks that the index has seen, as many as a reorg may undo."""

    __tablename__ = "blocks"

    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    hash: Mapped[bytes] = mapped_column(LargeBinary(32))
    time: Mapped[int] = mapped_column(BigInteger)


class EventRow(Base):
    """Every event of the market, as the chain has it."""

    __tablename__ = "events"

    block: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    place: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    block_hash: Mapped[bytes] = mapped_column(LargeBinary(32))
    transaction: Mapped[bytes] = mapped_column(LargeBinary(32))
    time: Mapped[int] = mapped_column(BigInteger)
    name: Mapped[str] = mapped_column(String(40))
    task: Mapped[int | None] = mapped_column(BigInteger)
    topics: Mapped[bytes] = mapped_column(LargeBinary)
    data: Mapped[bytes] = mapped_column(LargeBinary)

    __table_args__ = (Index("events_of_task", "task", "block", "place"),)


class TaskRow(Base):
    __tablename__ = "tasks"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    requester: Mapped[str] = mapped_column(_ADDRESS, index=True)
    state: Mapped[int] = mapped_column(Integer, index=True)
    failure: Mapped[int | None] = mapped_column(Integer)
    policy: Mapped[int] = mapped_column(Integer)
    env_class: Mapped[str] = mapped_column(String(66), index=True)
    manifest: Mapped[str] = mapped_column(String(66), index=True)
    slots: Mapped[int] = mapped_column(Integer)
    slots_joined: Mapped[int] = mapped_column(Integer)
    reward: Mapped[int] = mapped_column(WeiText, index=True)
    stake: Mapped[int] = mapped_column(WeiText)
    escrow: Mapped[int] = mapped_column(WeiText)
    audits: Mapped[int] = mapped_column(Integer)
    segments: Mapped[int] = mapped_column(BigInteger)
    disputes: Mapped[int] = mapped_column(Integer, index=True)
    upheld: Mapped[int] = mapped_column(Integer)
    is_listed: Mapped[bool] = mapped_column()
    deadline: Mapped[int] = mapped_column(BigInteger, index=True)
    posted_at: Mapped[int] = mapped_column(BigInteger)
    updated_at: Mapped[int] = mapped_column(BigInteger, index=True)
    ended_at: Mapped[int | None] = mapped_column(BigInteger)
    # Of the escrow: to workers and auditors, and back to the requester.
    paid: Mapped[int] = mapped_column(WeiText)
    refunded: Mapped[int] = mapped_column(WeiText)
    # The whole task as the ledger has it.
    ledger: Mapped[str] = mapped_column(Text)

    # Rows are long: what lists and sums need of thousands of them is read from these alone.
    __table_args__ = (
        Index("rewards_by_state", "state", "reward"),
        Index("pay_by_state", "state", "paid"),
    )


class PersonRow(Base):
    """Who has to do with a task, and what it put into it and got out."""

    __tablename__ = "people"

    task: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    address: Mapped[str] = mapped_column(_ADDRESS, primary_key=True)
    # Some of "requester", "worker", "auditor", "referee", "accuser", with a space between.
    roles: Mapped[str] = mapped_column(String(60))
    put_in: Mapped[int] = mapped_column(WeiText)
    credited: Mapped[int] = mapped_column(WeiText)
    slashed: Mapped[int] = mapped_column(WeiText)

    __table_args__ = (Index("tasks_of_person", "address", "task"),)


class WorkerRow(Base):
    __tablename__ = "workers"

    address: Mapped[str] = mapped_column(_ADDRESS, primary_key=True)
    env_class: Mapped[str | None] = mapped_column(String(66), index=True)
    profile: Mapped[str] = mapped_column(String(66))
    is_retired: Mapped[bool] = mapped_column()
    in_pool: Mapped[bool] = mapped_column()
    bond: Mapped[int] = mapped_column(WeiText)
    bond_locked: Mapped[int] = mapped_column(WeiText)
    since: Mapped[int] = mapped_column(BigInteger)
    unbonds_at: Mapped[int] = mapped_column(BigInteger)
    min_fee: Mapped[int] = mapped_column(WeiText)
    min_audit_for: Mapped[int] = mapped_column(BigInteger)
    min_answer_for: Mapped[int] = mapped_column(BigInteger)


class AccountRow(Base):
    __tablename__ = "accounts"

    address: Mapped[str] = mapped_column(_ADDRESS, primary_key=True)
    credit: Mapped[int] = mapped_column(WeiText)
    settled: Mapped[int] = mapped_column(Integer)
    failed: Mapped[int] = mapped_column(Integer)
    audits_right: Mapped[int] = mapped_column(Integer)
    audits_wrong: Mapped[int] = mapped_column(Integer)
    # Of tasks that ended, as whoever works: beyond what it put in, and short of it.
    earned: Mapped[int] = mapped_column(WeiText, index=True)
    lost: Mapped[int] = mapped_column(WeiText)
    slots_held: Mapped[int] = mapped_column(Integer)
    seats_held: Mapped[int] = mapped_column(Integer)


class ParamsRow(Base):
    __tablename__ = "params"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    document: Mapped[str] = mapped_column(Text)


# INVARIANT: these tables hold nothing that the chain does not say.
DERIVED: tuple[type[Base], ...] = (
    Block,
    EventRow,
    TaskRow,
    PersonRow,
    WorkerRow,
    AccountRow,
    ParamsRow,
)

# -- What workers and requesters gave, and what is passed on -----------------------------------


class ManifestRow(Base):
    """A manifest by its digest, or why it could not be read the last time."""

    __tablename__ = "manifests"

    digest: Mapped[str] = mapped_column(String(66), primary_key=True)
    document: Mapped[str | None] = mapped_column(Text)
    title: Mapped[str | None] = mapped_column(String(200))
    summary: Mapped[str] = mapped_column(Text)
    tried_at: Mapped[int] = mapped_column(BigInteger)


class LiveRow(Base):
    """What was told to whoever listens, so that who was away can go on."""

    __tablename__ = "live"

    id: Mapped[int] = mapped_column(_SERIAL, primary_key=True, autoincrement=True)
    topics: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(String(20))
    data: Mapped[str] = mapped_column(Text)
    # Of `data`, so that they are summed up without reading it.
    bytes: Mapped[int] = mapped_column(Integer, server_default="0")

    __table_args__ = (Index("live_sizes", "id", "bytes"), {"sqlite_autoincrement": True})


class FeedRow(Base):
    """A worker's feed of one task: how far it came."""

    __tablename__ = "feeds"

    task: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    worker: Mapped[str] = mapped_column(_ADDRESS, primary_key=True)
    slot: Mapped[int] = mapped_column(Integer)
    sequence: Mapped[int] = mapped_column(BigInteger)
    phase: Mapped[str] = mapped_column(String(40))
    last_seen: Mapped[int] = mapped_column(BigInteger)
    # Who takes over from another does not begin at the first step.
    first_step: Mapped[int | None] = mapped_column(BigInteger)
    step: Mapped[int] = mapped_column(BigInteger)
    steps: Mapped[int] = mapped_column(BigInteger)
    values: Mapped[str] = mapped_column(Text)


class PointRow(Base):
    __tablename__ = "points"

    id: Mapped[int] = mapped_column(_SERIAL, primary_key=True, autoincrement=True)
    task: Mapped[int] = mapped_column(BigInteger)
    worker: Mapped[str] = mapped_column(_ADDRESS)
    slot: Mapped[int] = mapped_column(Integer)
    step: Mapped[int] = mapped_column(BigInteger)
    time: Mapped[float] = mapped_column()
    values: Mapped[str] = mapped_column(Text)

    __table_args__ = (
        Index("points_of_task", "task", "id"),
        {"sqlite_autoincrement": True},
    )


class LineRow(Base):
    __tablename__ = "lines"

    id: Mapped[int] = mapped_column(_SERIAL, primary_key=True, autoincrement=True)
    task: Mapped[int] = mapped_column(BigInteger)
    worker: Mapped[str] = mapped_column(_ADDRESS)
    slot: Mapped[int] = mapped_column(Integer)
    time: Mapped[float] = mapped_column()
    level: Mapped[str] = mapped_column(String(8))
    text: Mapped[str] = mapped_column(Text)

    __table_args__ = (
        Index("lines_of_task", "task", "id"),
        {"sqlite_autoincrement": True},
    )


# What workers told of a task, by its number alone: it goes with the task.
TOLD: tuple[type[FeedRow | PointRow | LineRow], ...] = (FeedRow, PointRow, LineRow)


class UploadRow(Base):
    __tablename__ = "uploads"

    id: Mapped[str] = mapped_column(String(43), primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    size: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str | None] = mapped_column(String(64))
    client: Mapped[str] = mapped_column(String(64))
    expires_at: Mapped[int] = mapped_column(BigInteger, index=True)
    # Set when it was stored: `Uploaded` as JSON.
    uploaded: Mapped[str | None] = mapped_column(Text)


class StoredRow(Base):
    """What a stranger had this server put into its store and pin."""

    __tablename__ = "stored"

    cid: Mapped[str] = mapped_column(String(128), primary_key=True)
    bytes: Mapped[int] = mapped_column(BigInteger)
    stored_at: Mapped[int] = mapped_column(BigInteger, index=True)
    # Whose share it is taken from: the last one's who had it stored.
    client: Mapped[str] = mapped_column(String(64), server_default="", index=True)


class NonceRow(Base):
    __tablename__ = "nonces"

    nonce: Mapped[str] = mapped_column(String(64), primary_key=True)
    address: Mapped[str] = mapped_column(_ADDRESS)
    issued_at: Mapped[int] = mapped_column(BigInteger)
    expires_at: Mapped[int] = mapped_column(BigInteger, index=True)
    # Who asked for it.
    client: Mapped[str] = mapped_column(String(64), server_default="")


class SessionRow(Base):
    """A session by the hash of its token: who reads the database cannot be anybody."""

    __tablename__ = "sessions"

    token: Mapped[str] = mapped_column(String(64), primary_key=True)
    address: Mapped[str] = mapped_column(_ADDRESS)
    csrf: Mapped[str] = mapped_column(String(64))
    expires_at: Mapped[int] = mapped_column(BigInteger, index=True)


class DraftRow(Base):
    __tablename__ = "drafts"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    address: Mapped[str] = mapped_column(_ADDRESS, index=True)
    title: Mapped[str] = mapped_column(String(200))
    document: Mapped[str] = mapped_column(Text)
    created_at: Mapped[int] = mapped_column(BigInteger)
    updated_at: Mapped[int] = mapped_column(BigInteger)


class ReadMark(Base):
    """Up to which notification somebody has read."""

    __tablename__ = "read_marks"

    address: Mapped[str] = mapped_column(_ADDRESS, primary_key=True)
    up_to: Mapped[int] = mapped_column(BigInteger)
