"""Indexes for what is summed and sorted over all tasks."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(op.f("ix_tasks_disputes"), "tasks", ["disputes"], unique=False)
    op.create_index("rewards_by_state", "tasks", ["state", "reward"], unique=False)
    op.create_index("pay_by_state", "tasks", ["state", "paid"], unique=False)


def downgrade() -> None:
    op.drop_index("pay_by_state", table_name="tasks")
    op.drop_index("rewards_by_state", table_name="tasks")
    op.drop_index(op.f("ix_tasks_disputes"), table_name="tasks")
