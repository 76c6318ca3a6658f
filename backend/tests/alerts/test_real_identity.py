"""A table that loses its replica identity at a real source: told by stream, health, command line and alert."""

import re
from typing import Any

import httpx
import psycopg
import pytest

from tests.alerts.test_real_causes import quick  # noqa: F401
from tests.alerts.test_rest import alert_of
from tests.conftest import Sides
from tests.features.test_streams import STREAMS
from tests.features.test_table_troubles import until
from tests.test_collector import collector  # noqa: F401
from tests.test_real_engine import stream, thalwegd  # noqa: F401

REFUSED = '"public"."orders" has no replica identity: it has no primary key. PostgreSQL refuses updates and deletes'


async def test_lost_primary_key_is_told_until_its_cure_is_run(
    admin: httpx.AsyncClient,
    stream: dict[str, Any],  # noqa: F811
    sides: Sides,
) -> None:
    path = f"{STREAMS}/{stream['id']}"
    sides.on_source("CREATE UNIQUE INDEX orders_again ON orders (id)", "ALTER TABLE orders DROP CONSTRAINT orders_pkey")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        sides.on_source("UPDATE orders SET item = 'refused' WHERE id = 1")
    seen = await until(admin, path, "UNIDENTIFIED")
    assert seen["health"]["level"] == "warning"
    assert seen["health"]["reason"].startswith(REFUSED)
    alert = await alert_of(admin, "table_trouble")
    assert alert["message"].startswith(f"A table of {stream['name']} needs a cure. {REFUSED}")
    trouble = next(table["trouble"] for table in seen["tables"] if table["table"] == "orders")
    assert trouble["resolutions"] == []
    (cure,) = re.findall(r"ALTER TABLE .*;", trouble["cure"])
    assert cure == 'ALTER TABLE "public"."orders" REPLICA IDENTITY USING INDEX "orders_again";'
    sides.on_source(cure, "UPDATE orders SET item = 'changed' WHERE id = 1")
    assert (await until(admin, path, None))["health"]["level"] == "ok"
    assert (await alert_of(admin, "table_trouble", "resolved"))["resolution"] == "cleared"
