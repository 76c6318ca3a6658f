"""The changes of discarded transactions, behind their entries of the audit log; executions that are followed"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit_changes",
        sa.Column("audit_id", sa.BigInteger(), nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("changes", postgresql.JSONB(), nullable=False),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], name="fk_audit_changes_audit_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("audit_id", "first", name="pk_audit_changes"),
    )
    op.create_index("ix_audit_running", "audit", ["id"], postgresql_where=sa.text("(after ->> 'state') = 'RUNNING'"))


def downgrade() -> None:
    op.drop_index("ix_audit_running", "audit")
    op.drop_table("audit_changes")
