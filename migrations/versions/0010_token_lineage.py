"""Tokens know the token that they were made with"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tokens", sa.Column("made_by_id", sa.Text(), nullable=True))
    op.create_foreign_key(op.f("fk_tokens_made_by_id"), "tokens", "tokens", ["made_by_id"], ["id"], ondelete="CASCADE")
    op.create_index(op.f("ix_tokens_made_by_id"), "tokens", ["made_by_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_tokens_made_by_id"), table_name="tokens")
    op.drop_constraint(op.f("fk_tokens_made_by_id"), "tokens", type_="foreignkey")
    op.drop_column("tokens", "made_by_id")
