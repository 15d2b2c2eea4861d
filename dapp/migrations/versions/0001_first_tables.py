"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("address", sa.String(length=42), nullable=False),
        sa.Column("credit", sa.String(length=78), nullable=False),
        sa.Column("settled", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("audits_right", sa.Integer(), nullable=False),
        sa.Column("audits_wrong", sa.Integer(), nullable=False),
        sa.Column("earned", sa.String(length=78), nullable=False),
        sa.Column("lost", sa.String(length=78), nullable=False),
        sa.Column("slots_held", sa.Integer(), nullable=False),
        sa.Column("seats_held", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("address"),
    )
    op.create_index(op.f("ix_accounts_earned"), "accounts", ["earned"], unique=False)
    op.create_table(
        "blocks",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_table(
        "bound",
        sa.Column("chain_id", sa.BigInteger(), nullable=False),
        sa.Column("market", sa.String(length=42), nullable=False),
        sa.Column("start_block", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("chain_id"),
    )
    op.create_table(
        "drafts",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("address", sa.String(length=42), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_drafts_address"), "drafts", ["address"], unique=False)
    op.create_table(
        "events",
        sa.Column("block", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("block_hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("transaction", sa.LargeBinary(length=32), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=True),
        sa.Column("topics", sa.LargeBinary(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("block", "place"),
    )
    op.create_index("events_of_task", "events", ["task", "block", "place"], unique=False)
    op.create_table(
        "feeds",
        sa.Column("task", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("worker", sa.String(length=42), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("phase", sa.String(length=40), nullable=False),
        sa.Column("last_seen", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("steps", sa.BigInteger(), nullable=False),
        sa.Column("values", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("task", "worker"),
    )
    op.create_table(
        "lines",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.String(length=42), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("level", sa.String(length=8), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("lines_of_task", "lines", ["task", "id"], unique=False)
    op.create_table(
        "live",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("topics", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "manifests",
        sa.Column("digest", sa.String(length=66), nullable=False),
        sa.Column("document", sa.Text(), nullable=True),
        sa.Column("title", sa.String(length=200), nullable=True),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("tried_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_table(
        "nonces",
        sa.Column("nonce", sa.String(length=64), nullable=False),
        sa.Column("address", sa.String(length=42), nullable=False),
        sa.Column("issued_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("nonce"),
    )
    op.create_index(op.f("ix_nonces_expires_at"), "nonces", ["expires_at"], unique=False)
    op.create_table(
        "params",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "people",
        sa.Column("task", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("address", sa.String(length=42), nullable=False),
        sa.Column("roles", sa.String(length=60), nullable=False),
        sa.Column("put_in", sa.String(length=78), nullable=False),
        sa.Column("credited", sa.String(length=78), nullable=False),
        sa.Column("slashed", sa.String(length=78), nullable=False),
        sa.PrimaryKeyConstraint("task", "address"),
    )
    op.create_index("tasks_of_person", "people", ["address", "task"], unique=False)
    op.create_table(
        "points",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.String(length=42), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("values", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("points_of_task", "points", ["task", "id"], unique=False)
    op.create_table(
        "read_marks",
        sa.Column("address", sa.String(length=42), nullable=False),
        sa.Column("up_to", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("address"),
    )
    op.create_table(
        "sessions",
        sa.Column("token", sa.String(length=64), nullable=False),
        sa.Column("address", sa.String(length=42), nullable=False),
        sa.Column("csrf", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("token"),
    )
    op.create_index(op.f("ix_sessions_expires_at"), "sessions", ["expires_at"], unique=False)
    op.create_table(
        "tasks",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("requester", sa.String(length=42), nullable=False),
        sa.Column("state", sa.Integer(), nullable=False),
        sa.Column("failure", sa.Integer(), nullable=True),
        sa.Column("policy", sa.Integer(), nullable=False),
        sa.Column("env_class", sa.String(length=66), nullable=False),
        sa.Column("manifest", sa.String(length=66), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("slots_joined", sa.Integer(), nullable=False),
        sa.Column("reward", sa.String(length=78), nullable=False),
        sa.Column("stake", sa.String(length=78), nullable=False),
        sa.Column("escrow", sa.String(length=78), nullable=False),
        sa.Column("audits", sa.Integer(), nullable=False),
        sa.Column("segments", sa.BigInteger(), nullable=False),
        sa.Column("disputes", sa.Integer(), nullable=False),
        sa.Column("upheld", sa.Integer(), nullable=False),
        sa.Column("is_listed", sa.Boolean(), nullable=False),
        sa.Column("deadline", sa.BigInteger(), nullable=False),
        sa.Column("posted_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("paid", sa.String(length=78), nullable=False),
        sa.Column("refunded", sa.String(length=78), nullable=False),
        sa.Column("ledger", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_tasks_deadline"), "tasks", ["deadline"], unique=False)
    op.create_index(op.f("ix_tasks_env_class"), "tasks", ["env_class"], unique=False)
    op.create_index(op.f("ix_tasks_manifest"), "tasks", ["manifest"], unique=False)
    op.create_index(op.f("ix_tasks_requester"), "tasks", ["requester"], unique=False)
    op.create_index(op.f("ix_tasks_reward"), "tasks", ["reward"], unique=False)
    op.create_index(op.f("ix_tasks_state"), "tasks", ["state"], unique=False)
    op.create_index(op.f("ix_tasks_updated_at"), "tasks", ["updated_at"], unique=False)
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(length=43), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("client", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("uploaded", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_uploads_expires_at"), "uploads", ["expires_at"], unique=False)
    op.create_table(
        "workers",
        sa.Column("address", sa.String(length=42), nullable=False),
        sa.Column("env_class", sa.String(length=66), nullable=True),
        sa.Column("profile", sa.String(length=66), nullable=False),
        sa.Column("is_retired", sa.Boolean(), nullable=False),
        sa.Column("in_pool", sa.Boolean(), nullable=False),
        sa.Column("bond", sa.String(length=78), nullable=False),
        sa.Column("bond_locked", sa.String(length=78), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("unbonds_at", sa.BigInteger(), nullable=False),
        sa.Column("min_fee", sa.String(length=78), nullable=False),
        sa.Column("min_audit_for", sa.BigInteger(), nullable=False),
        sa.Column("min_answer_for", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("address"),
    )
    op.create_index(op.f("ix_workers_env_class"), "workers", ["env_class"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_workers_env_class"), table_name="workers")
    op.drop_table("workers")
    op.drop_index(op.f("ix_uploads_expires_at"), table_name="uploads")
    op.drop_table("uploads")
    op.drop_index(op.f("ix_tasks_updated_at"), table_name="tasks")
    op.drop_index(op.f("ix_tasks_state"), table_name="tasks")
    op.drop_index(op.f("ix_tasks_reward"), table_name="tasks")
    op.drop_index(op.f("ix_tasks_requester"), table_name="tasks")
    op.drop_index(op.f("ix_tasks_manifest"), table_name="tasks")
    op.drop_index(op.f("ix_tasks_env_class"), table_name="tasks")
    op.drop_index(op.f("ix_tasks_deadline"), table_name="tasks")
    op.drop_table("tasks")
    op.drop_index(op.f("ix_sessions_expires_at"), table_name="sessions")
    op.drop_table("sessions")
    op.drop_table("read_marks")
    op.drop_index("points_of_task", table_name="points")
    op.drop_table("points")
    op.drop_index("tasks_of_person", table_name="people")
    op.drop_table("people")
    op.drop_table("params")
    op.drop_index(op.f("ix_nonces_expires_at"), table_name="nonces")
    op.drop_table("nonces")
    op.drop_table("manifests")
    op.drop_table("live")
    op.drop_index("lines_of_task", table_name="lines")
    op.drop_table("lines")
    op.drop_table("feeds")
    op.drop_index("events_of_task", table_name="events")
    op.drop_table("events")
    op.drop_index(op.f("ix_drafts_address"), table_name="drafts")
    op.drop_table("drafts")
    op.drop_table("bound")
    op.drop_table("blocks")
    op.drop_index(op.f("ix_accounts_earned"), table_name="accounts")
    op.drop_table("accounts")
