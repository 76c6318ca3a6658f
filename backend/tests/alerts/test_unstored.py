"""A store that accepts nothing: alerts of it, and of everything else, are delivered all the same."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from tests.alerts.receivers import HttpReceiver, http_receiver
from tests.alerts.test_channels import made
from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble
from tests.support.full_disk import fill_disk, free_disk
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for, without_slot_alert  # noqa: F401
from thalweg.history.tiers import SECONDS
from thalweg.kernel.context import Resources
from thalweg.kernel.settings import Settings
from thalweg.workers.alerts import watch

ALERTS = "/api/v1/alerts"
RULE = "history_unwritten"
OF_ALERTS = ("alerts", "alert_deliveries")
HISTORY = (SECONDS.table,)
OF_ENGINES = ("engines", "streams")


@pytest.fixture
def quick(app: FastAPI, settings: Settings) -> None:
    settings.alerts_interval = settings.alerts_retry_after = 0.05


def told(receiver: HttpReceiver, rule: str = RULE) -> list[dict[str, Any]]:
    bodies = [json.loads(body) for _, body in receiver.taken]
    return [body for body in bodies if body["alert"]["rule"] == rule]


def telling(receiver: HttpReceiver, *events: str, rule: str = RULE) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        found = [body["event"] for body in told(receiver, rule)]
        assert found == list(events)[: len(found)], found
        return found == list(events)

    return look


async def begin(admin: httpx.AsyncClient, registered: dict[str, str], receiver: HttpReceiver) -> None:
    await without_slot_alert(admin)
    await made(admin, name="hook", kind="webhook", settings={"url": receiver.url})
    stream = await created(admin, registered)
    await wait_for(admin, f"{STREAMS}/{stream['id']}", phase="REPLICATING")
    answer = await admin.put(
        f"{ALERTS}/rules/{RULE}", json={"thresholds": {"failing_seconds": 0.5}}, headers={"If-Match": "*"}
    )
    assert answer.status_code == 200, answer.text


async def alerts(admin: httpx.AsyncClient, rule: str = RULE) -> list[dict[str, Any]]:
    return list((await admin.get(ALERTS, params={"rule": rule, "state": "all"})).json()["items"])


@pytest.mark.parametrize("tables", [HISTORY, OF_ENGINES], ids=["history", "engines"])
async def test_an_alert_that_can_be_stored_is(
    admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, quick: None, resources: Resources,
    collector: Any, tables: tuple[str, ...],  # noqa: F811
) -> None:  # fmt: skip
    """Without a record of its engine nothing is there to be written into the history."""
    async with http_receiver() as receiver:
        await begin(admin, registered, receiver)
        await fill_disk(resources, *tables)
        await eventually(telling(receiver, "firing"))
        [alert] = await alerts(admin)
        assert alert["message"].startswith("The store has accepted no history for ")
        await free_disk(resources, *tables)
        await eventually(telling(receiver, "firing", "resolved"))


async def test_one_that_cannot_be_stored_is_delivered_and_stored_later(
    admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, quick: None, resources: Resources,
    collector: Any,  # noqa: F811
) -> None:  # fmt: skip
    full = (*OF_ALERTS, *HISTORY, *OF_ENGINES)
    async with http_receiver() as receiver:
        receiver.answers = [503]
        await begin(admin, registered, receiver)
        await fill_disk(resources, *full)
        await eventually(telling(receiver, "firing", "firing"))  # the first was refused
        first, again = told(receiver)
        assert first["delivery_id"] == again["delivery_id"]
        assert (again["alert"]["id"], again["alert"]["state"]) == ("unstored", "firing")
        assert await alerts(admin) == []
        await free_disk(resources, *full)
        await eventually(telling(receiver, "firing", "firing", "resolved"))
        [alert] = await alerts(admin)
        assert (alert["state"], alert["resolution"]) == ("resolved", "cleared")
        assert alert["id"] == told(receiver)[-1]["alert"]["id"]


async def test_its_end_is_told_although_it_was_never_stored(
    admin: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, quick: None, resources: Resources,
    collector: Any,  # noqa: F811
) -> None:  # fmt: skip
    async with http_receiver() as receiver:
        await begin(admin, registered, receiver)
        await fill_disk(resources, *OF_ALERTS, *HISTORY)
        await eventually(telling(receiver, "firing"))
        await free_disk(resources, *HISTORY)
        await eventually(telling(receiver, "firing", "resolved"))
        assert await alerts(admin) == []


async def test_other_alerts_are_told_too(
    admin: httpx.AsyncClient, engine: EngineDouble, quick: None, resources: Resources, collector: Any,  # noqa: F811
) -> None:  # fmt: skip
    async with http_receiver() as receiver:
        await made(admin, name="hook", kind="webhook", settings={"url": receiver.url})
        await fill_disk(resources, *OF_ALERTS)
        await admin.post("/api/v1/tokens", json={"name": "ci", "role": "viewer", "expires_in_days": 3})
        await eventually(telling(receiver, "firing", rule="token_expiring"))
        await free_disk(resources, *OF_ALERTS)

        async def stored() -> bool:
            return [alert["state"] for alert in await alerts(admin, "token_expiring")] == ["firing"]

        await eventually(stored)
        assert len(told(receiver, "token_expiring")) == 1, "once is enough"


async def test_what_was_delivered_is_not_sent_again_because_the_store_does_not_take_that(
    admin: httpx.AsyncClient, engine: EngineDouble, quick: None, resources: Resources, collector: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(watch, "OUTAGE_PAUSE", 0.05)
    async with http_receiver() as receiver, resources.sessions() as session:
        await made(admin, name="hook", kind="webhook", settings={"url": receiver.url})
        for statement in (
            "CREATE SEQUENCE attempts",
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF nextval('attempts') < 4 THEN RAISE disk_full; END IF; RETURN NEW; END $$",
            "CREATE TRIGGER full_disk BEFORE UPDATE ON alert_deliveries FOR EACH ROW EXECUTE FUNCTION full_disk()",
        ):
            await session.execute(text(statement))
        await session.commit()
        await admin.post("/api/v1/tokens", json={"name": "ci", "role": "viewer", "expires_in_days": 3})

        async def written() -> bool:
            items = (await admin.get(f"{ALERTS}/deliveries")).json()["items"]
            return [(item["state"], item["tries"]) for item in items] == [("delivered", 1)]

        await eventually(written)
        assert (await session.execute(text("SELECT last_value FROM attempts"))).scalar_one() == 4
        assert len(told(receiver, "token_expiring")) == 1
