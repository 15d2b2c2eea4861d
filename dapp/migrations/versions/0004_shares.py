"""Who had something stored, so that nobody takes all the room."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "stored", sa.Column("client", sa.String(length=64), nullable=False, server_default="")
    )
    op.create_index(op.f("ix_stored_client"), "stored", ["client"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_stored_client"), table_name="stored")
    op.drop_column("stored", "client")
