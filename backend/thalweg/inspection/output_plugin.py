"""Does the source's server offer thalweg_output (docs/decisions/output-plugin.md)? No catalogue tells: it is tried."""

from psycopg import Error, errors

from thalweg.inspection.checks import Checklist
from thalweg.inspection.connection import Connection, connected, read_row
from thalweg.inspection.schemas import CheckStatus
from thalweg.inspection.target import Target

PLUGIN = "thalweg_output"
# From this version of its batches on it says which subtransactions committed (docs/formats/output-batch.md).
BATCH_VERSION = "2"
WHOLE = (
    "The source sends large transactions after their commit only: PostgreSQL does not report every savepoint that is "
    "rolled back, so changes sent earlier could be wrong (docs/decisions/subtransactions.md)."
)
IDENTIFIER, TITLE = "output_plugin", "Output plugin"
# A slot waits for transactions that were open when it was begun; by then the plugin has been loaded.
PATIENCE_MILLISECONDS = 1000
NEEDED = ("wal_level", "replication_slots", "replication_attribute", "primary")


async def check_output_plugin(checklist: Checklist, target: Target, wanted: str, timeout: int) -> None:
    """`wanted` is the parameter source_plugin. Only where a slot could be made at all: other checks say why not."""
    if wanted == "pgoutput":
        checklist.ok(IDENTIFIER, TITLE, f"pgoutput, as the parameter source_plugin says. {WHOLE}")
        return
    if any(check.id in NEEDED and check.status is CheckStatus.FAILED for check in checklist.checks):
        return
    async with connected(target, timeout) as connection:
        refused = await _refusal(connection)
        tells = await _tells_subtransactions(connection) if refused is None else None
        directory = await _library_directory(connection)
    if refused is None:
        together = f"{PLUGIN}: the server sends each transaction's changes together"
        if tells is not False:
            checklist.ok(IDENTIFIER, TITLE, f"{together}{', and large ones while they run' if tells else ''}.")
            return
        checklist.ok(
            IDENTIFIER, TITLE, f"{together}; it is an earlier version's. {WHOLE}",
            f"Optional. Install this version's {PLUGIN} on the source's server (engine/outputplugin: "
            f"make install{directory}), then stop and start the stream.",
        )  # fmt: skip
        return
    cure = (
        f"Install {PLUGIN} on the source's server (engine/outputplugin: make install{directory}), and add it to "
        "output_plugin_libraries where the server has that setting. No restart is needed."
    )
    if wanted == "thalweg":
        checklist.fail(IDENTIFIER, TITLE, f"The server does not offer {PLUGIN}: {refused}.", cure)
        return
    checklist.ok(
        IDENTIFIER, TITLE,
        f"pgoutput. {WHOLE} With {PLUGIN} they come while they run, and the source spends about a third less time.",
        f"Optional. {cure} A stream chooses when it is created.",
    )  # fmt: skip


async def _slot_name(connection: Connection) -> str:
    row = await read_row(connection, "SELECT 'thalweg_check_' || pg_backend_pid() AS name")
    return str(row["name"])


async def _refusal(connection: Connection) -> str | None:
    """Why a slot with the plugin cannot be made. The slot is temporary, and gone at the end of the connection."""
    name = await _slot_name(connection)
    await connection.execute(f"SET statement_timeout = {PATIENCE_MILLISECONDS}".encode())
    try:
        await connection.execute("SELECT pg_create_logical_replication_slot(%s, %s, true)", (name, PLUGIN))
    except errors.QueryCanceled:
        return None
    except Error as error:
        return str(error).strip().splitlines()[0]
    return None


async def _tells_subtransactions(connection: Connection) -> bool | None:
    """Whether the plugin says which subtransactions committed; None where no slot is there to ask.

    Asks the slot for one change: the plugin looks at its options before anything else."""
    name = await _slot_name(connection)
    slots = await connection.execute("SELECT FROM pg_replication_slots WHERE slot_name = %s", (name,))
    if slots.rowcount == 0:
        return None
    try:
        await connection.execute(
            "SELECT pg_logical_slot_peek_binary_changes(%s, NULL, 1, 'proto_version', '2', 'publication_names', "
            "'thalweg_check', 'batch_version', %s)", (name, BATCH_VERSION),
        )  # fmt: skip
    except errors.FeatureNotSupported:
        return False
    except (errors.UndefinedObject, errors.QueryCanceled):
        pass  # a change came before the second one was looked for, or none did for too long
    return True


async def _library_directory(connection: Connection) -> str:
    """For the right major version of several on one host."""
    row = await read_row(connection, "SELECT current_setting('server_version_num')::int / 10000 AS major")
    return f" PG_CONFIG=/usr/lib/postgresql/{row['major']}/bin/pg_config"
