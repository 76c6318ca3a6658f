"""Keys of masks"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("streams", sa.Column("mask_key_sealed", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("streams", "mask_key_sealed")
