"""The schema in which engines keep a destination's progress: streams share it, perhaps under several roles."""

from thalweg.inspection.checks import Checklist, quoted
from thalweg.inspection.connection import Connection, read_all, read_row
from thalweg.inspection.schemas import RoleFacts
from thalweg.kernel.settings import PACKAGE

OWNER = """
SELECT pg_get_userbyid(nspowner) AS name, pg_has_role(nspowner, 'USAGE') AS is_member
  FROM pg_namespace WHERE nspname = 'thalweg'
"""

# The engine's own question (engine/src/pg/bookkeeping_trust.inc): it asks it before it touches the schema.
QUESTION = (PACKAGE / "contract" / "bookkeeping_trust.inc").read_text()
DOUBTS = QUESTION.removeprefix('R"sql(').rstrip().removesuffix(')sql"').replace("$1", "'{}'")
CURE = (
    "Find out who made what is named here. Remove it, or make the owner of the engine's own tables its owner. If the "
    "role named here is meant to share the bookkeeping, have an administrator grant it to the stream's role instead."
)

# "$user" names the schema of the role's own name. The path is what the role's other sessions have: this one's is ours.
OWN_PATH = """
SELECT current_user = 'thalweg'
       AND '"$user"' = ANY (string_to_array(replace(coalesce(own.path, server.boot_val), ' ', ''), ',')) AS leads_there
  FROM pg_settings server LEFT JOIN LATERAL (
       SELECT substr(one, length('search_path=') + 1) AS path
         FROM pg_db_role_setting s CROSS JOIN unnest(s.setconfig) AS one
        WHERE one LIKE 'search_path=%%'
          AND s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = current_user))
          AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
        ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC LIMIT 1) own ON true
 WHERE server.name = 'search_path'
"""


async def doubts_about_bookkeeping(connection: Connection) -> str:
    """The other roles with a hand in the schema: their code in it would run as the session's role."""
    return str((await read_row(connection, DOUBTS))["doubts"])


async def check_bookkeeping(checklist: Checklist, connection: Connection, role: RoleFacts) -> None:
    rows = await read_all(connection, OWNER)
    title = "Schema of the bookkeeping"
    if not rows:
        checklist.ok("bookkeeping_schema", title, "The schema thalweg will be created.")
    elif rows[0]["is_member"] and (doubts := await doubts_about_bookkeeping(connection)):
        checklist.fail("bookkeeping_schema", title, f"{role.name} cannot trust the schema thalweg: {doubts}.", CURE)
    elif rows[0]["is_member"]:
        checklist.ok("bookkeeping_schema", title, f"{role.name} may use the existing schema thalweg.")
    else:
        owner = str(rows[0]["name"])
        checklist.fail(
            "bookkeeping_schema", title,
            f"The schema thalweg belongs to {owner}; {role.name} may not use it.",
            f"If {owner} is the role of an earlier stream, make {role.name} a member of it, as a superuser. Otherwise "
            "find out who created the schema: the engine would run what is in it.",
            f"GRANT {quoted(owner)} TO {quoted(role.name)}",
        )  # fmt: skip
    if (await read_row(connection, OWN_PATH))["leads_there"]:
        checklist.warn(
            "search_path", "Schema of the user's name",
            "Anything the user thalweg creates without naming a schema goes into the schema thalweg, which belongs to "
            "the engine.",
            "Use a user of another name, or give this one a search_path of its own.",
            "ALTER ROLE thalweg SET search_path = public",
        )  # fmt: skip
