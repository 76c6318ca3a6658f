"""Does the source's server offer thalweg_output (docs/decisions/output-plugin.md)? No catalogue tells: it is tried."""

from psycopg import Error, errors

from thalweg.inspection.checks import Checklist
from thalweg.inspection.connection import Connection, connected, read_one
from thalweg.inspection.schemas import CheckStatus
from thalweg.inspection.target import Target

PLUGIN = "thalweg_output"
IDENTIFIER, TITLE = "output_plugin", "Output plugin"
# A slot waits for transactions that were open when it was begun; by then the plugin has been loaded.
PATIENCE_MILLISECONDS = 1000
NEEDED = ("wal_level", "replication_slots", "replication_attribute", "primary")


async def check_output_plugin(checklist: Checklist, target: Target, wanted: str, timeout: int) -> None:
    """`wanted` is the parameter source_plugin. Only where a slot could be made at all: other checks say why not."""
    if wanted == "pgoutput":
        checklist.ok(IDENTIFIER, TITLE, "pgoutput, as the parameter source_plugin says.")
        return
    if any(check.id in NEEDED and check.status is CheckStatus.FAILED for check in checklist.checks):
        return
    async with connected(target, timeout) as connection:
        refused = await _refusal(connection)
        directory = await _library_directory(connection)
    if refused is None:
        checklist.ok(IDENTIFIER, TITLE, f"{PLUGIN}: the server sends each transaction's changes together.")
        return
    cure = (
        f"Install {PLUGIN} on the source's server (engine/outputplugin: make install{directory}), and add it to "
        "output_plugin_libraries where the server has that setting. No restart is needed."
    )
    if wanted == "thalweg":
        checklist.fail(IDENTIFIER, TITLE, f"The server does not offer {PLUGIN}: {refused}.", cure)
        return
    checklist.ok(
        IDENTIFIER, TITLE, f"pgoutput. With {PLUGIN} the source would spend about a third less time on it.",
        f"Optional. {cure} A stream chooses when it is created.",
    )  # fmt: skip


async def _refusal(connection: Connection) -> str | None:
    """Why a slot with the plugin cannot be made. The slot is temporary, and gone at the end of the connection."""
    row = await read_one(connection, "SELECT 'thalweg_check_' || pg_backend_pid() AS name")
    await connection.execute(f"SET statement_timeout = {PATIENCE_MILLISECONDS}".encode())
    try:
        await connection.execute("SELECT pg_create_logical_replication_slot(%s, %s, true)", (row["name"], PLUGIN))
    except errors.QueryCanceled:
        return None
    except Error as error:
        return str(error).strip().splitlines()[0]
    return None


async def _library_directory(connection: Connection) -> str:
    """For the right major version of several on one host."""
    row = await read_one(connection, "SELECT current_setting('server_version_num')::int / 10000 AS major")
    return f" PG_CONFIG=/usr/lib/postgresql/{row['major']}/bin/pg_config"
