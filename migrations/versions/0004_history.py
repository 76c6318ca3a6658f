"""History: samples of every second, of minutes and of hours"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLES = ("history_seconds", "history_minutes", "history_hours")


def upgrade() -> None:
    for name in TABLES:
        op.create_table(
            name,
            sa.Column("stream_id", sa.Text(), nullable=False),
            sa.Column("at", sa.DateTime(timezone=True), nullable=False),
            sa.Column("engine_id", sa.Text(), nullable=False),
            sa.Column("samples", sa.Integer(), nullable=False),
            sa.Column("document", sa.LargeBinary(), nullable=False),
            sa.PrimaryKeyConstraint("stream_id", "at", "engine_id", name=op.f(f"pk_{name}")),
            postgresql_partition_by="RANGE (at)",
        )
        # The documents are compressed already, and small: in the row they need no second look-up.
        op.execute(f"ALTER TABLE {name} ALTER COLUMN document SET STORAGE EXTERNAL")


def downgrade() -> None:
    for name in TABLES:
        op.drop_table(name)
