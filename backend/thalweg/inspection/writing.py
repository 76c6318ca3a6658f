"""May a database's user write in an ordinary session? default_transaction_read_only keeps writers out, and the engine
respects it: who sets it means it."""

from thalweg.inspection.checks import Checklist, quoted
from thalweg.inspection.connection import Connection, read_row

SETTING = "default_transaction_read_only"
READ_ONLY = f"""
SELECT pg_is_in_recovery() AS in_recovery, session_user AS role, current_database() AS dbname,
       (SELECT reset_val = 'on' FROM pg_settings WHERE name = '{SETTING}') AS read_only,
       (SELECT CASE WHEN setrole <> 0 AND setdatabase <> 0 THEN 'role_in_database' WHEN setrole <> 0 THEN 'role'
                    WHEN setdatabase <> 0 THEN 'database' ELSE 'all' END
          FROM pg_db_role_setting
         WHERE setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = session_user))
           AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
           AND EXISTS (SELECT FROM unnest(setconfig) AS one WHERE one LIKE '{SETTING}=%%')
         ORDER BY setrole <> 0 DESC, setdatabase <> 0 DESC LIMIT 1) AS set_by
"""  # noqa: S608
"""`reset_val` is the session's value before we made it read-only. Of the settings that the catalogue has, the first one
wins; without one it is the server's own."""


async def check_writing(
    checklist: Checklist, connection: Connection, what: str, *, reads_standby: bool = False
) -> None:
    """`what` needs to be written there. Of a standby that is read only what it shares with its primary counts: that is
    written. On any other standby nothing can be written, which another check says."""
    found = await read_row(connection, READ_ONLY)
    role, dbname, set_by = quoted(found["role"]), quoted(found["dbname"]), found["set_by"]
    if reads_standby and set_by is None:
        return
    if found["in_recovery"] and not reads_standby:
        return
    title = "Sessions that may write"
    if not found["read_only"]:
        checklist.ok("writing", title, f"{SETTING} is off for {found['role']}.")
        return
    place, statement = {
        "role_in_database": (f"of {found['role']} in this database", f"ALTER ROLE {role} IN DATABASE {dbname} RESET"),
        "role": (f"of the user {found['role']}", f"ALTER ROLE {role} RESET"),
        "database": (f"of the database {found['dbname']}", f"ALTER DATABASE {dbname} RESET"),
        "all": ("of all users", "ALTER ROLE ALL RESET"),
    }.get(set_by, ("of the server", ""))
    cure = (
        f"SET {SETTING} = off;\n{statement} {SETTING};" if statement
        else f"ALTER SYSTEM SET {SETTING} = off;\nSELECT pg_reload_conf();"
    )  # fmt: skip
    checklist.fail(
        "writing", title,
        f"{SETTING} {place} is on: {what} cannot be written, and a stream would retry until it is off.",
        "End it. A server whose disk is full sets it by itself at some services: then make room first.", cure,
    )  # fmt: skip
