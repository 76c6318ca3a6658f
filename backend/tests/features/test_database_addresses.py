"""Where databases may be, and the ways to say where one is."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Sides
from tests.features.test_databases import PATH, try_settings
from tests.support.servers import free_port
from thalweg.db.models import DatabaseRow
from thalweg.kernel import networks as kernel_networks
from thalweg.kernel.context import Resources
from thalweg.kernel.hosts import Server, servers_of
from thalweg.kernel.networks import Networks, parse_networks


def networks(text: str) -> Networks:
    parsed = parse_networks(text)
    assert isinstance(parsed, Networks)
    return parsed


def test_ranges() -> None:
    some = networks("10.0.0.0/8, 192.0.2.7 fd00::/8")
    assert all(some.allow(address) for address in ("10.255.0.1", "192.0.2.7", "fd00::1", "::ffff:10.0.0.1"))
    assert not any(some.allow(address) for address in ("11.0.0.1", "192.0.2.8", "::1", "::ffff:127.0.0.1"))
    assert not some.allow_local
    assert networks("local").allow_local
    assert networks("local").allow("203.0.113.1")
    for nonsense in ("10.0.0.1/8", "10.0.0.0/33", "example.com"):
        with pytest.raises(ValueError):
            networks(nonsense)


def test_hosts() -> None:
    assert servers_of("a, b:5433,[::1]:1,[::2],::3", 5) == [
        Server("a", 5), Server("b", 5433), Server("::1", 1), Server("::2", 5), Server("::3", 5),
    ]  # fmt: skip
    for nonsense in ("", "a,", "a:0", "a:x", "[::1", "[a]", "a b", ",".join("a" * 9)):
        with pytest.raises(ValueError):
            servers_of(nonsense, 5432)


async def test_addresses_outside_are_refused(operator: httpx.AsyncClient, sides: Sides, resources: Resources) -> None:
    resources.settings.database_networks = networks("10.0.0.0/8")
    result = await try_settings(operator, sides.source)
    assert (result["code"], result["reachable"]) == ("address_not_allowed", False)
    assert "127.0.0.1" in result["message"]
    assert "THALWEG_DATABASE_NETWORKS" in result["cure"]
    several = await try_settings(operator, sides.source, host="10.0.0.1,127.0.0.1")
    assert several["code"] == "address_not_allowed"
    resources.settings.database_networks = networks("127.0.0.0/8")
    assert (await try_settings(operator, sides.source))["code"] is None


async def test_what_was_compared_is_what_is_connected_to(
    operator: httpx.AsyncClient, sides: Sides, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that leads elsewhere at its second answer."""
    resources.settings.database_networks = networks("127.0.0.1")
    answers: list[str] = []

    def answer(host: str, port: int) -> list[Any]:
        answers.append(host)
        answers_of = "127.0.0.1" if len(answers) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers_of, port))]

    monkeypatch.setattr(kernel_networks, "look_up", answer)
    result = await try_settings(operator, sides.source, host="changes.invalid")
    assert result["code"] is None
    assert answers == ["changes.invalid"]


@pytest.mark.parametrize("host", ["/var/run/postgresql", "/etc/passwd", "@socket"])
async def test_local_sockets_need_the_administrators_word(
    operator: httpx.AsyncClient, sides: Sides, resources: Resources, host: str
) -> None:
    assert (await try_settings(operator, sides.source, host=host))["code"] == "address_not_allowed"
    resources.settings.database_networks = networks("local")
    answer = await try_settings(operator, sides.source, host=str(sides.cluster.directory))
    assert answer["code"] == "authentication_failed"  # reached: pg_hba.conf has no line for it


async def test_first_host_that_answers_is_used(operator: httpx.AsyncClient, sides: Sides) -> None:
    hosts = f"127.0.0.1:{free_port()},127.0.0.1:{sides.source['port']}"
    assert (await try_settings(operator, sides.source, host=hosts))["code"] is None
    primary = await try_settings(operator, sides.source, host=hosts, options={"target_session_attrs": "primary"})
    assert primary["code"] is None
    standby = await try_settings(operator, sides.source, host=hosts, options={"target_session_attrs": "standby"})
    assert standby["code"] is not None


async def test_users_connect_timeout_is_shorter_or_nothing(operator: httpx.AsyncClient, resources: Resources) -> None:
    resources.settings.database_connect_timeout = 1
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        body = {
            "host": "127.0.0.1", "port": deaf.getsockname()[1], "dbname": "x", "user": "x",
            "options": {"connect_timeout": "600"},
        }  # fmt: skip
        result = await asyncio.wait_for(try_settings(operator, body), 60)
    assert result["code"] == "database_unreachable"


