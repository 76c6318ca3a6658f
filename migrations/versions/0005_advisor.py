"""Runs of the advisor, schedules, cures and the policy"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

JSON = postgresql.JSONB(none_as_null=True)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "advisor_runs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("at", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("kept", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        sa.Column("scope", JSON, nullable=False),
        sa.Column("stream_ids", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("summary", JSON, nullable=False),
        sa.Column("document", JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_advisor_runs")),
    )
    op.create_index("ix_advisor_runs_at", "advisor_runs", ["at"], unique=False)
    op.create_index(
        "ix_advisor_runs_stream_ids", "advisor_runs", ["stream_ids"], unique=False, postgresql_using="gin"
    )
    op.create_table(
        "advisor_schedules",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("stream_id", sa.Text(), nullable=True),
        sa.Column("interval_seconds", sa.Integer(), nullable=False),
        sa.Column("window_seconds", sa.Integer(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("next_at", TIME, nullable=False),
        sa.Column("last_at", TIME, nullable=True),
        sa.Column("last_run_id", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("updated_at", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["last_run_id"], ["advisor_runs.id"], name=op.f("fk_advisor_schedules_last_run_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_advisor_schedules_stream_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_advisor_schedules")),
        sa.UniqueConstraint("name", name=op.f("uq_advisor_schedules_name")),
    )
    op.create_index(op.f("ix_advisor_schedules_last_run_id"), "advisor_schedules", ["last_run_id"], unique=False)
    op.create_index(op.f("ix_advisor_schedules_stream_id"), "advisor_schedules", ["stream_id"], unique=False)
    op.create_table(
        "advisor_cures",
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.Column("finding", JSON, nullable=False),
        sa.Column("stream_id", sa.Text(), nullable=False),
        sa.Column("path_id", sa.Text(), nullable=False),
        sa.Column("parameters_before", JSON, nullable=False),
        sa.Column("parameters_after", JSON, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("applied_by", sa.Text(), nullable=False),
        sa.Column("before_run_id", sa.BigInteger(), nullable=True),
        sa.Column("after_run_id", sa.BigInteger(), nullable=True),
        sa.Column("measure_at", TIME, nullable=True),
        sa.Column("measure_seconds", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("undone_at", TIME, nullable=True),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("created_at", TIME, server_default=sa.text("now()"), nullable=False),
        *(
            sa.ForeignKeyConstraint(
                [name], ["advisor_runs.id"], name=op.f(f"fk_advisor_cures_{name}"), ondelete="SET NULL"
            )
            for name in ("run_id", "before_run_id", "after_run_id")
        ),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_advisor_cures_stream_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_advisor_cures")),
    )
    for name in ("run_id", "before_run_id", "after_run_id", "stream_id"):
        op.create_index(op.f(f"ix_advisor_cures_{name}"), "advisor_cures", [name], unique=False)
    op.create_table(
        "advisor_policy",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("retention_days", sa.Integer(), nullable=False),
        sa.Column("runs_max", sa.Integer(), nullable=False),
        sa.Column("idle_threshold", sa.Float(), nullable=False),
        sa.Column("flow_control_threshold", sa.Float(), nullable=False),
        sa.Column("event_threshold", sa.Float(), nullable=False),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_advisor_policy_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_advisor_policy")),
    )


def downgrade() -> None:
    for name in ("advisor_policy", "advisor_cures", "advisor_schedules", "advisor_runs"):
        op.drop_table(name)
