"""The schema in which engines keep a destination's progress: streams share it, perhaps under several roles."""

from thalweg.inspection.checks import Checklist, quoted
from thalweg.inspection.connection import Connection, read_all
from thalweg.inspection.schemas import RoleFacts

OWNER = """
SELECT pg_get_userbyid(nspowner) AS name, pg_has_role(nspowner, 'USAGE') AS is_member
  FROM pg_namespace WHERE nspname = 'thalweg'
"""


async def check_bookkeeping(checklist: Checklist, connection: Connection, role: RoleFacts) -> None:
    rows = await read_all(connection, OWNER)
    title = "Schema of the bookkeeping"
    if not rows:
        checklist.ok("bookkeeping_schema", title, "The schema thalweg will be created.")
    elif rows[0]["is_member"]:
        checklist.ok("bookkeeping_schema", title, f"{role.name} may use the schema thalweg, which is there.")
    else:
        owner = str(rows[0]["name"])
        checklist.fail(
            "bookkeeping_schema", title,
            f"The schema thalweg belongs to {owner}, whose stream came first; {role.name} may not use it.",
            f"Make {role.name} a member of {owner}, as a superuser.",
            f"GRANT {quoted(owner)} TO {quoted(role.name)}",
        )  # fmt: skip
