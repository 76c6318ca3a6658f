"""Tables that nobody knows: a search for one finds nothing, which would read as if nobody had changed it."""

from difflib import get_close_matches

import structlog

from thalweg.db.models import DatabaseRow
from thalweg.features.changes.engines import Miner
from thalweg.inspection.catalogue import TABLES_MAX, read_tables
from thalweg.inspection.connection import connected
from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.target import target_of
from thalweg.kernel.context import Context
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import Problem
from thalweg.kernel.words import listed

COMPARED_MAX = 2000
"""Names among which similar ones are looked for: that takes time with each of them."""
SHOWN_MAX = 3
log = structlog.get_logger(__name__)


async def check_known(
    context: Context, database: DatabaseRow, miners: list[Miner], table: tuple[str, str], prefix: str
) -> None:
    """Refuses a table that neither a stream with log mining nor the source has. A source that cannot be asked, or has
    more tables than are read, refuses nothing. `prefix`: before the JSON pointer."""
    streamed = {name for miner in miners for name in miner.tables}
    if table in streamed:
        return
    try:
        async with connected(
            target_of(database, context.resources), context.resources.settings.database_connect_timeout
        ) as connection:
            tables = [known.name for known in await read_tables(connection)]
    except ConnectionFailure as failure:
        log.info("the tables of a source cannot be read", database=database.name, error=failure.message)
        return
    if table in tables or len(tables) >= TABLES_MAX:
        return
    message = f"Neither the source nor a stream with log mining has a table {'.'.join(table)}."
    near = _similar(table, [*sorted(streamed), *tables])
    are = "is" if len(near) == 1 else "are"
    correct = f"Correct the name: {listed(near)} {are} similar." if near else "Correct the name."
    cure = f"{correct} If it was renamed or dropped, name the stream that had it (stream_id; --stream of the command)."
    error = FieldProblem(pointer=f"{prefix}/table", code="unknown", message=message, cure=cure)
    raise Problem("invalid_request", message, cure, errors=[error])


def _similar(table: tuple[str, str], known: list[tuple[str, str]]) -> list[str]:
    """Compares the names without their schemas: the schema may be what is wrong."""
    near = [table[1], *get_close_matches(table[1], dict.fromkeys(name for _, name in known[:COMPARED_MAX]))]
    found = [".".join(name) for like in near for name in known if name[1] == like]
    return list(dict.fromkeys(found))[:SHOWN_MAX]
