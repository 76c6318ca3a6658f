"""The least window of a link, below which its sender never started"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("streams", "destinations"):
        op.execute(
            sa.text(
                f"UPDATE {table} SET parameters = jsonb_set(parameters, '{{propagation_window_mb}}', '4') "  # noqa: S608
                "WHERE (parameters ->> 'propagation_window_mb')::bigint < 4"
            )
        )


def downgrade() -> None:
    """Windows that were too small stay at the least one."""
