"""A second factor of users, recovery codes, logins that still lack the code, and who must have one"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("users", sa.Column("second_factor_sealed", sa.Text(), nullable=True))
    op.add_column("users", sa.Column("second_factor_draft_sealed", sa.Text(), nullable=True))
    op.add_column("users", sa.Column("second_factor_since", sa.DateTime(timezone=True), nullable=True))
    op.add_column("users", sa.Column("second_factor_step", sa.BigInteger(), nullable=True))
    op.create_table(
        "recovery_codes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("beginning", sa.Text(), nullable=False),
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_recovery_codes_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recovery_codes")),
        sa.UniqueConstraint("user_id", "beginning", name=op.f("uq_recovery_codes_user_id_beginning")),
    )
    op.create_table(
        "half_logins",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("secret_hash", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_half_logins_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_half_logins")),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_half_logins_secret_hash")),
    )
    op.create_index(op.f("ix_half_logins_user_id"), "half_logins", ["user_id"], unique=False)
    op.create_table(
        "access_policy",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("require_second_factor", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_access_policy_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access_policy")),
    )


def downgrade() -> None:
    op.drop_table("access_policy")
    op.drop_table("half_logins")
    op.drop_table("recovery_codes")
    for column in ("step", "since", "draft_sealed", "sealed"):
        op.drop_column("users", f"second_factor_{column}")
