"""A store whose disk is full, as far as a test can make it: writing into these tables fails, reading works."""

from psycopg import errors
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from thalweg.kernel.context import Resources

FULL_DISK = """
CREATE OR REPLACE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE disk_full USING MESSAGE = 'could not extend file'; END $$
"""


async def fill_disk(resources: Resources, *tables: str) -> None:
    when = "BEFORE INSERT OR UPDATE OR DELETE"
    await _change(resources, FULL_DISK)
    for table in tables:
        await _change(
            resources, f"CREATE TRIGGER full_disk {when} ON {table} FOR EACH ROW EXECUTE FUNCTION full_disk()"
        )


async def free_disk(resources: Resources, *tables: str) -> None:
    for table in tables:
        await _change(resources, f"DROP TRIGGER full_disk ON {table}")


async def _change(resources: Resources, statement: str) -> None:
    """Once more where it meets a deadlock: a collector that has a partition's lock may want the whole table's, while
    the change of the schema has that and wants the partition's."""
    while True:
        async with resources.sessions() as session:
            try:
                await session.execute(text(statement))
                await session.commit()
            except OperationalError as error:
                if not isinstance(error.orig, errors.DeadlockDetected):
                    raise
            else:
                return
