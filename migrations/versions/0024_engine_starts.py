"""Starts of engines, of which an engine itself knows the latest only"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

KNOWN = """
INSERT INTO engine_starts (engine_id, started_at)
SELECT id, started_at FROM engines WHERE started_at IS NOT NULL
"""


def upgrade() -> None:
    op.create_table(
        "engine_starts",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("engine_id", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["engine_id"], ["engines.id"], name=op.f("fk_engine_starts_engine_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_engine_starts")),
        sa.UniqueConstraint("engine_id", "started_at", name=op.f("uq_engine_starts_engine_id_started_at")),
    )
    op.execute(KNOWN)


def downgrade() -> None:
    op.drop_table("engine_starts")
