"""What sources say of their slots, and how far each destination was when it was last heard of"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "source_readings",
        sa.Column("database_id", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("document", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["database_id"], ["databases.id"], name=op.f("fk_source_readings_database_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("database_id", name=op.f("pk_source_readings")),
    )
    op.add_column("streams", sa.Column("reached", postgresql.JSONB(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("streams", "reached")
    op.drop_table("source_readings")
