"""Streams over two engines: placed, described to both, observed as one, dropped in order."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from sqlalchemy import text

from tests.conftest import Users
from tests.features.test_streams import STREAMS, body_of, created
from tests.support.engine_double import TOKEN, EngineDouble, example
from tests.support.servers import free_port
from tests.support.serving import eventually, serve
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_commands import shell, with_token  # noqa: F401
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.kernel.certificates import RequestRefused, make_authority, sign_request
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources

ENGINES = "/api/v1/engines"
Running = Any


@dataclass
class Enrolled:
    double: EngineDouble
    id: str

    @property
    def path(self) -> str:
        return f"{ENGINES}/{self.id}"

    def told(self, stream_id: str) -> dict[str, Any]:
        """The stream as the last desired document has it."""
        return next(stream for stream in self.double.desired["streams"] if stream["id"] == stream_id)


async def enrol(admin: httpx.AsyncClient, double: EngineDouble, name: str, url: str) -> Enrolled:
    token = (await admin.post(f"{ENGINES}/enrolments", json={})).json()["token"]
    body = {"token": token, "name": name, "url": url, "control_token": TOKEN}
    answer = await admin.post(f"{ENGINES}/enrol", json=body)
    assert answer.status_code == 201, answer.text
    return Enrolled(double, answer.json()["id"])


@pytest.fixture
async def pair(admin: httpx.AsyncClient) -> AsyncGenerator[tuple[Enrolled, Enrolled], None]:
    """Alpha, beside the source, and bravo, which listens for propagations."""
    alpha, bravo = EngineDouble(), EngineDouble()
    bravo.listen = "10.0.0.2:8644"
    async with serve(alpha.app()) as first, serve(bravo.app()) as second:
        yield await enrol(admin, alpha, "alpha", first), await enrol(admin, bravo, "bravo", second)


def over(pair: tuple[Enrolled, Enrolled]) -> dict[str, str]:
    return {"capture_engine_id": pair[0].id, "applies": pair[1].id}


# --- identities


async def test_enrolment_gives_an_identity(
    viewer: httpx.AsyncClient, pair: tuple[Enrolled, Enrolled], resources: Resources
) -> None:
    for enrolled in pair:
        given = enrolled.double.identities[-1]
        certificate = x509.load_pem_x509_certificate(given.certificate.encode())
        authority = x509.load_pem_x509_certificate(given.ca.encode())
        certificate.verify_directly_issued_by(authority)
        extensions = certificate.extensions
        name = f"engine-{enrolled.id}"
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert list(names) == [x509.DNSName(name)]
        assert extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
        assert set(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == {
            ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH,
        }  # fmt: skip
        assert timedelta(days=89) < certificate.not_valid_after_utc - now() <= timedelta(days=90)
        assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is True
        shown = (await viewer.get(enrolled.path)).json()
        assert (shown["identity"]["name"], shown["identity"]["listen"]) == (name, enrolled.double.listen)
        assert len(shown["identity"]["fingerprint"]) == 64
    assert pair[0].double.identities[-1].ca == pair[1].double.identities[-1].ca
    async with resources.sessions() as session:
        stored = (await session.execute(text("SELECT certificate, key_sealed FROM authority"))).one()
    assert stored.certificate == pair[0].double.identities[-1].ca
    assert "PRIVATE KEY" not in stored.key_sealed
    assert "PRIVATE KEY" in resources.secrets.open(stored.key_sealed)


async def test_identity_is_renewed_in_its_last_third(
    viewer: httpx.AsyncClient,
    pair: tuple[Enrolled, Enrolled],
    collector: Running,  # noqa: F811
) -> None:
    alpha, bravo = pair
    await wait_for(viewer, alpha.path, state="ONLINE")
    alpha.double.identities[-1].not_after = now() + timedelta(days=29)
    bravo.double.identities[-1].not_after = now() + timedelta(days=31)

    async def renewed() -> bool:
        return len(alpha.double.identities) == 2

    await eventually(renewed)
    assert alpha.double.identities[0].ca == alpha.double.identities[1].ca
    assert alpha.double.identities[0].certificate != alpha.double.identities[1].certificate
    assert len(bravo.double.identities) == 1


async def test_engine_without_identities_enrols(
    admin: httpx.AsyncClient, registered: dict[str, str], pair: tuple[Enrolled, Enrolled]
) -> None:
    older = EngineDouble()
    older.knows_identities = False
    async with serve(older.app()) as url:
        charlie = await enrol(admin, older, "charlie", url)
        shown = (await admin.get(charlie.path)).json()
        assert (shown["state"], shown["identity"], shown["propagation_address"]) == ("ONLINE", None, None)
        body = body_of(registered, capture_engine_id=pair[0].id, applies=charlie.id)
        refused = (await admin.post(STREAMS, json=body)).json()
        assert (refused["errors"][0]["pointer"], refused["errors"][0]["code"]) == (
            "/destinations/0/engine_id", "identity_missing",
        )  # fmt: skip
        await created(admin, registered, capture_engine_id=charlie.id)


def test_request_for_anything_else_is_not_signed() -> None:
    from cryptography.hazmat.primitives import hashes, serialization

    authority, key = make_authority(now())

    def request(names: list[str], curve: ec.EllipticCurve) -> str:
        builder = x509.CertificateSigningRequestBuilder(x509.Name([]))
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), critical=False)
        signed = builder.sign(ec.generate_private_key(curve), hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM).decode()

    good = request(["engine-a"], ec.SECP256R1())
    assert "BEGIN CERTIFICATE" in sign_request(good, "engine-a", authority, key, now())
    for wrong in (
        request(["engine-b"], ec.SECP256R1()),
        request(["engine-a", "engine-b"], ec.SECP256R1()),
        request(["engine-a"], ec.SECP384R1()),
        "nothing",
    ):
        with pytest.raises(RequestRefused):
            sign_request(wrong, "engine-a", authority, key, now())


# --- the address


async def test_address_can_be_set(
    admin: httpx.AsyncClient, operator: httpx.AsyncClient, pair: tuple[Enrolled, Enrolled]
) -> None:
    bravo = (await admin.get(pair[1].path)).json()
    assert (bravo["propagation_address"], bravo["propagation_address_set"]) == ("10.0.0.2:8644", False)
    headers = {"If-Match": bravo["etag"]}
    body = {"propagation_address": "bravo.example:9000"}
    assert (await operator.patch(pair[1].path, json=body, headers=headers)).status_code == 403
    for wrong in ("bravo", "bravo:0", "bravo:65536", "bravo:1 x", "a b:1"):
        answer = await admin.patch(pair[1].path, json={"propagation_address": wrong}, headers=headers)
        assert answer.status_code == 422, wrong
    changed = (await admin.patch(pair[1].path, json=body, headers=headers)).json()
    assert (changed["propagation_address"], changed["propagation_address_set"]) == ("bravo.example:9000", True)
    assert (await admin.patch(pair[1].path, json=body, headers=headers)).status_code == 412
    back = await admin.patch(pair[1].path, json={"propagation_address": None}, headers={"If-Match": "*"})
    assert back.json()["propagation_address"] == "10.0.0.2:8644"


async def test_apply_engine_must_be_reachable(
    operator: httpx.AsyncClient, registered: dict[str, str], pair: tuple[Enrolled, Enrolled]
) -> None:
    back = {"capture_engine_id": pair[1].id, "applies": pair[0].id}
    refused = (await operator.post(STREAMS, json=body_of(registered, **back))).json()
    assert (refused["code"], refused["errors"][0]["code"]) == ("invalid_request", "propagation_address_missing")
    assert "--propagation-listen" in refused["cure"]


# --- the stream


async def test_both_engines_get_the_contract_s_shapes(
    operator: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    pair: tuple[Enrolled, Enrolled],
    collector: Running,  # noqa: F811
) -> None:
    alpha, bravo = pair
    stream = await created(operator, registered, parameters={"parallelism": 2}, **over(pair))
    await wait_for(operator, f"{STREAMS}/{stream['id']}", phase="REPLICATING")
    pattern = example("desired.paths")
    for enrolled, name in ((alpha, "sending"), (bravo, "receiving")):
        told, shape = enrolled.told(stream["id"]), pattern[name]["streams"][0]
        assert set(enrolled.double.desired) == set(pattern[name])
        assert set(told) == set(shape) | {"parameters"}
        assert [set(destination) for destination in told["destinations"]] == [
            set(destination) for destination in shape["destinations"]
        ]
        for part in {"source", "receive_from"} & set(shape):
            assert set(told[part]) == set(shape[part])
    (sent,), (received,) = (enrolled.told(stream["id"])["destinations"] for enrolled in pair)
    assert sent["send_to"] == {"engine": f"engine-{bravo.id}", "host": "10.0.0.2", "port": 8644}
    assert (sent["id"], sent["backlog"], received["backlog"]) == (received["id"], False, False)
    assert bravo.told(stream["id"])["receive_from"] == {"engine": f"engine-{alpha.id}"}
    # A new address reaches the engine that sends.
    body = {"propagation_address": "[fd00::2]:9000"}
    assert (await admin.patch(bravo.path, json=body, headers={"If-Match": "*"})).status_code == 200

    async def told() -> bool:
        send_to = alpha.told(stream["id"])["destinations"][0]["send_to"]
        return (send_to["host"], send_to["port"]) == ("fd00::2", 9000)

    await eventually(told)


async def test_one_engine_in_both_places_is_combined(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    pair: tuple[Enrolled, Enrolled],
    collector: Running,  # noqa: F811
) -> None:
    engine_id = pair[0].id
    stream = await created(operator, registered, applies=engine_id)
    running = await wait_for(operator, f"{STREAMS}/{stream['id']}", phase="REPLICATING")
    assert (running["mode"], running["reports"], running["capture_engine"]["id"]) == ("combined", [], engine_id)
    assert set(pair[0].told(stream["id"])) == set(example("desired")["streams"][0])
    assert pair[1].double.desired["streams"] == []


async def test_reports_of_two_engines_are_one_stream(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    pair: tuple[Enrolled, Enrolled],
    collector: Running,  # noqa: F811
) -> None:
    alpha, bravo = pair
    # Beyond the real source's end, whose own word counts, too.
    alpha.double.positions = {"captured": "FF/90", "applied": "FF/70", "confirmed": "FF/60", "source_end": "FF/A0"}
    bravo.double.positions = {"captured": "FF/80", "applied": "FF/50", "confirmed": "FF/40", "source_end": "FF/88"}
    stream = await created(operator, registered, **over(pair))
    path = f"{STREAMS}/{stream['id']}"
    running = await wait_for(operator, path, phase="REPLICATING")
    assert running["mode"] == "propagation"
    assert (running["capture_engine"]["name"], running["destinations"][0]["engine"]["name"]) == ("alpha", "bravo")
    assert running["positions"] == {
        "captured": "FF/90", "applied": "FF/50", "confirmed": "FF/60", "source_end": "FF/A0",
    }  # fmt: skip
    assert [(report["destination_id"], report["engine"]["name"], report["phase"]) for report in running["reports"]] == [
        (None, "alpha", "REPLICATING"), ("warehouse", "bravo", "REPLICATING"),
    ]  # fmt: skip

    async def joined() -> dict[str, Any] | None:
        samples = (await operator.get(f"{path}/samples")).json()["samples"]
        whole = [sample for sample in samples if len(sample["components"]) == 8]
        return dict(whole[-1]) if whole and whole[-1]["lcrs_per_second"] is not None else None

    sample = await eventually(joined)
    assert [(part["id"], part["engine_id"] == alpha.id) for part in sample["components"]] == [
        ("capture", True), ("queue", True), ("warehouse:sender", True), ("warehouse:receiver", False),
        ("warehouse:apply-queue", False), ("warehouse:reader", False), ("warehouse:coordinator", False),
        ("warehouse:server-1", False),
    ]  # fmt: skip
    assert sample["lag"]["bytes"] == 0x30, "as the sender knows it"
    topology = (await operator.get("/api/v1/topology")).json()
    chain = {edge["source"]: edge for edge in topology["edges"]}
    kinds = {node["id"]: (node["kind"], node["engine"]) for node in topology["nodes"]}
    at, seen = f"database:{registered['source']}", []
    while at in chain:
        at = chain[at]["target"]
        seen.append(kinds[at])
    assert seen == [
        ("CAPTURE", "alpha"), ("QUEUE", "alpha"), ("PROPAGATION SENDER", "alpha"),
        ("PROPAGATION RECEIVER", "bravo"), ("QUEUE", "bravo"), ("APPLY", "bravo"), ("DATABASE", None),
    ]  # fmt: skip
    assert [edge["kind"] for edge in topology["edges"]] == ["WAL", "LCR", "LCR", "PROPAGATION", "LCR", "LCR", "SQL"]


async def test_trouble_names_its_engine_and_retry_goes_there(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    pair: tuple[Enrolled, Enrolled],
    collector: Running,  # noqa: F811
) -> None:
    alpha, bravo = pair
    stream = await created(operator, registered, **over(pair))
    path = f"{STREAMS}/{stream['id']}"
    await wait_for(operator, path, phase="REPLICATING")
    error = example("status")["streams"][1]["error"]
    bravo.double.destinations["warehouse"] = {"status": "ABORTED", "phase": "STOPPED", "error": error}
    aborted = await wait_for(operator, path, status="ABORTED")
    assert aborted["error"]["message"].startswith("bravo, which receives: public.notes")
    assert "bravo, which receives: public.notes" in aborted["health"]["reason"]
    assert aborted["destinations"][0]["error"] == aborted["error"]
    retry = (await operator.post(f"{path}:retry")).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{retry}", state="succeeded")
    assert (alpha.double.retried, bravo.double.retried) == ([], [f"{stream['id']}/warehouse"])
    alpha.double.status, alpha.double.phase, alpha.double.error = "ABORTED", "STOPPED", error
    aborted = await wait_for(operator, path, status="ABORTED")
    assert aborted["error"]["message"].startswith("alpha, which sends: public.notes")
    assert [report["status"] for report in aborted["reports"]] == ["ABORTED", "ENABLED"]
    retry = (await operator.post(f"{path}:retry")).json()["operation_id"]
    await wait_for(operator, f"/api/v1/operations/{retry}", state="succeeded")
    assert alpha.double.retried == [f"{stream['id']}/warehouse"]


async def test_a_sender_that_waits_for_the_copy_is_no_trouble(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    pair: tuple[Enrolled, Enrolled],
    collector: Running,  # noqa: F811
) -> None:
    alpha, bravo = pair
    refused = {**example("status")["streams"][1]["error"], "code": ErrorCode.LINK_REFUSED, "class": "transient"}
    alpha.double.destinations["warehouse"] = {"phase": "RETRYING", "error": refused}
    bravo.double.phase, bravo.double.copy_finished = "INSTANTIATING", False
    stream = await created(operator, registered, **over(pair))
    copying = await wait_for(operator, f"{STREAMS}/{stream['id']}", phase="INSTANTIATING")
    assert (copying["error"], copying["health"]["level"]) == (None, "ok")
    bravo.double.phase, bravo.double.copy_finished = "REPLICATING", True
    retrying = await wait_for(operator, f"{STREAMS}/{stream['id']}", phase="RETRYING")
    assert retrying["error"]["code"] == ErrorCode.LINK_REFUSED


async def test_stop_start_and_delete_in_order(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    pair: tuple[Enrolled, Enrolled],
    collector: Running,  # noqa: F811
) -> None:
    alpha, bravo = pair
    stream = await created(operator, registered, **over(pair))
    path = f"{STREAMS}/{stream['id']}"
    await wait_for(operator, path, phase="REPLICATING")
    for action, status in (("stop", "DISABLED"), ("start", "ENABLED")):
        operation = (await operator.post(f"{path}:{action}")).json()["operation_id"]
        await wait_for(operator, f"/api/v1/operations/{operation}", state="succeeded")
        assert [enrolled.told(stream["id"])["status"] for enrolled in pair] == [status, status]
        assert (await operator.get(path)).json()["status"] == status
    alpha.double.drop_hangs, alpha.double.error = True, example("status")["streams"][1]["error"]
    deletion = (await operator.delete(path)).json()["operation_id"]

    async def held_up() -> bool:
        shown = (await operator.get(path)).json()
        return shown["phase"] == "DROPPING" and shown["error"] is not None

    await eventually(held_up)
    assert bravo.told(stream["id"])["status"] == "DISABLED"
    assert (await operator.get(f"/api/v1/operations/{deletion}")).json()["state"] != "succeeded"
    alpha.double.drop_hangs = False
    await wait_for(operator, f"/api/v1/operations/{deletion}", state="succeeded")
    assert (await operator.get(path)).status_code == 404

    async def forgotten() -> bool:
        return alpha.double.desired["streams"] == bravo.double.desired["streams"] == []

    await eventually(forgotten)
    of_bravo = [item for document in bravo.double.documents for item in document["streams"]]
    assert [item["status"] for item in of_bravo if item["status"] == "DROPPED"]


async def test_capture_engine_that_is_lost_can_be_given_up(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    settings: Any,
    collector: Running,  # noqa: F811
) -> None:
    settings.engine_lost_after = 0.3
    alpha, bravo = EngineDouble(), EngineDouble()
    bravo.listen = "10.0.0.2:8644"
    async with serve(bravo.app()) as second:
        port = free_port()  # one that the kernel had chosen could be somebody else's when it comes back
        async with serve(alpha.app(), port) as first:
            pair = await enrol(admin, alpha, "alpha", first), await enrol(admin, bravo, "bravo", second)
            stream = await created(admin, registered, **over(pair))
            path = f"{STREAMS}/{stream['id']}"
            await wait_for(admin, path, phase="REPLICATING")
        await wait_for(admin, pair[0].path, state="UNREACHABLE")
        lost = (await admin.get(path)).json()
        assert (lost["health"]["level"], "alpha" in lost["health"]["reason"]) == ("unknown", True)
        forced = (await admin.delete(path, params={"force": True})).json()["operation_id"]
        await wait_for(admin, f"/api/v1/operations/{forced}", state="succeeded")
        assert (await admin.get(path)).status_code == 404
        # It is told when it comes back: until then it has its share on its disk.
        async with serve(alpha.app(), port):

            async def dropped() -> bool:
                return any(
                    item["status"] == "DROPPED" and item["force"] and "send_to" in item["destinations"][0]
                    for document in alpha.documents
                    for item in document["streams"]
                )

            await eventually(dropped)

            async def forgotten() -> bool:
                return alpha.desired["streams"] == []

            await eventually(forgotten)


async def test_command_line_places_a_stream(
    operator: httpx.AsyncClient,
    users: Users,
    registered: dict[str, str],
    pair: tuple[Enrolled, Enrolled],
    shell: Any,  # noqa: F811
) -> None:
    run = with_token(shell, users)
    choice = ["--source", "shop", "--include", "public.*"]
    refused = await run("streams", "create", "s", *choice, "--engine", "bravo", "--to", "warehouse@alpha")
    assert (refused.code, "--propagation-listen" in refused.err) == (1, True)
    made = await run("streams", "create", "s", *choice, "--engine", "alpha", "--to", "warehouse@bravo")
    assert made.code == 0, made.err
    shown = " ".join((await run("streams", "show", "s")).out.split())
    assert "alpha (captures, sends) and bravo (receives, applies)" in shown
    (stream,) = (await operator.get(STREAMS)).json()["items"]
    assert (stream["capture_engine"]["id"], stream["destinations"][0]["engine"]["id"]) == (pair[0].id, pair[1].id)
