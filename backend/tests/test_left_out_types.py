"""Schemas and types that the copy makes: their comments and privileges are left out, and listed for consent."""

import httpx
import pytest

from tests.conftest import Sides
from tests.test_preflight import checks_of

pytestmark = pytest.mark.usefixtures("engine")
RULES = {"include": [{"schema": "app", "table": "*"}]}
KINDS = ("comments on", "privileges on", "row-level")


async def items(operator: httpx.AsyncClient, registered: dict[str, str]) -> list[str]:
    check = (await checks_of(operator, registered, rules=RULES))["destination:left_out"]
    return [item for item in check["items"] if item.startswith(KINDS)]


async def test_comments_and_privileges_of_what_is_made_are_listed(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    reader = sides.source["user"]
    sides.on_source(
        "CREATE SCHEMA app", f"GRANT ALL ON SCHEMA app TO {reader}", "COMMENT ON SCHEMA app IS 'of the shop'",
        "CREATE TYPE app.mood AS ENUM ('calm')", "REVOKE ALL ON TYPE app.mood FROM PUBLIC",
        "CREATE DOMAIN app.word AS text CHECK (VALUE <> '')", "COMMENT ON DOMAIN app.word IS 'not empty'",
        "CREATE TYPE app.pair AS (mood app.mood, word app.word)",
        "CREATE TYPE app.unused AS ENUM ('x')", "COMMENT ON TYPE app.unused IS 'of no table'",
        "CREATE TYPE app.plain AS ENUM ('x')",
        "CREATE TABLE app.t (id int PRIMARY KEY, pairs app.pair[], plain app.plain)",
        "ALTER TABLE app.t FORCE ROW LEVEL SECURITY", f"ALTER TABLE app.t OWNER TO {reader}",
        f"GRANT USAGE ON TYPE app.mood TO {reader}",
    )  # fmt: skip
    assert await items(operator, registered) == [
        "row-level security: app.t", "comments on schemas: app.t (app)", "comments on types: app.t (app.word)",
        "privileges on schemas: app.t (app)", "privileges on types: app.t (app.mood)",
    ]  # fmt: skip
    # Types and schemas that the destination has stay as they are.
    sides.on_destination(
        "CREATE SCHEMA app", f"GRANT ALL ON SCHEMA app TO {sides.destination['user']}",
        "CREATE TYPE app.mood AS ENUM ('calm')",
    )  # fmt: skip
    assert await items(operator, registered) == ["row-level security: app.t", "comments on types: app.t (app.word)"]
