"""How a stream's changes are captured: decoded at the source, or mined from its WAL"""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("streams", sa.Column("capture_kind", sa.Text(), nullable=False, server_default="logical"))
    op.alter_column("streams", "capture_kind", server_default=None)


def downgrade() -> None:
    op.drop_column("streams", "capture_kind")
