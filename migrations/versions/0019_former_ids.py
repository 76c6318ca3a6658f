"""Engines keep the destination id `default` for themselves: no destination has it any more

Engines and history may call a stream's only destination so, from before documents had lists: `former_id` says whose it
is. Of a stream over two engines that was being deleted before 0018, the engine that receives had slot and publication;
it has not removed them, and they are the capturing engine's now, which drops the stream once more.
"""

import json
from itertools import count

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

RESERVED = "default"
NAMED = (
    ("operations", "target_id", "destination_id"), ("outages", "stream_id", "destination_id"),
    ("advisor_cures", "stream_id", "destination_id"), ("alerts", "subject_id", "part"),
)  # fmt: skip
"""Tables beside the streams' that hold ids of destinations: with the columns of the stream and of the destination."""
ONLY = """
UPDATE destinations AS one SET former_id = :reserved
 WHERE former_id IS NULL AND NOT backlog AND NOT EXISTS (
       SELECT FROM destinations AS other WHERE other.stream_id = one.stream_id AND other.id <> one.id)
"""
TELL_ALL = "UPDATE engines SET desired_revision = desired_revision + 1"
NOT_ABANDONED = """
DELETE FROM abandoned_streams USING streams, destinations AS one
 WHERE abandoned_streams.id = streams.id AND abandoned_streams.engine_id = streams.capture_engine_id
   AND streams.desired_status = 'DROPPED' AND one.stream_id = streams.id
   AND one.stage = 'RELEASED' AND NOT one.backlog AND one.engine_id <> streams.capture_engine_id
"""
CAPTURED_AGAIN = """
WITH again AS (
    UPDATE destinations AS one SET stage = 'CAPTURED', changed_revision = engines.desired_revision
      FROM streams, engines
     WHERE streams.id = one.stream_id AND engines.id = one.engine_id AND streams.desired_status = 'DROPPED'
       AND one.stage = 'RELEASED' AND NOT one.backlog AND one.engine_id <> streams.capture_engine_id
 RETURNING one.stream_id
)
UPDATE streams SET reports = NULL, changed_revision = engines.desired_revision FROM engines
 WHERE engines.id = streams.capture_engine_id AND streams.id IN (SELECT stream_id FROM again)
"""


def upgrade() -> None:
    op.add_column("destinations", sa.Column("former_id", sa.Text(), nullable=True))
    connection = op.get_bind()
    for stream_id in connection.scalars(sa.text("SELECT stream_id FROM destinations WHERE id = 'default'")).all():
        rename(connection, stream_id)
    connection.execute(sa.text(ONLY), {"reserved": RESERVED})
    for statement in (TELL_ALL, NOT_ABANDONED, CAPTURED_AGAIN):
        op.execute(statement)


def rename(connection: sa.Connection, stream_id: str) -> None:
    """To one that neither the store nor the engine has in the stream."""
    read = sa.text("SELECT observed, reached FROM streams WHERE id = :stream")
    observed, reached = connection.execute(read, {"stream": stream_id}).one()
    own = sa.text("SELECT id FROM destinations WHERE stream_id = :stream")
    taken = {*connection.scalars(own, {"stream": stream_id}), *(found["id"] for found in _destinations(observed))}
    new = next(name for number in count(2) if (name := f"{RESERVED}{number}") not in taken)
    for destination in _destinations(observed):
        destination["id"] = new if destination["id"] == RESERVED else destination["id"]
    reached = {new if name == RESERVED else name: position for name, position in (reached or {}).items()}
    values = {"stream": stream_id, "reserved": RESERVED, "new": new}
    renamed = "UPDATE destinations SET id = :new, former_id = id WHERE stream_id = :stream AND id = :reserved"
    connection.execute(sa.text(renamed), values)
    connection.execute(
        sa.text(
            "UPDATE streams SET reports = NULL, observed = CAST(:observed AS jsonb), "
            "reached = CAST(:reached AS jsonb) WHERE id = :stream"
        ),
        {**values, "observed": observed and json.dumps(observed), "reached": json.dumps(reached)},
    )
    for table, of_stream, of_destination in NAMED:
        connection.execute(
            sa.text(
                f"UPDATE {table} SET {of_destination} = :new "  # noqa: S608
                f"WHERE {of_stream} = :stream AND {of_destination} = :reserved"
            ),
            values,
        )


def _destinations(observed: dict | None) -> list[dict]:
    return (observed or {}).get("destinations", [])


def downgrade() -> None:
    """The new ids stay: an engine of either version takes them."""
    op.drop_column("destinations", "former_id")
