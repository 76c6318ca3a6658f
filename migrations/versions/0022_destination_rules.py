"""Rules of tables for one destination alone"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("destinations", sa.Column("row_rules", JSONB(none_as_null=True), nullable=False, server_default="[]"))
    op.alter_column("destinations", "row_rules", server_default=None)


def downgrade() -> None:
    op.drop_column("destinations", "row_rules")
