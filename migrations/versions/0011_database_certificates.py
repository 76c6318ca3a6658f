"""Certificates and keys of databases, as contents. Paths in `options` stay where they are, and are refused when used."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("databases", sa.Column("pem", postgresql.JSONB(), nullable=False, server_default="{}"))
    op.alter_column("databases", "pem", server_default=None)


def downgrade() -> None:
    op.drop_column("databases", "pem")
