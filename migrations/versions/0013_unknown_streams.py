"""Streams that an engine runs and the store does not know"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("unknown_streams", "streams_to_drop"):
        op.add_column("engines", sa.Column(name, JSONB(), nullable=False, server_default=sa.text("'[]'::jsonb")))


def downgrade() -> None:
    for name in ("streams_to_drop", "unknown_streams"):
        op.drop_column("engines", name)
