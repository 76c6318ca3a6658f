"""Identities of engines, and streams over two of them"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "authority",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("certificate", sa.Text(), nullable=False),
        sa.Column("key_sealed", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_authority_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_authority")),
    )
    for name in ("identity_name", "identity_fingerprint", "identity_listen", "propagation_address"):
        op.add_column("engines", sa.Column(name, sa.Text(), nullable=True))
    op.add_column("engines", sa.Column("identity_not_after", sa.DateTime(timezone=True), nullable=True))
    op.add_column("engines", sa.Column("edition", sa.Integer(), server_default="1", nullable=False))
    op.add_column("streams", sa.Column("capture_engine_id", sa.Text(), nullable=True))
    op.add_column("streams", sa.Column("sending_revision", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("streams", sa.Column("sending_dropped", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("streams", sa.Column("halves", postgresql.JSONB(none_as_null=True), nullable=True))
    op.create_foreign_key(op.f("fk_streams_capture_engine_id"), "streams", "engines", ["capture_engine_id"], ["id"])
    op.create_index(op.f("ix_streams_capture_engine_id"), "streams", ["capture_engine_id"], unique=False)
    op.drop_constraint(op.f("pk_abandoned_streams"), "abandoned_streams", type_="primary")
    op.create_primary_key(op.f("pk_abandoned_streams"), "abandoned_streams", ["id", "engine_id"])


def downgrade() -> None:
    op.drop_constraint(op.f("pk_abandoned_streams"), "abandoned_streams", type_="primary")
    op.create_primary_key(op.f("pk_abandoned_streams"), "abandoned_streams", ["id"])
    op.drop_index(op.f("ix_streams_capture_engine_id"), table_name="streams")
    op.drop_constraint(op.f("fk_streams_capture_engine_id"), "streams", type_="foreignkey")
    for name in ("halves", "sending_dropped", "sending_revision", "capture_engine_id"):
        op.drop_column("streams", name)
    for name in ("edition", "identity_not_after", "propagation_address", "identity_listen",
                 "identity_fingerprint", "identity_name"):  # fmt: skip
        op.drop_column("engines", name)
    op.drop_table("authority")
