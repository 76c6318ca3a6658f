"""Alerts by their real causes: a real engine and real databases, broken in real ways, one after the other."""

import asyncio
import json
import shutil
import ssl
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from fastapi import FastAPI

from tests.alerts.receivers import HttpReceiver, http_receiver
from tests.alerts.test_rest import ALERTS, alert_of
from tests.conftest import Sides
from tests.features.test_streams import STREAMS
from tests.support.real_engine import RealEngine
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_real_engine import of, parked, slot, stream, thalwegd  # noqa: F401
from thalweg.alerting import conditions
from thalweg.alerting.catalogue import RULES, AlertRuleId
from thalweg.db.models import EngineRow
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.settings import Settings


@pytest.fixture(autouse=True)
def quick(app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop counts after one second instead of ten, and what is over is resolved at once. Not latency: it is seen only
    at the moment when late changes have come through."""
    settings.alerts_interval = settings.sources_interval = 0.2
    monkeypatch.setattr(conditions, "STANDS_SECONDS_MIN", 1)
    for rule in set(AlertRuleId) - {AlertRuleId.LATENCY}:
        monkeypatch.setitem(RULES, rule, replace(RULES[rule], resolve_seconds=0))


async def set_rule(client: httpx.AsyncClient, rule: str, **body: Any) -> None:
    answer = await client.put(f"{ALERTS}/rules/{rule}", json=body, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text


async def told(receiver: HttpReceiver, rule: str, event: str) -> dict[str, Any]:
    async def found() -> dict[str, Any] | None:
        bodies = [json.loads(body) for _, body in receiver.taken]
        return next((b for b in bodies if b["event"] == event and b["alert"]["rule"] == rule), None)

    return dict(await eventually(found))


async def test_conflicting_row_is_parked_told_of_and_over_when_it_is_discarded(
    admin: httpx.AsyncClient,
    stream: dict[str, Any],  # noqa: F811
    sides: Sides,
) -> None:
    path = f"{STREAMS}/{stream['id']}"
    async with http_receiver() as receiver:
        body = {"name": "hook", "kind": "webhook", "settings": {"url": receiver.url}}
        assert (await admin.post(f"{ALERTS}/channels", json=body)).status_code == 201
        sides.on_destination("INSERT INTO orders VALUES (500, 'in the way', 1)")
        sides.on_source("INSERT INTO orders VALUES (500, 'from the source', 2)")
        notice = await told(receiver, "error_queue", "firing")
        assert notice["alert"]["message"] == f"1 transaction is parked in the error queue of {stream['name']}."
        assert notice["url"].endswith(f"/streams/{stream['id']}?tab=errors")
        (error,) = await parked(admin, path, 1)
        errors = f"{path}/destinations/{stream['destinations'][0]['id']}/errors"
        discarded = await admin.delete(f"{errors}/{error['id']}", params={"reason": "the row in the way is right"})
        assert discarded.status_code == 204
        await told(receiver, "error_queue", "resolved")


async def test_locked_destination_stops_progress_and_raises_latency(
    admin: httpx.AsyncClient,
    stream: dict[str, Any],  # noqa: F811
    sides: Sides,
) -> None:
    await set_rule(admin, "no_progress", hold_seconds=0, thresholds={"wal_bytes": 50_000})
    await set_rule(admin, "latency", hold_seconds=0, thresholds={"latency_seconds": 0.5})
    await set_rule(admin, "wal_retention", hold_seconds=0, thresholds={"retained_bytes": 50_000})
    with psycopg.connect(
        host="127.0.0.1", port=sides.cluster.port, user="postgres", dbname=sides.destination["dbname"]
    ) as locker:
        locker.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        sides.on_source("INSERT INTO orders SELECT n, repeat('wide', 50), n FROM generate_series(1000, 1999) n")
        alert = await alert_of(admin, "no_progress", seconds=60)
        assert alert["evidence"]["behind_bytes"] > 50_000
        kept = await alert_of(admin, "wal_retention")
        assert kept["value"] > 50_000
    late = await alert_of(admin, "latency")
    assert late["value"] > 0.5
    assert (await alert_of(admin, "no_progress", "resolved", seconds=60))["resolution"] == "cleared"


@pytest.fixture
async def short_lived(resources: Resources, tmp_path: Path) -> AsyncGenerator[datetime, None]:
    """An engine's address with a certificate that ends in three days; when that is."""
    key, at = ec.generate_private_key(ec.SECP256R1()), now()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    until = (at + timedelta(days=3)).replace(microsecond=0)
    certificate = x509.CertificateBuilder(name, name, key.public_key(), 1, at - timedelta(days=1), until)
    text = certificate.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    text += key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "engine.pem").write_bytes(text)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "engine.pem")
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=tls)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with resources.sessions() as session:
        session.add(EngineRow(name="far", url=url, control_token_sealed=resources.secrets.seal("token")))
        await session.commit()
    yield until
    server.close()


async def test_certificate_of_an_engine_that_ends_soon(
    admin: httpx.AsyncClient,
    short_lived: datetime,
    collector: Any,  # noqa: F811
) -> None:
    alert = await alert_of(admin, "certificate_expiring")
    assert (alert["subject"]["type"], alert["subject"]["name"]) == ("engine", "far")
    assert datetime.fromisoformat(alert["evidence"]["until"]) == short_lived
    assert 2.9 < alert["value"] <= 3
    await set_rule(admin, "certificate_expiring", thresholds={"days": 1})
    assert (await alert_of(admin, "certificate_expiring", "resolved"))["resolution"] == "cleared"


async def test_lost_engine_and_dropped_slot(
    admin: httpx.AsyncClient,
    stream: dict[str, Any],  # noqa: F811
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
) -> None:
    await set_rule(admin, "engine_silent", thresholds={"silent_seconds": 1})
    await set_rule(admin, "slot_inactive", hold_seconds=0)
    # The engine's disk as it is: less than all of it is free.
    await set_rule(admin, "spill_disk", hold_seconds=0, thresholds={"free_percent": 100})
    disk = (await alert_of(admin, "spill_disk"))["evidence"]
    assert 0 < disk["free_bytes"] < disk["total_bytes"] == shutil.disk_usage(thalwegd.directory).total
    thalwegd.stop()

    async def told() -> bool:  # on a slow machine an engine that runs is silent for a second, too
        silent = await alert_of(admin, "engine_silent")
        return silent["subject"]["type"] == "engine" and "not answer" in silent["message"]

    await eventually(told)
    assert (await alert_of(admin, "slot_inactive"))["stream_id"] == stream["id"]

    async def dropped() -> bool:
        rows = of(sides, "postgres", f"SELECT active FROM pg_replication_slots WHERE slot_name = '{slot(stream)}'")
        if rows == [(False,)]:
            of(sides, "postgres", f"SELECT pg_drop_replication_slot('{slot(stream)}')")
        return not rows

    await eventually(dropped)
    lost = await alert_of(admin, "slot_lost")
    assert (lost["severity"], "is gone" in lost["message"]) == ("critical", True)
    thalwegd.start()
    assert (await alert_of(admin, "engine_silent", "resolved"))["resolution"] == "cleared"
    # The engine never goes on over a gap: it stops, and that is an alert, too.
    await wait_for(admin, f"{STREAMS}/{stream['id']}", status="ABORTED")
    assert "slot" in (await alert_of(admin, "component_aborted"))["message"].lower()
