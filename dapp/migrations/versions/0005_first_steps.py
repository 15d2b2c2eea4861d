"""Where a worker's feed of a task began, which is not always at the first step."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("feeds", sa.Column("first_step", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("feeds", "first_step")
