"""The causes that slow the demo's stream down: real SQL at its destination, and the SQL that undoes it.

Every statement may be executed twice: the collector may be interrupted at any time and begins again.
"""

from dataclasses import dataclass
from enum import StrEnum

SECONDS = 600
"""No action of the lab lasts longer: then it ends by itself."""
DELAY_MS, DELAY_MS_MAX = 50, 100
"""The delay of the slow network, each way. With more, reading the destination would take too long."""
MS = "{ms}"


class CauseName(StrEnum):
    TRIGGER = "trigger"
    INDEX = "index"
    LOCK = "lock"
    NETWORK = "network"


@dataclass(frozen=True)
class Cause:
    """`begin` and `end` are executed one by one, each in a transaction of its own."""

    title: str
    effect: str
    tables: tuple[str, ...]
    """Tables of the stream in the schema public, without which there is nothing to slow down."""
    begin: tuple[str, ...]
    end: tuple[str, ...]
    there: str
    """A query of one boolean: whether it still slows the stream."""
    seconds: int = SECONDS
    """After so long it ends by itself."""
    in_session: bool = False
    """It lasts as long as the session that has executed `begin`: `end` is what happens to that session."""
    delay_ms: int | None = None
    """The delay if `begin` has one and the request does not give it."""

    def beginning(self, delay_ms: int | None) -> tuple[str, ...]:
        """With the delay that is wanted."""
        ms = str(self.delay_ms if delay_ms is None else delay_ms)
        return tuple(statement.replace(MS, ms) for statement in self.begin)


MARK = "Made by Thalweg''s lab"
"""The comment on the lab's schema: another one of that name is somebody's, and nothing in it is touched."""
# The trigger alone tells of a schema that was made before there was a mark.
IS_OURS = f"""obj_description(to_regnamespace('lab'), 'pg_namespace') = '{MARK}' OR EXISTS (SELECT FROM pg_trigger
     WHERE tgrelid = to_regclass('public.pgbench_accounts') AND tgname = 'lab_check_account'
     AND tgfoid = to_regprocedure('lab.check_account()'))"""
END_SLEEP = f"""DO $$ BEGIN
  IF to_regclass('lab.slow') IS NOT NULL AND ({IS_OURS}) THEN DELETE FROM lab.slow; END IF;
END $$;"""  # noqa: S608
# Objects that somebody else has put into the schema stay, and the schema with them.
DROP_OURS = f"""DO $$ BEGIN
  IF {IS_OURS} THEN
    DROP TRIGGER IF EXISTS lab_check_account ON public.pgbench_accounts;
    DROP FUNCTION IF EXISTS lab.check_account();
    DROP TABLE IF EXISTS lab.slow;
    IF NOT EXISTS (SELECT FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass
                   AND refobjid = to_regnamespace('lab')) THEN
      DROP SCHEMA lab;
    END IF;
  END IF;
END $$;"""


OURS = "'object_not_in_prerequisite_state'"
"""The SQLSTATE of the messages that these statements raise: they quote no rows, so viewers may read them."""


def _make(schema: str, is_ours: str) -> str:
    return f"""DO $$ BEGIN
  IF to_regnamespace('{schema}') IS NULL THEN
    CREATE SCHEMA {schema};
    COMMENT ON SCHEMA {schema} IS '{MARK}';
  ELSIF ({is_ours}) IS NOT TRUE THEN
    RAISE 'The destination has a schema {schema} that the lab did not make, and leaves alone. Rename it: ALTER SCHEMA '
          '{schema} RENAME TO another_name' USING ERRCODE = {OURS};
  END IF;
END $$;"""


IS_OUR_NETWORK = f"obj_description(to_regnamespace('lab_network'), 'pg_namespace') = '{MARK}'"
DROP_OUR_NETWORK = f"""DO $$ BEGIN
  IF {IS_OUR_NETWORK} THEN DROP SCHEMA lab_network CASCADE; END IF;
END $$;"""

