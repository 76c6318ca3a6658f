"""A stream has a list of destinations"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# As the control plane names destinations: what the contract allows of the database's name.
IDENTIFIER = "coalesce(nullif(left(regexp_replace(lower(d.name), '[^a-z0-9]', '', 'g'), 16), ''), 'destination')"


def upgrade() -> None:
    op.create_table(
        "destinations",
        sa.Column("stream_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("database_id", sa.Text(), nullable=False),
        sa.Column("engine_id", sa.Text(), nullable=False),
        sa.Column("parameters", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("desired_status", sa.Text(), nullable=False),
        sa.Column("force", sa.Boolean(), nullable=False),
        sa.Column("changed_revision", sa.BigInteger(), nullable=False),
        sa.Column("listed", sa.Boolean(), nullable=False),
        sa.Column("detached", sa.Boolean(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_destinations_stream_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["database_id"], ["databases.id"], name=op.f("fk_destinations_database_id")),
        sa.ForeignKeyConstraint(["engine_id"], ["engines.id"], name=op.f("fk_destinations_engine_id")),
        sa.PrimaryKeyConstraint("stream_id", "id", name=op.f("pk_destinations")),
        sa.UniqueConstraint("stream_id", "database_id", name=op.f("uq_destinations_stream_id_database_id")),
    )
    for column in ("database_id", "engine_id"):
        op.create_index(op.f(f"ix_destinations_{column}"), "destinations", [column], unique=False)
    # `changed_revision` was that of the engine that applies; now it is that of the one that captures.
    op.execute(
        "INSERT INTO destinations (stream_id, id, database_id, engine_id, parameters, desired_status, force, "
        f"changed_revision, listed, detached, ordinal, created_at) SELECT s.id, {IDENTIFIER}, s.destination_id, s.engine_id, "
        "'{}', 'ENABLED', false, s.changed_revision, false, false, 1, s.created_at "
        "FROM streams s JOIN databases d ON d.id = s.destination_id"
    )
    op.execute(
        "UPDATE streams SET changed_revision = CASE WHEN capture_engine_id IS NULL THEN changed_revision "
        "ELSE sending_revision END, capture_engine_id = coalesce(capture_engine_id, engine_id), "
        "halves = NULL, observed = NULL"
    )
    op.alter_column("streams", "capture_engine_id", nullable=False)
    op.alter_column("streams", "sending_dropped", new_column_name="capture_dropped", server_default=None)
    op.add_column("streams", sa.Column("fans_out", sa.Boolean(), server_default=sa.false(), nullable=False))
    for name in ("destination_id", "engine_id", "sending_revision"):
        op.drop_column("streams", name)
    op.add_column("operations", sa.Column("destination_id", sa.Text(), nullable=True))
    # An operation's revision was that of the engine that applies.
    op.execute("UPDATE operations SET revision = 0")


def downgrade() -> None:
    """A stream keeps its first destination only."""
    op.drop_column("operations", "destination_id")
    for name, table in (("destination_id", "databases"), ("engine_id", "engines")):
        op.add_column("streams", sa.Column(name, sa.Text(), nullable=True))
        op.create_foreign_key(op.f(f"fk_streams_{name}"), "streams", table, [name], ["id"])
        op.create_index(op.f(f"ix_streams_{name}"), "streams", [name], unique=False)
    op.add_column("streams", sa.Column("sending_revision", sa.BigInteger(), server_default="0", nullable=False))
    op.alter_column("streams", "capture_engine_id", nullable=True)
    op.execute(
        "UPDATE streams s SET destination_id = d.database_id, engine_id = d.engine_id, "
        "sending_revision = CASE WHEN d.engine_id = s.capture_engine_id THEN 0 ELSE s.changed_revision END, "
        "changed_revision = CASE WHEN d.engine_id = s.capture_engine_id THEN s.changed_revision "
        "ELSE d.changed_revision END, "
        "capture_engine_id = nullif(s.capture_engine_id, d.engine_id), halves = NULL, observed = NULL "
        "FROM (SELECT DISTINCT ON (stream_id) * FROM destinations ORDER BY stream_id, ordinal) d "
        "WHERE d.stream_id = s.id"
    )
    for name in ("destination_id", "engine_id"):
        op.alter_column("streams", name, nullable=False)
    op.drop_column("streams", "fans_out")
    op.alter_column("streams", "capture_dropped", new_column_name="sending_dropped", server_default=sa.false())
    op.drop_table("destinations")
