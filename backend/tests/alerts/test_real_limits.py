"""Alerts of what fills up, by real causes: a slot that holds WAL, a backlog near its limit, a small disk."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.alerts.receivers import HttpReceiver, http_receiver
from tests.alerts.test_real_causes import told
from tests.alerts.test_rest import ALERTS
from tests.conftest import Sides
from tests.features.test_streams import STREAMS, created
from tests.support.real_engine import RealEngine, can_mount
from tests.support.relay import Relay
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_fan_out import reports, two  # noqa: F401
from tests.test_real_engine import enrol, of, slot, stream, thalwegd  # noqa: F401
from tests.test_real_fan_out import relay  # noqa: F401
from thalweg.alerting import trend
from thalweg.alerting.catalogue import RULES, AlertRuleId
from thalweg.kernel.settings import Settings

MIB = 1 << 20
FULL = (AlertRuleId.WAL_RETENTION, AlertRuleId.SPILL_LIMIT, AlertRuleId.SPILL_DISK)
# Of this disk an engine may take 64 MiB: 256 MiB it leaves to others.
DISK_MIB = 320


@pytest.fixture(autouse=True)
def quick(app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Growth is known after two seconds instead of ten, and what is over is resolved at once."""
    settings.alerts_interval = settings.sources_interval = 0.2
    monkeypatch.setattr(trend, "SPAN_MIN", timedelta(seconds=2))
    monkeypatch.setattr(trend, "POINTS_MAX", 3000)
    for rule in FULL:
        monkeypatch.setitem(RULES, rule, replace(RULES[rule], hold_seconds=0, resolve_seconds=0))


@asynccontextmanager
async def growing(write: Callable[[], None]) -> AsyncGenerator[None, None]:
    """Writes again and again, five times a second."""

    async def go_on() -> None:
        while True:
            await asyncio.to_thread(write)
            await asyncio.sleep(0.2)

    task = asyncio.create_task(go_on())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def hook(admin: httpx.AsyncClient) -> AsyncGenerator[HttpReceiver, None]:
    async with http_receiver() as receiver:
        body = {"name": "hook", "kind": "webhook", "settings": {"url": receiver.url}}
        assert (await admin.post(f"{ALERTS}/channels", json=body)).status_code == 201
        yield receiver


async def filling_up(
    receiver: HttpReceiver, rule: AlertRuleId, room: Callable[[dict[str, Any]], float]
) -> dict[str, Any]:
    """The notice's alert; its time to full is its room at its growth."""
    alert: dict[str, Any] = (await told(receiver, rule, "firing"))["alert"]
    seen = alert["evidence"]
    assert seen["growth_bytes_per_second"] > 0, alert
    assert seen["seconds_to_full"] == pytest.approx(room(seen) / seen["growth_bytes_per_second"]), alert
    assert alert["meaning"] == RULES[rule].meaning and alert["action"] == RULES[rule].action
    return alert


# --- WAL


@pytest.fixture
def keep_size(sides: Sides) -> Generator[Callable[[str], None], None, None]:
    """Sets the source's max_slot_wal_keep_size."""

    def keep(value: str) -> None:
        sides.cluster.execute(f"ALTER SYSTEM SET max_slot_wal_keep_size = '{value}'", "SELECT pg_reload_conf()")

    yield keep
    keep("-1")


async def test_slot_that_nobody_reads_nears_its_limit_recovers_and_is_lost_at_last(
    admin: httpx.AsyncClient,
    stream: dict[str, Any],  # noqa: F811
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    keep_size: Callable[[str], None],
) -> None:
    keep_size("512MB")
    held = f"SELECT wal_status, safe_wal_size FROM pg_replication_slots WHERE slot_name = '{slot(stream)}'"

    def write() -> None:
        sides.on_source("SELECT pg_logical_emit_message(false, 'a test', repeat('x', 1000000))")

    async with hook(admin) as receiver:
        thalwegd.stop()
        async with growing(write):
            alert = await filling_up(receiver, AlertRuleId.WAL_RETENTION, lambda seen: float(seen["safe_bytes"]))
            (status, safe) = of(sides, "postgres", held)[0]
            assert "max_slot_wal_keep_size is reached in" in alert["message"]
            assert (alert["evidence"]["wal_status"], status) == ("reserved", "reserved")
            assert alert["evidence"]["safe_bytes"] >= safe > 0
        thalwegd.start()

        async def given_back() -> bool:
            sides.on_source("UPDATE orders SET amount = amount + 1 WHERE id = 1")
            sides.cluster.execute("CHECKPOINT")  # the slot moves to where the source has told of running transactions
            items = (await admin.get(ALERTS, params={"state": "resolved", "rule": "wal_retention"})).json()["items"]
            return bool(items)

        await eventually(given_back)
        assert (await told(receiver, "wal_retention", "resolved"))["alert"]["id"] == alert["id"]

        thalwegd.stop()
        keep_size("16MB")

        async def removed() -> bool:
            write()
            sides.cluster.execute("SELECT pg_switch_wal()", "CHECKPOINT")
            return of(sides, "postgres", held)[0][:1] == ("lost",)

        await eventually(removed)
        lost = (await told(receiver, "slot_lost", "firing"))["alert"]
        assert lost["message"].startswith(f"The slot of {stream['name']} is lost. The source has removed WAL")

        async def nothing_kept() -> bool:
            return not (await admin.get(ALERTS, params={"state": "firing", "rule": "wal_retention"})).json()["items"]

        await eventually(nothing_kept)


