"""Outages of streams, destinations and engines; operations on one table"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("operations", sa.Column("of_table", postgresql.JSONB(astext_type=sa.Text()), nullable=True))
    op.create_table(
        "outages",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("stream_id", sa.Text(), nullable=True),
        sa.Column("destination_id", sa.Text(), nullable=True),
        sa.Column("engine_id", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_outages_stream_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["engine_id"], ["engines.id"], name=op.f("fk_outages_engine_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outages")),
    )
    op.create_index("ix_outages_stream_id", "outages", ["stream_id", "began_at"])
    op.create_index("ix_outages_engine_id", "outages", ["engine_id", "began_at"])


def downgrade() -> None:
    op.drop_table("outages")
    op.drop_column("operations", "of_table")
