"""Which server of a database's is read: its primary, or a standby"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("databases", sa.Column("read_from", sa.Text(), nullable=False, server_default="primary"))
    op.alter_column("databases", "read_from", server_default=None)


def downgrade() -> None:
    op.drop_column("databases", "read_from")