# --- the engine's disk


@pytest.fixture
def on_small_disk(tmp_path: Path) -> Generator[RealEngine, None, None]:
    """Where nobody may mount, its disk is the machine's, which others fill, too: test_real_causes looks at that one."""
    engine = RealEngine(tmp_path / "small", disk_mib=DISK_MIB if can_mount() else None)
    engine.start()
    yield engine
    engine.stop()


async def test_backlog_of_a_dead_destination_nears_its_limit_and_fills_the_disk(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    reports: str,  # noqa: F811
    relay: Relay,  # noqa: F811
    sides: Sides,
    on_small_disk: RealEngine,
    collector: Any,  # noqa: F811
) -> None:
    assert (await enrol(admin, on_small_disk)).status_code == 201
    change = {"port": relay.port, "password": sides.destination["password"]}
    assert (await admin.patch(f"/api/v1/databases/{reports}", json=change, headers={"If-Match": "*"})).is_success
    made = await created(admin, registered, **two(registered, reports, parameters={"queue_spill_limit_mb": 16}))
    path = f"{STREAMS}/{made['id']}"
    running = await wait_for(admin, path, phase="REPLICATING")
    away = running["destinations"][1]["id"]
    numbers = iter(range(1000, 1_000_000, 10))

    def write() -> None:
        first = next(numbers)
        wide = "(SELECT string_agg(md5((n * 1000 + part)::text), '') FROM generate_series(1, 600) part)"
        sides.on_source(f"INSERT INTO orders SELECT n, {wide}, 1 FROM generate_series({first}, {first + 9}) n")

    async with hook(admin) as receiver:
        await relay.sever()
        async with growing(write):
            alert = await filling_up(
                receiver, AlertRuleId.SPILL_LIMIT, lambda seen: float(seen["limit_bytes"] - seen["used_bytes"])
            )
            seen = alert["evidence"]
            assert (seen["component"], seen["parameter"]) == (f"{away}:backlog", "queue_spill_limit_mb")
            assert (0 < seen["used_bytes"] <= seen["limit_bytes"], seen["limit_bytes"]) == (True, 16 * MIB)
            assert "of queue_spill_limit_mb. At the present growth it is reached in" in alert["message"]
            firing = [alert]
            if on_small_disk.disk_mib is not None:
                disk = await filling_up(receiver, AlertRuleId.SPILL_DISK, lambda seen: float(seen["room_bytes"]))
                assert (disk["subject"]["name"], disk["evidence"]["total_bytes"]) == ("real", DISK_MIB * MIB)
                assert 0 < disk["evidence"]["room_bytes"] < 64 * MIB
                assert "At the present growth no more can be spilled in" in disk["message"]
                firing.append(disk)
        await relay.mend()
        for fired in firing:
            assert (await told(receiver, fired["rule"], "resolved"))["alert"]["id"] == fired["id"]
    deleted = (await admin.delete(path)).json()["operation_id"]
    await wait_for(admin, f"/api/v1/operations/{deleted}", state="succeeded")


async def test_the_full_backlog_of_a_paused_destination_is_an_error_of_the_whole_stream_at_once(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    reports: str,  # noqa: F811
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
) -> None:
    assert (await enrol(admin, thalwegd)).status_code == 201
    made = await created(admin, registered, **two(registered, reports, parameters={"queue_spill_limit_mb": 16}))
    path = f"{STREAMS}/{made['id']}"
    paused = (await wait_for(admin, path, phase="REPLICATING"))["destinations"][1]["id"]
    operation = (await admin.post(f"{path}/destinations/{paused}:stop")).json()["operation_id"]
    await wait_for(admin, f"/api/v1/operations/{operation}", state="succeeded")
    numbers = iter(range(1000, 1_000_000, 200))

    async def filled() -> dict[str, Any] | None:
        first = next(numbers)
        wide = "(SELECT string_agg(md5((n * 1000 + part)::text), '') FROM generate_series(1, 600) part)"
        sides.on_source(f"INSERT INTO orders SELECT n, {wide}, 1 FROM generate_series({first}, {first + 199}) n")
        shown = dict((await admin.get(path)).json())
        return shown if shown["destinations"][1]["backlog"]["state"] == "FULL" else None

    await eventually(filled)
    stalls = await wait_for(admin, path, state="STALLED")
    assert [destination["state"] for destination in stalls["destinations"]] == ["STALLED", "PAUSED"]
    assert stalls["health"]["level"] == "error"
    assert stalls["health"]["reason"].startswith(
        "Capture waits because the backlog of Reports 2.0 is full (16.0 MiB): nothing more reaches any destination"
    )

    async def fires() -> dict[str, Any] | None:
        items = (await admin.get(ALERTS, params={"state": "firing", "rule": "backlog_full"})).json()["items"]
        return dict(items[0]) if items else None

    alert = await eventually(fires)
    assert (alert["severity"], alert["evidence"]["destination_id"]) == ("critical", paused)
    assert alert["fired_at"] == alert["pending_at"], "at once"
    await admin.post(f"{path}/destinations/{paused}:start")
    # The whole backlog is applied first, and no less than its limit was written.
    await wait_for(admin, path, 240, state="REPLICATING")
    deleted = (await admin.delete(path)).json()["operation_id"]
    await wait_for(admin, f"/api/v1/operations/{deleted}", state="succeeded")
