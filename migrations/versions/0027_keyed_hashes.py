"""Hashes of repeatable requests without a key, by which passwords could be guessed, are taken away"""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("UPDATE idempotency_keys SET request_hash = ''")


def downgrade() -> None:
    """Requests from before are refused either way."""