CAUSES = {
    CauseName.TRIGGER: Cause(
        "Slow trigger",
        "A trigger at the destination takes 50 ms for each account that is changed, like a trigger that calls another "
        "service.",
        ("pgbench_accounts",),
        begin=(
            END_SLEEP,
            DROP_OURS,
            _make("lab", IS_OURS),
            f"CREATE TABLE lab.slow AS SELECT now() + interval '{SECONDS} seconds' AS until;",
            """CREATE FUNCTION lab.check_account() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_sleep(0.05) FROM lab.slow WHERE until > clock_timestamp();
  RETURN NULL;
END $$;""",
            "CREATE TRIGGER lab_check_account AFTER UPDATE ON public.pgbench_accounts\n"
            "  FOR EACH ROW EXECUTE FUNCTION lab.check_account();",
            "ALTER TABLE public.pgbench_accounts ENABLE ALWAYS TRIGGER lab_check_account;",
        ),
        # A transaction that is being applied holds a lock that DROP waits for. Without the row, the trigger does not
        # delay it any more.
        end=(END_SLEEP, DROP_OURS),
        there="""SELECT EXISTS (SELECT FROM pg_trigger
 WHERE tgrelid = to_regclass('public.pgbench_accounts') AND tgname = 'lab_check_account' AND tgenabled IN ('A', 'R')
) AS there""",
    ),
    CauseName.INDEX: Cause(
        "Missing index",
        "The index that finds an article's row is dropped at the destination: each update reads the whole table.",
        ("stock",),
        # The second is what the advisor's cure has made, if it was tried before.
        begin=("DROP INDEX IF EXISTS public.stock_by_article, public.stock_thalweg_key;", "ANALYZE public.stock;"),
        end=("CREATE INDEX IF NOT EXISTS stock_by_article ON public.stock (article);",),
        # The index comes back once what is being applied has ended: a backlog of ten minutes would take as long again.
        seconds=180,
        there="""SELECT NOT EXISTS (SELECT FROM pg_index
 WHERE indrelid = to_regclass('public.stock') AND indisvalid) AS there""",
    ),
    CauseName.LOCK: Cause(
        "Lock",
        "A session at the destination locks the branches' rows and does not commit, like a report that was left open.",
        ("pgbench_branches",),
        begin=(
            "SET application_name = 'lab: report left open';",
            # The server ends the session where nobody else does.
            f"SET idle_in_transaction_session_timeout = '{SECONDS}s';",
            "BEGIN;",
            "SELECT FROM public.pgbench_branches FOR UPDATE;",
        ),
        end=("ROLLBACK;",),
        there="SELECT true AS there",
        in_session=True,
    ),
    CauseName.NETWORK: Cause(
        "Slow network",
        "Every packet between the engine and the destination arrives late, as over a long distance: the demo's relay, "
        "which all packets pass, delays it.",
        (),
        begin=(
            # Else the row would be there, and nobody who reads it.
            f"""DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'thalweg lab relay') THEN
    RAISE 'The relay that delays is not connected here: see “make status”, and its log.' USING ERRCODE = {OURS};
  END IF;
END $$;""",
            _make("lab_network", IS_OUR_NETWORK),
            "CREATE TABLE IF NOT EXISTS lab_network.delay (ms int NOT NULL, until timestamptz NOT NULL);",
            "WITH before AS (DELETE FROM lab_network.delay)\n"  # noqa: S608
            f"INSERT INTO lab_network.delay VALUES ({MS}, clock_timestamp() + interval '{SECONDS} seconds');",
        ),
        end=(DROP_OUR_NETWORK,),
        there=f"SELECT to_regclass('lab_network.delay') IS NOT NULL AND {IS_OUR_NETWORK} AS there",
        delay_ms=DELAY_MS,
    ),
}  # fmt: skip
