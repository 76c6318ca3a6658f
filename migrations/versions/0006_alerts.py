"""Alerts: state and history, rules' settings, silences, channels, deliveries"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NOW = sa.text("now()")


def text(name: str, *, null: bool = False, **options: object) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=null, **options)


def time(name: str, *, null: bool = False, **options: object) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=null, **options)


def document(name: str, *, null: bool = False) -> sa.Column[object]:
    return sa.Column(name, postgresql.JSONB(none_as_null=True), nullable=null)


def number(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Float(), nullable=True)


def upgrade() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        text("rule"), text("subject_type"), text("subject_id"), text("subject_name"), text("part"),
        text("stream_id", null=True), text("severity"), text("state"), text("message"),
        number("value"), number("threshold"), text("unit"), document("evidence"),
        time("pending_at"), time("fired_at", null=True), time("clear_since", null=True),
        time("resolved_at", null=True), text("resolution", null=True), time("changed_at"),
        time("notified_at", null=True), time("acknowledged_at", null=True), text("acknowledged_by", null=True),
        text("note", null=True), sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["advisor_runs.id"], name=op.f("fk_alerts_run_id"), ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alerts")),
    )  # fmt: skip
    op.create_index(
        "uq_alerts_open", "alerts", ["rule", "subject_type", "subject_id", "part"], unique=True,
        postgresql_where=sa.text("state <> 'resolved'"),
    )  # fmt: skip
    op.create_index("ix_alerts_resolved_at", "alerts", ["resolved_at"], unique=False)
    op.create_index(op.f("ix_alerts_subject_id"), "alerts", ["subject_id"], unique=False)
    op.create_table(
        "alert_rules",
        text("rule"), text("stream_id", null=True), sa.Column("enabled", sa.Boolean(), nullable=True),
        text("severity", null=True), number("hold_seconds"), document("thresholds"),
        time("updated_at", server_default=NOW), sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        text("id"), time("created_at", server_default=NOW),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_alert_rules_stream_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_rules")),
        sa.UniqueConstraint(
            "rule", "stream_id", name=op.f("uq_alert_rules_rule_stream_id"), postgresql_nulls_not_distinct=True
        ),
    )  # fmt: skip
    op.create_table(
        "alert_silences",
        text("rule", null=True), text("stream_id", null=True), time("until"), text("reason"), text("created_by"),
        text("id"), time("created_at", server_default=NOW),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_alert_silences_stream_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_silences")),
    )  # fmt: skip
    op.create_index(op.f("ix_alert_silences_until"), "alert_silences", ["until"], unique=False)
    op.create_table(
        "alert_channels",
        text("name"), text("kind"), sa.Column("enabled", sa.Boolean(), nullable=False), text("min_severity"),
        sa.Column("send_resolved", sa.Boolean(), nullable=False), document("settings"),
        text("secret_sealed", null=True), time("updated_at", server_default=NOW),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        text("id"), time("created_at", server_default=NOW),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_channels")),
        sa.UniqueConstraint("name", name=op.f("uq_alert_channels_name")),
    )  # fmt: skip
    op.create_table(
        "alert_deliveries",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        text("channel_id"), sa.Column("alert_id", sa.BigInteger(), nullable=True), text("event"), text("state"),
        sa.Column("tries", sa.Integer(), nullable=False), time("next_try_at", null=True),
        time("created_at", server_default=NOW), time("finished_at", null=True), number("took_ms"),
        document("error", null=True),
        sa.ForeignKeyConstraint(
            ["channel_id"], ["alert_channels.id"], name=op.f("fk_alert_deliveries_channel_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["alert_id"], ["alerts.id"], name=op.f("fk_alert_deliveries_alert_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_deliveries")),
    )  # fmt: skip
    op.create_index(
        "ix_alert_deliveries_due", "alert_deliveries", ["next_try_at"], unique=False,
        postgresql_where=sa.text("state = 'pending'"),
    )  # fmt: skip
    for column in ("channel_id", "alert_id"):
        op.create_index(op.f(f"ix_alert_deliveries_{column}"), "alert_deliveries", [column], unique=False)


def downgrade() -> None:
    for table in ("alert_deliveries", "alert_channels", "alert_silences", "alert_rules", "alerts"):
        op.drop_table(table)
