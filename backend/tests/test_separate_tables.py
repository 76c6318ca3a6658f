"""Tables of their own that are partitions of each other at the destination."""

import httpx

from tests.conftest import Sides
from tests.test_preflight import checks_of


async def test_tables_of_their_own_are_no_partitions_of_each_other_at_the_destination(
    operator: httpx.AsyncClient, registered: dict[str, str], sides: Sides
) -> None:
    """As after a DETACH at the source alone."""
    days = (
        "CREATE TABLE days (id int, day int, PRIMARY KEY (day, id)) PARTITION BY RANGE (day)",
        "CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM (1) TO (2)",
        "CREATE TABLE days_2 PARTITION OF days FOR VALUES FROM (2) TO (3)",
    )
    owned = [f"ALTER TABLE {table} OWNER TO {sides.source['user']}" for table in ("days", "days_1", "days_2")]
    sides.on_source(*days, *owned, "ALTER TABLE days DETACH PARTITION days_1")
    sides.on_destination(*days)
    check = (await checks_of(operator, registered))["destination:separate_tables"]
    assert (check["status"], "public.days_1 (of public.days)" in check["detail"]) == ("failed", True)
    assert check["sql"] == 'ALTER TABLE "public"."days" DETACH PARTITION "public"."days_1";'
    sides.on_destination(*check["sql"].splitlines())
    assert (await checks_of(operator, registered))["destination:separate_tables"]["status"] == "ok"
