"""What the lab does to the demo's databases"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "lab_actions",
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("rate", sa.Integer(), nullable=True),
        sa.Column("begun_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("begun_by", sa.Text(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.Boolean(), nullable=False),
        sa.Column("in_effect_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("gone", sa.Boolean(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("action", name=op.f("pk_lab_actions")),
    )


def downgrade() -> None:
    op.drop_table("lab_actions")
