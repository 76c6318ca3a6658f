"""How late the lab's slow network is"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("lab_actions", sa.Column("delay_ms", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("lab_actions", "delay_ms")
