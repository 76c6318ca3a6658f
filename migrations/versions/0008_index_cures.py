"""Cures that create an index, or change one destination's parameters"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TABLE = "advisor_cures"
COLUMNS = ("destination_id", "database_id", "sql", "operation_id")


def upgrade() -> None:
    for name in COLUMNS:
        op.add_column(TABLE, sa.Column(name, sa.Text(), nullable=True))
    op.add_column(TABLE, sa.Column("index_name", postgresql.JSONB(none_as_null=True), nullable=True))
    op.create_foreign_key(
        op.f("fk_advisor_cures_database_id"), TABLE, "databases", ["database_id"], ["id"], ondelete="SET NULL"
    )
    op.create_index(op.f("ix_advisor_cures_database_id"), TABLE, ["database_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_advisor_cures_database_id"), table_name=TABLE)
    op.drop_constraint(op.f("fk_advisor_cures_database_id"), TABLE, type_="foreignkey")
    for name in ("index_name", *reversed(COLUMNS)):
        op.drop_column(TABLE, name)
