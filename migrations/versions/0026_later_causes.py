"""Outages keep their first cause, and what it has become"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("outages", sa.Column("code", sa.Text(), nullable=False, server_default=""))
    op.add_column("outages", sa.Column("became", sa.Text(), nullable=True))
    op.add_column("outages", sa.Column("became_at", sa.DateTime(timezone=True), nullable=True))
    op.alter_column("outages", "code", server_default=None)


def downgrade() -> None:
    for name in ("became_at", "became", "code"):
        op.drop_column("outages", name)
