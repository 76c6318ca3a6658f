"""Channels against a real HTTP receiver and a real mail server: signatures, retries, failures with their cures."""

import asyncio
import contextlib
import hashlib
import hmac
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from tests.alerts.receivers import PASSWORD, http_receiver, mail_server
from tests.support.engine_double import EngineDouble
from tests.support.real_engine import make_certificate
from tests.support.servers import free_port
from tests.support.serving import eventually
from tests.support.tls import Authority
from tests.test_collector import collector  # noqa: F401
from thalweg.kernel import networks as kernel_networks
from thalweg.kernel.context import Resources
from thalweg.kernel.networks import Networks
from thalweg.kernel.settings import Settings

CHANNELS = "/api/v1/alerts/channels"


async def made(admin: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await admin.post(CHANNELS, json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def try_out(client: httpx.AsyncClient, channel: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post(f"{CHANNELS}/{channel['id']}/test")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def mail(port: int, security: str, **more: Any) -> dict[str, Any]:
    settings = {"host": "127.0.0.1", "port": port, "security": security, "sender": "thalweg@example.org",
                "recipients": ["dba@example.org"], **more}  # fmt: skip
    return {"name": "mail", "kind": "email", "settings": settings}


async def test_webhook_is_signed_and_its_secret_stays_inside(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, resources: Resources
) -> None:
    async with http_receiver() as receiver:
        channel = await made(admin, name="hook", kind="webhook", secret="the key", settings={"url": receiver.url})
        assert (channel["has_secret"], "secret" in channel) == (True, False)
        delivery = await try_out(operator, channel)
        assert (delivery["state"], delivery["event"], delivery["error"]) == ("delivered", "test", None)
        headers, body = receiver.taken[0]
        stamp, mark = (part.partition("=")[2] for part in headers["thalweg-signature"].split(","))
        assert mark == hmac.new(b"the key", f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
        assert json.loads(body)["delivery_id"] == headers["thalweg-delivery"] == delivery["id"]
    async with resources.sessions() as session:
        stored = (await session.execute(text("SELECT secret_sealed FROM alert_channels"))).scalar_one()
        audit = str((await session.execute(text("SELECT json_agg(audit)::text FROM audit"))).scalar_one())
    assert "the key" not in stored + audit
    assert (await operator.post(CHANNELS, json={"name": "x", "kind": "log"})).status_code == 403


@pytest.mark.parametrize(
    ("status", "code", "cure"),
    [(403, "http_403", "same key"), (404, "http_404", "address"), (302, "http_302", "leads to"),
     (503, "http_503", "log")],
)  # fmt: skip
async def test_webhook_refused(admin: httpx.AsyncClient, status: int, code: str, cure: str) -> None:
    async with http_receiver() as receiver:
        receiver.answers = [status]
        channel = await made(admin, name="hook", kind="webhook", settings={"url": receiver.url})
        delivery = await try_out(admin, channel)
    assert (delivery["state"], delivery["error"]["code"]) == ("failed", code)
    assert cure in delivery["error"]["cure"]
    assert delivery["error"]["message"] == f"The receiver answered {status}."
    shown = (await admin.get(f"{CHANNELS}/{channel['id']}")).json()
    assert shown["last_delivery"]["error"]["code"] == code


async def test_webhook_keeps_to_its_networks(
    admin: httpx.AsyncClient, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection goes to the address that was compared, under the name in the URL."""
    looked_up: list[str] = []

    def answer(host: str, port: int) -> list[Any]:
        looked_up.append(host)
        return [(2, 1, 6, "", ("127.0.0.1" if len(looked_up) == 1 else "127.0.0.2", port))]

    async with http_receiver() as receiver:
        url = receiver.url.replace("127.0.0.1", "hook.invalid")
        channel = await made(admin, name="hook", kind="webhook", settings={"url": url})
        monkeypatch.setattr(kernel_networks, "look_up", answer)
        resources.settings.webhook_networks = Networks(("127.0.0.1",))
        delivery = await try_out(admin, channel)
        assert delivery["state"] == "delivered", delivery
        assert looked_up == ["hook.invalid"]
        assert receiver.taken[0][0]["host"].startswith("hook.invalid:")
        resources.settings.webhook_networks = Networks(("10.0.0.0/8",))
        refused = (await try_out(admin, channel))["error"]
        assert (refused["code"], len(receiver.taken)) == ("address_not_allowed", 1)
        assert "THALWEG_WEBHOOK_NETWORKS" in refused["cure"]


async def test_nothing_of_what_another_service_says_is_shown(admin: httpx.AsyncClient) -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 internal secret banner\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        channel = await made(admin, name="h", kind="webhook", settings={"url": f"http://127.0.0.1:{port}/"})
        delivery = await try_out(admin, channel)
    assert delivery["state"] == "failed"
    assert "banner" not in str(delivery)


async def test_viewers_do_not_see_where_webhooks_lead(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    channel = await made(admin, name="h", kind="webhook", settings={"url": "http://127.0.0.1:9/secret"})
    path = f"{CHANNELS}/{channel['id']}"
    assert "secret" in (await operator.get(path)).json()["settings"]["url"]
    for answer in (await viewer.get(path), await viewer.get(CHANNELS)):
        assert answer.status_code == 200
        assert "127.0.0.1" not in answer.text


@pytest.mark.parametrize("networks", [(), ("10.0.0.0/8",)], ids=["unreachable", "outside"])
async def test_nor_do_errors_of_deliveries_tell_viewers(
    admin: httpx.AsyncClient, viewer: httpx.AsyncClient, resources: Resources, networks: tuple[str, ...]
) -> None:
    resources.settings.webhook_networks = Networks(networks)
    url = f"http://127.0.0.1:{free_port()}/hook"
    channel = await made(admin, name="h", kind="webhook", settings={"url": url})
    assert (await try_out(admin, channel))["error"]["message"]
    paths = (f"{CHANNELS}/{channel['id']}", CHANNELS, "/api/v1/alerts/deliveries")
    for path in paths:
        answer = await viewer.get(path)
        assert answer.status_code == 200
        assert "127.0.0.1" not in answer.text and "attempts failed" not in answer.text
        assert "an operator can read it" in answer.text
        assert "an operator can read it" not in (await admin.get(path)).text
    receivers = (await viewer.get(paths[-1])).json()["items"]
    assert [item["error"]["code"] for item in receivers] == ["address_not_allowed" if networks else "unreachable"]


async def test_what_a_receiver_has_answered_is_told_to_viewers(
    admin: httpx.AsyncClient, viewer: httpx.AsyncClient
) -> None:
    async with http_receiver() as receiver:
        receiver.answers = [503]
        channel = await made(admin, name="h", kind="webhook", settings={"url": receiver.url})
        await try_out(admin, channel)
    shown = (await viewer.get(f"{CHANNELS}/{channel['id']}")).json()
    assert shown["last_delivery"]["error"]["message"] == "The receiver answered 503."


async def test_webhook_unreachable(admin: httpx.AsyncClient) -> None:
    channel = await made(admin, name="h", kind="webhook", settings={"url": f"http://127.0.0.1:{free_port()}/"})
    assert (await try_out(admin, channel))["error"]["code"] == "unreachable"


@pytest.mark.parametrize("security", ["plain", "starttls", "tls"])
async def test_mail(admin: httpx.AsyncClient, tmp_path: Path, security: str) -> None:
    certificate = None if security == "plain" else make_certificate(tmp_path)
    with mail_server(security, certificate) as mailbox:
        body = mail(mailbox.port, security)
        if certificate is not None:
            body["settings"] |= {"user": "thalweg", "ca_certificate": certificate[0].read_text()}
            body["secret"] = PASSWORD
        channel = await made(admin, **body)
        delivery = await try_out(admin, channel)
        assert delivery["state"] == "delivered", delivery
        (received,) = mailbox.mails
        assert (received["To"], received["Subject"]) == ("dba@example.org", "Thalweg: a test of this channel")
        assert "/alerts?tab=channels" in received.get_content()
        if certificate is None:
            return
        answer = await admin.patch(f"{CHANNELS}/{channel['id']}", json={"secret": "wrong"}, headers={"If-Match": "*"})
        assert answer.status_code == 200
        assert (await try_out(admin, channel))["error"]["code"] == "authentication_failed"
        untrusted = {**body["settings"], "ca_certificate": ""}
        path = f"{CHANNELS}/{channel['id']}"
        await admin.patch(path, json={"settings": untrusted, "secret": PASSWORD}, headers={"If-Match": "*"})
        failed = (await try_out(admin, channel))["error"]
        assert (failed["code"], "certificate that signed it" in failed["cure"]) == ("tls_failed", True)


async def test_mail_that_cannot_be_delivered(admin: httpx.AsyncClient) -> None:
    with mail_server("plain") as mailbox:
        channel = await made(admin, **mail(mailbox.port, "plain", recipients=["nobody@refused.example"]))
        assert (await try_out(admin, channel))["error"]["code"] == "address_refused"
        settings = mail(mailbox.port, "starttls")["settings"]
        await admin.patch(f"{CHANNELS}/{channel['id']}", json={"settings": settings}, headers={"If-Match": "*"})
        assert (await try_out(admin, channel))["error"]["code"] == "not_offered"
    assert (await try_out(admin, channel))["error"]["code"] == "unreachable"


@contextlib.asynccontextmanager
async def service(says: bytes, then: bytes = b"") -> AsyncGenerator[tuple[int, asyncio.Event], None]:
    """Sends `says`, then a byte of `then` now and then for ever. The event: no client is there (any more)."""
    deserted = asyncio.Event()
    deserted.set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        deserted.clear()
        with contextlib.suppress(OSError):
            writer.write(says)
            while not reader.at_eof():
                writer.write(then)
                await writer.drain()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1000), 0.05)
        deserted.set()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1") as server:
        yield server.sockets[0].getsockname()[1], deserted


@pytest.mark.parametrize(
    ("says", "then"), [(b"", b"2"), (b"220 hello\r\n", b"x"), (b"220 hello\r\n250-", b"x\r\n250-")]
)
@pytest.mark.parametrize("security", ["plain", "tls"])
async def test_a_mail_server_that_never_comes_to_an_end_holds_nobody(
    admin: httpx.AsyncClient, resources: Resources, security: str, says: bytes, then: bytes
) -> None:
    """The connection is ended with the try, and so is the thread that reads it."""
    resources.settings.alerts_timeout = 0.5
    async with service(says, then) as (port, deserted):
        channel = await made(admin, **mail(port, security))
        error = (await try_out(admin, channel))["error"]
        await asyncio.wait_for(deserted.wait(), 60)  # a slow machine may not even get to connect
    assert error["code"] in ({"timeout"} if security == "plain" else {"timeout", "tls_failed"}), error


async def test_a_mail_server_s_replies_have_an_end(admin: httpx.AsyncClient, resources: Resources) -> None:
    resources.settings.alerts_timeout = 60
    async with service(b"220-and more\r\n" * 10_000) as (port, _):
        error = (await try_out(admin, await made(admin, **mail(port, "plain"))))["error"]
    assert "do not end" in error["message"]


async def test_nothing_of_what_a_service_says_that_is_no_mail_server_is_shown(admin: httpx.AsyncClient) -> None:
    async with service(b"-ERR internal secret banner\r\n") as (port, _):
        error = (await try_out(admin, await made(admin, **mail(port, "plain"))))["error"]
    assert (error["code"], "banner" in str(error)) == ("unreachable", False)


async def test_mail_keeps_to_its_networks(
    admin: httpx.AsyncClient, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address that was compared is the one that is connected to. Without a list of its own, the webhooks'."""
    looked_up: list[str] = []

    def answer(host: str, port: int) -> list[Any]:
        looked_up.append(host)
        return [(2, 1, 6, "", ("127.0.0.1" if len(looked_up) == 1 else "192.0.2.1", port))]

    with mail_server("plain") as mailbox:
        channel = await made(admin, **mail(mailbox.port, "plain", host="mail.invalid"))
        monkeypatch.setattr(kernel_networks, "look_up", answer)
        resources.settings.webhook_networks = Networks(("127.0.0.1",))
        assert (await try_out(admin, channel))["state"] == "delivered"
        assert (looked_up, len(mailbox.mails)) == (["mail.invalid"], 1)
        refused = (await try_out(admin, channel))["error"]
        assert (refused["code"], "THALWEG_MAIL_NETWORKS" in refused["cure"]) == ("address_not_allowed", True)
        resources.settings.mail_networks = Networks(("127.0.0.0/8",))
        looked_up.clear()
        assert (await try_out(admin, channel))["state"] == "delivered"


async def changed(admin: httpx.AsyncClient, channel: dict[str, Any], **body: Any) -> list[str]:
    """The fields that the refusal names; empty: the change was accepted."""
    answer = await admin.patch(f"{CHANNELS}/{channel['id']}", json=body, headers={"If-Match": "*"})
    if answer.status_code == 200:
        return []
    assert (answer.status_code, answer.json()["code"]) == (422, "password_required"), answer.text
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/secret"
    return error["message"].removeprefix("Required, because of: ").removesuffix(".").split(", ")


async def test_a_mail_password_stays_at_its_place(admin: httpx.AsyncClient) -> None:
    body = mail(587, "starttls", host="mail.example.org", user="thalweg")
    channel = await made(admin, **body, secret=PASSWORD)
    for change, named in (
        ({"host": "mail.example.net"}, ["host"]),
        ({"port": 588, "user": "other"}, ["port", "user"]),
        ({"security": "plain", "host": "localhost"}, ["host", "security"]),
        ({"ca_certificate": Authority().certificate}, ["ca_certificate"]),
        ({"recipients": ["other@example.org"], "security": "tls"}, []),
        ({"security": "starttls"}, []),
    ):
        assert await changed(admin, channel, settings={**body["settings"], **change}) == named, change
    moved = {**body["settings"], "host": "mail.example.net"}
    assert await changed(admin, channel, settings=moved, secret="anew") == []
    assert await changed(admin, channel, settings=body["settings"], secret="") == []
    assert await changed(admin, channel, settings=moved) == []


async def test_a_webhook_s_key_stays_at_its_place(admin: httpx.AsyncClient) -> None:
    url = "https://hooks.example.org/a"
    channel = await made(admin, name="h", kind="webhook", secret="the key", settings={"url": url})
    for other, named in (
        ("https://hooks.example.net/a", ["host"]),
        ("https://hooks.example.org:444/a", ["port"]),
        ("http://hooks.example.org:443/a", ["scheme"]),
        ("https://HOOKS.example.org:443/b", []),
    ):
        assert await changed(admin, channel, settings={"url": other}) == named, other


async def test_settings_are_checked(admin: httpx.AsyncClient) -> None:
    for settings in ({"url": "http://user:pass@host/"}, {"url": "ftp://host/"}, {"url": "http://"}):
        answer = await admin.post(CHANNELS, json={"name": "h", "kind": "webhook", "settings": settings})
        assert answer.status_code == 422, answer.text
    far = {**mail(25, "plain")["settings"], "host": "mail.example.org", "user": "u"}
    assert (await admin.post(CHANNELS, json={**mail(25, "plain"), "settings": far})).status_code == 422
    channel = await made(admin, name="log", kind="log")
    answer = await admin.patch(
        f"{CHANNELS}/{channel['id']}", json={"settings": {"url": "x"}}, headers={"If-Match": "*"}
    )
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/settings/url")


@pytest.fixture
def quick(app: FastAPI, settings: Settings) -> None:
    settings.alerts_interval = settings.alerts_retry_after = 0.05


async def test_a_channel_that_hangs_delays_no_other(
    admin: httpx.AsyncClient,
    quick: None,
    settings: Settings,
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    settings.alerts_timeout = 300
    async with service(b"") as (port, _), http_receiver() as receiver:
        await made(admin, name="hangs", kind="webhook", settings={"url": f"http://127.0.0.1:{port}/"})
        await made(admin, name="hook", kind="webhook", settings={"url": receiver.url})
        for count in (1, 2):
            await admin.post("/api/v1/tokens", json={"name": f"ci {count}", "role": "viewer", "expires_in_days": 3})

            async def arrived(wanted: int = count) -> bool:
                return len(receiver.taken) == wanted

            await eventually(arrived)
        items = (await admin.get("/api/v1/alerts/deliveries")).json()["items"]
    assert {item["state"] for item in items if item["channel_name"] == "hangs"} == {"pending"}


async def test_notices_are_tried_again_until_they_arrive_and_the_end_is_told_after_the_beginning(
    admin: httpx.AsyncClient,
    quick: None,
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    """By a token that ends soon: an alert without any engine."""
    async with http_receiver() as receiver:
        receiver.answers = [500, 503]
        await made(admin, name="hook", kind="webhook", settings={"url": receiver.url})
        await made(admin, name="urgent", kind="webhook", settings={"url": receiver.url}, min_severity="critical")
        token = await admin.post("/api/v1/tokens", json={"name": "ci", "role": "viewer", "expires_in_days": 3})

        async def delivered() -> list[dict[str, Any]]:
            items = (await admin.get("/api/v1/alerts/deliveries")).json()["items"]
            return [item for item in items if item["state"] == "delivered"]

        (first,) = await eventually(delivered)
        assert (first["tries"], first["event"], first["title"]) == (
            3, "firing", "An API token expires: “ci” of admin"
        )  # fmt: skip
        counts = (await admin.get("/api/v1/alerts/counts")).json()
        assert counts.pop("evaluated_at") is not None
        assert counts == {"firing": 1, "critical": 0, "unacknowledged": 1, "pending": 0, "outdated": None}
        assert (await admin.delete(f"/api/v1/tokens/{token.json()['token']['id']}")).status_code == 204

        async def both() -> bool:
            return len(await delivered()) == 2

        await eventually(both)
    bodies = [json.loads(body) for _, body in receiver.taken]
    assert [body["event"] for body in bodies] == ["firing"] * 3 + ["resolved"]
    assert len({body["delivery_id"] for body in bodies[:3]}) == 1, "a receiver can tell repetitions"
    assert bodies[-1]["alert"]["resolved_at"] is not None
    assert bodies[0]["url"].endswith("/settings?tab=tokens")
