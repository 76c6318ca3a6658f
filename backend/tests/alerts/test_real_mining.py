"""Alerts of streams that mine, by their real causes: a transaction that stays open fills the staged WAL."""

from dataclasses import replace
from typing import Any

import httpx
import psycopg
import pytest
from fastapi import FastAPI

from tests.alerts.test_rest import ALERTS, alert_of
from tests.conftest import Sides
from tests.features.test_streams import STREAMS, created
from tests.support.real_engine import RealEngine
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_real_engine import enrol, thalwegd  # noqa: F401
from thalweg.alerting.catalogue import RULES, AlertRuleId
from thalweg.kernel.settings import Settings

MIB = 1 << 20
LIMIT_MIB = 128


@pytest.fixture(autouse=True)
def quick(app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.alerts_interval = settings.sources_interval = 0.2
    rule = RULES[AlertRuleId.STAGING_LIMIT]
    monkeypatch.setitem(RULES, AlertRuleId.STAGING_LIMIT, replace(rule, hold_seconds=0, resolve_seconds=0))


async def test_a_transaction_that_stays_open_fills_the_staging_and_is_told_before_it_is_full(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:
    assert (await enrol(admin, thalwegd)).status_code == 201
    body = {"enabled": True, "thresholds": {"used_percent": 60, "seconds_to_full": 0}}
    answer = await admin.put(f"{ALERTS}/rules/staging_limit", json=body, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text
    made = await created(admin, registered, capture_kind="wal", parameters={"staging_limit_mb": LIMIT_MIB})
    path = f"{STREAMS}/{made['id']}"
    await wait_for(admin, path, phase="REPLICATING")
    with psycopg.connect(
        host="127.0.0.1", port=sides.cluster.port, user="postgres", dbname=sides.source["dbname"]
    ) as session:
        session.execute("INSERT INTO orders VALUES (900, 'stays open', 1)")
        for _ in range(9):
            sides.on_source("SELECT pg_logical_emit_message(false, 'a test', repeat('x', 10000000))")
        alert = await alert_of(admin, "staging_limit", seconds=60)
        seen = alert["evidence"]
        assert (seen["limit_bytes"], seen["is_full"]) == (LIMIT_MIB * MIB, False)
        assert seen["used_bytes"] >= 0.6 * seen["limit_bytes"]
        assert "A transaction that is open at the source needs" in alert["message"]
        session.rollback()

    async def resolved() -> bool:
        sides.on_source("UPDATE orders SET amount = amount + 1 WHERE id = 1")
        return bool((await admin.get(ALERTS, params={"state": "resolved", "rule": "staging_limit"})).json()["items"])

    await eventually(resolved)
    deleted = (await admin.delete(path)).json()["operation_id"]
    await wait_for(admin, f"/api/v1/operations/{deleted}", state="succeeded")
