"""Streams that were deleted without their engine"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "abandoned_streams",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("engine_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("definition_sealed", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("abandoned_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["engine_id"], ["engines.id"], name=op.f("fk_abandoned_streams_engine_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_abandoned_streams")),
    )
    op.create_index(op.f("ix_abandoned_streams_engine_id"), "abandoned_streams", ["engine_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_abandoned_streams_engine_id"), table_name="abandoned_streams")
    op.drop_table("abandoned_streams")
