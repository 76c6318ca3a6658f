"""One form of stream: always a list of destinations, each with a stage of life and, where it needs one, a backlog

Engines get a document of the one form, because their revisions rise. What they had reported by itself goes: they report
again within seconds.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

STAGES = """
UPDATE destinations SET backlog = streams.fans_out, stage = CASE
    WHEN streams.capture_dropped OR destinations.detached THEN 'RELEASED'
    WHEN destinations.listed OR NOT streams.fans_out OR destinations.engine_id = streams.capture_engine_id
    THEN 'CAPTURED' ELSE 'NEW' END
  FROM streams WHERE streams.id = destinations.stream_id
"""
FORMS = """
UPDATE streams SET
    fans_out = EXISTS (SELECT FROM destinations AS one WHERE one.stream_id = streams.id AND one.backlog),
    capture_dropped = desired_status = 'DROPPED' AND NOT EXISTS (
        SELECT FROM destinations AS one WHERE one.stream_id = streams.id AND one.stage <> 'RELEASED')
"""
FLAGS = """
UPDATE destinations SET listed = stage <> 'NEW',
    detached = stage = 'RELEASED' AND NOT (SELECT capture_dropped FROM streams WHERE streams.id = stream_id)
"""
TELL_ALL = "UPDATE engines SET desired_revision = desired_revision + 1"


def upgrade() -> None:
    op.add_column("destinations", sa.Column("backlog", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("destinations", sa.Column("stage", sa.Text(), server_default="NEW", nullable=False))
    op.execute(STAGES)
    for column in ("backlog", "stage"):
        op.alter_column("destinations", column, server_default=None)
    for column in ("listed", "detached"):
        op.drop_column("destinations", column)
    for column in ("fans_out", "capture_dropped", "halves"):
        op.drop_column("streams", column)
    op.add_column("streams", sa.Column("reports", postgresql.JSONB(none_as_null=True), nullable=True))
    op.execute(TELL_ALL)


def downgrade() -> None:
    op.drop_column("streams", "reports")
    op.add_column("streams", sa.Column("halves", postgresql.JSONB(none_as_null=True), nullable=True))
    for column in ("fans_out", "capture_dropped"):
        op.add_column("streams", sa.Column(column, sa.Boolean(), server_default=sa.false(), nullable=False))
    op.execute(FORMS)
    for column in ("listed", "detached"):
        op.add_column("destinations", sa.Column(column, sa.Boolean(), server_default=sa.false(), nullable=False))
    op.execute(FLAGS)
    for column in ("fans_out", "capture_dropped"):
        op.alter_column("streams", column, server_default=None)
    for column in ("listed", "detached"):
        op.alter_column("destinations", column, server_default=None)
    for column in ("backlog", "stage"):
        op.drop_column("destinations", column)
    op.execute(TELL_ALL)
