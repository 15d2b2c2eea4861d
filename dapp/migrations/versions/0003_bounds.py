"""What strangers put into the store, and sizes by which it and the sequence are bounded."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "stored",
        sa.Column("cid", sa.String(length=128), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("stored_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("cid"),
    )
    op.create_index(op.f("ix_stored_stored_at"), "stored", ["stored_at"], unique=False)
    op.add_column(
        "nonces", sa.Column("client", sa.String(length=64), nullable=False, server_default="")
    )
    op.add_column("live", sa.Column("bytes", sa.Integer(), nullable=False, server_default="0"))
    op.create_index("live_sizes", "live", ["id", "bytes"], unique=False)


def downgrade() -> None:
    op.drop_index("live_sizes", table_name="live")
    op.drop_column("live", "bytes")
    op.drop_column("nonces", "client")
    op.drop_index(op.f("ix_stored_stored_at"), table_name="stored")
    op.drop_table("stored")