async def test_uri_is_taken_apart(operator: httpx.AsyncClient, sides: Sides) -> None:
    source = sides.source
    uri = (
        f"postgresql://{source['user']}:{source['password'].replace(' ', '%20')}@127.0.0.1:{source['port']}"
        f"/{source['dbname']}?sslmode=prefer&target_session_attrs=any"
    )
    made = await operator.post(PATH, json={"name": "by uri", "uri": uri})
    assert made.status_code == 201, made.text
    shown = made.json()
    assert (shown["host"], shown["port"], shown["dbname"]) == ("127.0.0.1", source["port"], source["dbname"])
    assert shown["options"] == {"target_session_attrs": "any"}
    assert shown["has_password"]
    assert source["password"] not in made.text
    assert (await operator.post(f"{PATH}/{shown['id']}/test")).json()["code"] is None
    several = await operator.post(
        PATH, json={"name": "several", "uri": "postgres://u@a:1,[::1]:2/d?target_session_attrs=read-write"}
    )
    assert (several.json()["host"], several.json()["port"]) == ("a:1,[::1]:2", 1)
    default = await operator.post(PATH, json={"name": "default", "uri": "postgres://u@a,b:61431/d"})
    assert (default.json()["host"], default.json()["port"]) == ("a:5432,b:61431", 5432), default.text


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("http://x", "postgresql://"), ("postgresql://u:secret@h:x/d", "port"), ("postgresql://h/%zz", "URI"),
        ("postgresql://u@h/d?sslkey=/x", "PEM"), ("postgresql://u@h/d?passfile=/x", "passfile"),
        ("postgresql://u@h/d?options=-c%20geqo=off", "may be set: options"), ("postgresql://u:a/b?secret=1@h/d", "URI"),
        ("postgresql://h", "missing"),
    ],
)  # fmt: skip
async def test_uri_that_cannot_be_taken(operator: httpx.AsyncClient, uri: str, told: str) -> None:
    answer = await operator.post(PATH, json={"name": "x", "uri": uri})
    assert answer.status_code == 422
    assert told in answer.text
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("a:1,127.0.0.1:2", "a:1,127.0.0.1:2/d"), ("a,b:2", "a:5432,b:2/d"), ("a", "a:5432/d"),
        ("[::1]:1,[::2]", "[::1]:1,[::2]:5432/d"),
    ],
)  # fmt: skip
def test_each_server_is_shown_with_its_own_port(host: str, shown: str) -> None:
    assert DatabaseRow(host=host, port=5432, dbname="d").address == shown


async def test_services_come_from_the_administrators_file_only(
    operator: httpx.AsyncClient, sides: Sides, resources: Resources, tmp_path: Path
) -> None:
    body = {"name": "served", "service": "shop", "password": sides.source["password"]}
    refused = await operator.post(PATH, json=body)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/service")
    file = tmp_path / "pg_service.conf"
    source = sides.source
    file.write_text(
        f"[shop]\nhost=127.0.0.1\nport={source['port']}\ndbname={source['dbname']}\nuser={source['user']}\n"
    )
    resources.settings.database_service_file = file
    made = await operator.post(PATH, json=body)
    assert made.status_code == 201, made.text
    assert (await operator.post(f"{PATH}/{made.json()['id']}/test")).json()["code"] is None
    unknown = await operator.post(PATH, json={**body, "name": "y", "service": "other"})
    assert "no service other" in unknown.text


@pytest.mark.parametrize(
    "elsewhere",
    [{"host": "127.0.0.2"}, {"port": 1}, {"dbname": "postgres"}, {"user": "postgres"}, {"sslmode": "disable"},
     {"options": {"channel_binding": "disable"}}, {"uri": "postgresql://127.0.0.2"}],
    ids=lambda fields: next(iter(fields)),
)  # fmt: skip
async def test_a_services_password_goes_only_where_the_service_says(
    operator: httpx.AsyncClient, sides: Sides, resources: Resources, tmp_path: Path, elsewhere: dict[str, Any]
) -> None:
    file, source = tmp_path / "pg_service.conf", sides.source
    lines = {name: source[name] for name in ("host", "port", "dbname", "user", "password")}
    file.write_text("[prod]\n" + "".join(f"{name}={value}\n" for name, value in lines.items()))
    resources.settings.database_service_file = file
    assert (await try_settings(operator, {"service": "prod", **lines}))["code"] is None
    for path, body in (("/api/v1/databases:test", {}), (PATH, {"name": "elsewhere"})):
        answer = await operator.post(path, json={**body, "service": "prod", **elsewhere})
        assert (answer.status_code, answer.json()["code"]) == (422, "password_required"), answer.text
        assert source["password"] not in answer.text
    mine = await try_settings(operator, {"service": "prod", "host": "127.0.0.1", "port": 1, "password": "mine"})
    assert mine["code"] == "database_unreachable"
    assert (await try_settings(operator, {"service": "prod", "sslmode": "prefer"}))["code"] is None
