"""The command line as a process of its own, over a real connection: tests/support/command_server.py."""

import asyncio
import json
import os
import pty
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI
from typer.testing import CliRunner

from tests.conftest import PASSWORD, Sides, Users
from tests.features.test_streams import STREAMS, created
from tests.features.test_table_troubles import trouble, until
from tests.support.authenticator import Authenticator, browser_of
from tests.support.engine_double import EngineDouble, example
from tests.support.servers import free_port
from tests.support.serving import serve, without_lifespan
from tests.test_collector import collector  # noqa: F401
from thalweg.cli import admin
from thalweg.cli.output import output_first
from thalweg.kernel.principal import Role
from thalweg.kernel.settings import Settings

BACKEND = Path(__file__).resolve().parents[1]


@dataclass
class Answer:
    code: int
    out: str
    err: str


@dataclass
class Shell:
    environment: dict[str, str]

    async def __call__(self, *arguments: str, stdin: str = "") -> Answer:
        """Without a terminal: a password is then asked for at standard input."""
        process = await asyncio.create_subprocess_exec(
            "thalweg", *arguments, env=self.environment, cwd=BACKEND,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        out, err = await process.communicate(stdin.encode())
        return Answer(process.returncode or 0, out.decode(), err.decode())

    async def at_terminal(self, *arguments: str, typed: str) -> Answer:
        """Standard input is a terminal: questions are asked."""
        ours, its = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            "thalweg", *arguments, env=self.environment, cwd=BACKEND,
            stdin=its, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        os.close(its)
        os.write(ours, typed.encode())
        out, err = await process.communicate()
        os.close(ours)
        return Answer(process.returncode or 0, out.decode(), err.decode())

    async def to_terminal(self, *arguments: str) -> str:
        """Standard output is a terminal."""
        ours, its = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            "thalweg", *arguments, env=self.environment, cwd=BACKEND, stdout=its
        )
        await process.wait()
        out = os.read(ours, 65536)
        for descriptor in (ours, its):
            os.close(descriptor)
        return out.decode()

    async def admin(self, *arguments: str, stdin: str = "") -> Answer:
        """In this process, in a thread: it imports the whole control plane, which takes a process long."""

        def invoke() -> Answer:
            settings = {name: value for name, value in self.environment.items() if name.startswith("THALWEG_")}
            result = CliRunner().invoke(admin.commands, output_first([*arguments]), input=stdin, env=settings)
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            return Answer(result.exit_code, result.stdout, result.stderr)

        return await asyncio.to_thread(invoke)


@pytest.fixture
async def shell(
    app: FastAPI, users: Users, settings: Settings, commands: Path, tmp_path: Path
) -> AsyncGenerator[Shell, None]:
    """Not logged in; its configuration is in the test's own folder."""

    assert settings.secret_key is not None
    kept = {name: value for name, value in os.environ.items() if not name.startswith("THALWEG_")}
    async with serve(without_lifespan(app)) as url:
        yield Shell(
            {
                **kept, "PATH": f"{commands}:{os.environ['PATH']}",
                "XDG_CONFIG_HOME": str(tmp_path), "THALWEG_URL": url, "COLUMNS": "200",
                "THALWEG_STORE_URL": settings.store_url, "THALWEG_REDIS_URL": settings.redis_url,
                "THALWEG_SECRET_KEY": settings.secret_key.get_secret_value(),
            }
        )  # fmt: skip


def with_token(shell: Shell, users: Users, role: Role = Role.OPERATOR) -> Shell:
    return Shell({**shell.environment, "THALWEG_TOKEN": users.tokens[role]})


async def test_login_keeps_a_token_that_logout_revokes(shell: Shell, tmp_path: Path) -> None:
    refused = await shell("status")
    assert (refused.code, "thalweg login" in refused.err) == (3, True)
    wrong = await shell("login", "--user", "admin", "--password-stdin", stdin="wrong\n")
    assert wrong.code == 3
    done = await shell("login", "--user", "admin", "--password-stdin", stdin=f"{PASSWORD}\n")
    assert done.code == 0, done.err
    file = tmp_path / "thalweg" / "config.json"
    assert file.stat().st_mode & 0o777 == 0o600
    token = json.loads(file.read_text())["token"]
    assert (await shell("status")).out.strip() == "No streams."
    asked = await shell("login", "--output", "json", stdin=f"admin\n{PASSWORD}\n")
    assert (json.loads(asked.out)["user"], "Password" in asked.err) == ("admin", True), asked.err
    token = json.loads(file.read_text())["token"]
    assert (await shell("logout")).code == 0
    assert not file.exists()
    assert (await Shell({**shell.environment, "THALWEG_TOKEN": token})("status")).code == 3


async def test_second_factor_at_the_login_and_lost(
    shell: Shell, app: FastAPI, users: Users, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Authenticator()
    device.control(monkeypatch)
    await device.set_up(await browser_of(app, "admin"), users.ids[Role.ADMIN])
    asked = await shell("login", "--user", "admin", "--password-stdin", stdin=f"{PASSWORD}\n{device.fresh()}\n")
    assert asked.code == 0, asked.err
    without = await shell("login", "--user", "admin", "--password-stdin", stdin=f"{PASSWORD}\n")
    assert (without.code, "--code" in without.err) == (1, True)
    used = await shell("login", "--user", "admin", "--password-stdin", "--code", device.code(), stdin=f"{PASSWORD}\n")
    assert (used.code, "The code is wrong" in used.err) == (3, True)
    recovery = ["--code", device.recovery_codes[0]]
    assert (await shell("login", "--user", "admin", "--password-stdin", *recovery, stdin=f"{PASSWORD}\n")).code == 0

    demanded = await shell("users", "require-second-factor", "admins")
    assert (demanded.code, demanded.out.strip()) == (0, "A second factor is demanded of: admins.")
    assert "demanded of: admins" in (await shell("users", "require-second-factor")).out
    row = next(line for line in (await shell("users", "list")).out.splitlines() if line.startswith("admin"))
    assert row.split()[1:4] == ["admin", "yes", "yes"]
    assert (await shell("users", "reset-second-factor", "admin")).code == 1

    lost = await shell.admin("reset-second-factor", "admin")
    assert (lost.code, lost.out.strip()) == (0, "second factor of admin reset")
    assert "has no second factor" in (await shell.admin("reset-second-factor", "admin")).out
    assert (await shell.admin("reset-second-factor", "nobody")).code == 1
    entry = json.loads((await shell("audit", "--json")).out)[0]
    assert (entry["action"], entry["actor_name"]) == ("users_reset_second_factor", "thalweg-admin")
    refused = await shell("login", "--user", "admin", "--password-stdin", stdin=f"{PASSWORD}\n")
    assert (refused.code, "A second factor must be set up first" in refused.err) == (1, True)


async def test_unreachable_control_plane(shell: Shell, users: Users) -> None:
    away = with_token(Shell({**shell.environment, "THALWEG_URL": f"http://127.0.0.1:{free_port()}"}), users)
    answer = await away("status")
    assert answer.code == 4
    assert "make up" in answer.err


async def test_stream_from_databases_to_deletion(
    shell: Shell,
    users: Users,
    sides: Sides,
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    run = with_token(shell, users)

    async def add(body: dict[str, Any], password: str) -> Answer:
        return await run(
            "databases", "add", body["name"], "--host", body["host"], "--port", str(body["port"]),
            "--dbname", body["dbname"], "--user", body["user"], "--password-stdin", stdin=password + "\n",
        )  # fmt: skip

    wrong = await add(sides.source, "wrong")
    assert (wrong.code, "authentication_failed" in wrong.err, "cure:" in wrong.err) == (1, True, True)
    for body in (sides.source, sides.destination):
        assert (await add(body, body["password"])).code == 0
    known = json.loads((await run("databases", "list", "--json")).out)
    assert [engine["version"] is not None for engine in known] == [True, True]
    assert "public.orders" in (await run("databases", "tables", "shop")).out
    sides.on_source("CREATE TABLE notes (body text)", f"ALTER TABLE notes OWNER TO {sides.source['user']}")
    choice = ["--source", "shop", "--to", "warehouse", "--include", "public.*"]
    unready = await run("preflight", *choice)
    assert (unready.code, "REPLICA IDENTITY FULL" in unready.out) == (1, True)
    assert f"    at the source shop (127.0.0.1:{sides.source['port']}/{sides.source['dbname']}):\n" in unready.out
    choice += ["--exclude", "public.notes"]
    assert (await run("preflight", *choice)).code == 0
    # It takes what the creation takes.
    assert (await run("preflight", *choice, "--set", "source_plugin=pgoutput", "--engine", "local")).code == 0
    wrong_setting = await run("preflight", *choice, "--set", "paralelism=2")
    assert (wrong_setting.code, "Similar ones: parallelism" in wrong_setting.err) == (1, True)
    assert "no engine" in (await run("preflight", *choice, "--engine", "nowhere")).err
    mined = await run("preflight", *choice, "--capture-kind", "wal", "--output", "json")
    assert (mined.code, "full_page_writes" in mined.out) == (0, True)
    made = await run("streams", "create", "s", *choice, "--set", "parallelism=2", "--wait")
    assert made.code == 0, made.err
    assert engine.desired["streams"][0]["parameters"] == {"parallelism": 2}
    ticker = await run("watch", "--plain", "--count", "2")
    assert "s → warehouse" in ticker.out
    assert "Replicating" in ticker.out
    assert "REPLICATING" not in ticker.out
    for of in (["watch", "--count", "2"], ["mon", "--count", "2", "--interval", "1"]):
        told = await run(*of, "--output", "json")
        documents = [json.loads(document) for document in told.out.splitlines()]
        assert [sorted(document) for document in documents] == [sorted(documents[0])] * 2, "one for each, on its line"
        assert {"stream_name", "lcrs_per_second"} <= documents[0].keys() or documents[0]["analysis"]["paths"]
    listed = await run("streams", "list")
    assert (listed.code, "Replicating" in listed.out, "Healthy" in listed.out) == (0, True, True)
    assert "LCR/s" in (await run("status")).out
    switched = await run("streams", "set", "s", "disable_on_error=off")
    assert (switched.code, "disable_on_error = false" in switched.out) == (0, True)
    policies = '[{"error": "23505", "action": "park"}]'
    decided = await run("streams", "set", "s", f"error_policies={policies}")
    assert (decided.code, f"error_policies = {policies}" in decided.out) == (0, True)
    garbled = await run("streams", "set", "s", "error_policies=park")
    assert (garbled.code, "not valid JSON" in garbled.err, '"action": "park"' in garbled.err) == (1, True, True)
    misplaced = await run("streams", "set", "s", 'error_policies=[{"action": "wait"}]')
    assert "/parameters/error_policies/0/action" in misplaced.err
    unheard_of = await run("streams", "set", "s", 'error_policies=[{"action": "park", "error": "23p01"}]')
    assert "an SQLSTATE in upper case, such as 23505" in unheard_of.err
    invalid = await run("streams", "set", "s", "parallelism=0")
    assert "from 1 to 64" in invalid.err
    unknown = await run("streams", "set", "s", "paralelism=4")
    assert "Similar ones: parallelism" in unknown.err and "thalweg streams parameters" in unknown.err
    listed = (await run("streams", "parameters")).out
    assert "1 to 64" in listed and "a text of at most 100 characters" in " ".join(listed.split())
    engine.status, engine.phase, engine.error = "ABORTED", "STOPPED", example("status")["streams"][1]["error"]
    assert (await run("streams", "stop", "s", "--wait")).code == 0
    assert (await run("streams", "start", "s", "--wait")).code == 1
    failed = await run("status")
    assert (failed.code, "Aborted" in failed.out, "Failed: " in failed.out) == (1, True, True)
    assert (await run("streams", "list")).code == 1
    assert (await run("streams", "retry", "s", "--wait")).code == 0
    assert (await run("streams", "delete", "s", "--wait")).code == 0
    assert (await run("operations")).out.count("stream.") == 5
    assert (await run.at_terminal("databases", "remove", "shop", typed="n\n")).code == 1
    assert (await run.at_terminal("databases", "remove", "shop", "--yes", typed="")).code == 0


async def test_the_password_of_a_uri_comes_before_the_environments(shell: Shell, users: Users, sides: Sides) -> None:
    run, body = with_token(shell, users), sides.source
    password, at = quote(body["password"]), f"{body['host']}:{body['port']}/{body['dbname']}"
    shell.environment["PGPASSWORD"] = "wrong"
    added = await run("databases", "add", "one", "--uri", f"postgresql://{body['user']}:{password}@{at}")
    assert added.code == 0, added.err
    refused = await run("databases", "add", "two", "--uri", f"postgresql://{body['user']}@{at}")
    assert (refused.code, "authentication_failed" in refused.err) == (1, True)


async def test_a_password_comes_from_a_file_or_the_prompt(
    shell: Shell, users: Users, sides: Sides, tmp_path: Path
) -> None:
    run, body, file = with_token(shell, users), sides.source, tmp_path / "password"
    at = ["--host", body["host"], "--port", str(body["port"]), "--dbname", body["dbname"], "--user", body["user"]]
    shell.environment["PGPASSWORD"] = "wrong"
    file.write_text(f"{body['password']}\nanother line\n")
    by_file = await run("databases", "add", "one", *at, "--password-file", str(file))
    assert by_file.code == 0, by_file.err
    asked = await run("databases", "add", "two", *at, "--password", stdin=f"{body['password']}\n")
    assert asked.code == 0, asked.err
    both = await run("databases", "add", "three", *at, "--password-file", str(file), "--password-stdin", stdin="x\n")
    assert (both.code, "exclude each other" in both.err) == (1, True)
    moved = await run("databases", "edit", "one", "--host", "localhost")
    assert (moved.code, "--password, --password-stdin or --password-file" in moved.err) == (1, True), moved.err
    sides.on_source(f"ALTER ROLE {body['user']} PASSWORD 'rotated'")
    file.write_text("rotated")
    edited = await run("databases", "edit", "one", "--password-file", str(file))
    assert (edited.code, "Connected" in edited.out) == (0, True), edited.err
    file.write_bytes(b"\xff\n")
    assert "cannot be read" in (await run("databases", "edit", "one", "--password-file", str(file))).err


async def test_a_changed_login_is_tried_before_it_is_taken(
    shell: Shell, users: Users, registered: dict[str, str], sides: Sides
) -> None:
    run = with_token(shell, users)
    wrong = await run("databases", "edit", "shop", "--password-stdin", stdin="wrong\n")
    assert (wrong.code, "authentication_failed" in wrong.err, "--no-test" in wrong.err) == (1, True, True)
    assert (await run("databases", "test", "shop")).code == 0, "the stored password is still the one that works"
    sides.on_source(f"ALTER ROLE {sides.source['user']} PASSWORD 'rotated'")
    right = await run("databases", "edit", "shop", "--password-stdin", stdin="rotated\n")
    assert (right.code, "Connected" in right.out, "Changed shop" in right.out) == (0, True, True), right.err
    assert (await run("databases", "edit", "shop", "--password-stdin", "--no-test", stdin="wrong\n")).code == 0
    assert (await run("databases", "test", "shop")).code == 1
    assert (await run("databases", "edit", "shop", "--name", "store")).code == 0, "a name needs no connection"


async def test_another_address_wants_the_password_again(
    shell: Shell, users: Users, registered: dict[str, str], sides: Sides
) -> None:
    run = with_token(shell, users)
    refused = await run("databases", "edit", "shop", "--host", "localhost")
    assert (refused.code, "password" in refused.err, "Changed" in refused.out) == (1, True, False)
    assert (await run("databases", "edit", "shop", "--host", "localhost", "--no-test")).code == 1
    known = json.loads((await run("databases", "list", "--json")).out)
    assert {database["host"] for database in known} == {"127.0.0.1"}
    with_it = ["--host", "localhost", "--password-stdin"]
    right = await run("databases", "edit", "shop", *with_it, stdin=f"{sides.source['password']}\n")
    assert (right.code, "Connected" in right.out) == (0, True), right.err
    assert (await run("databases", "test", "shop")).code == 0


async def test_a_uri_changes_the_whole_address(
    shell: Shell, users: Users, registered: dict[str, str], sides: Sides
) -> None:
    run, body = with_token(shell, users), sides.source
    login, place = f"{body['user']}:{quote(body['password'])}", f"localhost:{body['port']}/{body['dbname']}"

    async def shown() -> dict[str, Any]:
        known = json.loads((await run("databases", "list", "--json")).out)
        return dict(next(database for database in known if database["name"] == "shop"))

    refused = await run("databases", "edit", "shop", "--uri", f"postgresql://{body['user']}@{place}")
    assert (refused.code, "--password, --password-stdin or --password-file" in refused.err) == (1, True), refused.err
    wrong = await run("databases", "edit", "shop", "--uri", "postgresql://localhost:1/shop?sslmode=sometimes")
    assert (wrong.code, (await shown())["host"]) == (1, "127.0.0.1")
    unknown = await run("databases", "edit", "shop", "--uri", f"postgresql://{place}?application_name=x")
    assert (unknown.code, "Not an option that may be set: application_name" in unknown.err) == (1, True), unknown.err

    options = "connect_timeout=7&keepalives_idle=30"
    moved = await run("databases", "edit", "shop", "--uri", f"postgresql://{login}@{place}?{options}")
    assert (moved.code, "Connected" in moved.out) == (0, True), moved.err
    assert (await shown())["options"] == {"connect_timeout": "7", "keepalives_idle": "30"}
    assert ((await shown())["host"], (await shown())["tested_at"] is not None) == ("localhost", True)

    # The same place: the stored password goes there. User and database stay, options do not.
    again = await run("databases", "edit", "shop", "--uri", f"postgresql://localhost:{body['port']}")
    assert (again.code, "Connected" in again.out) == (0, True), again.err
    now = await shown()
    assert (now["options"], now["user"], now["dbname"]) == ({}, body["user"], body["dbname"])


async def test_what_changes_data_asks_on_a_terminal(
    shell: Shell,
    users: Users,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    run = with_token(shell, users)
    choice = ["--source", "shop", "--to", "warehouse", "--include", "public.*"]
    assert (await run("streams", "create", "s", *choice, "--wait")).code == 0
    for asked in (["--execute", "1"], ["--discard", "1", "--reason", "not wanted"]):
        answer = await run.at_terminal("errors", "s", *asked, typed="n\n")
        assert (answer.code, "at warehouse" in answer.out + answer.err) == (1, True)
    assert (engine.executed, engine.deleted) == ([], [])
    assert (await run.at_terminal("errors", "s", "--execute", "1", typed="y\n")).code == 0
    assert (await run("errors", "s", "--execute", "1", "--execute-all")).code != 0
    assert "have been applied" in (await run("errors", "s", "--execute-all", "--yes")).out
    one_cause = await run.at_terminal("errors", "s", "--execute-all", "--cause", "23a5", typed="y\n")
    assert (one_cause.code, "the cause 23a5 have been applied" in one_cause.out) == (0, True)
    assert (
        await run.at_terminal("errors", "s", "--discard", "1", "--reason", "not wanted", "--yes", typed="")
    ).code == 0
    assert (engine.executed, engine.deleted) == ([1, 1, 1], [1])
    for action in ("stop", "delete"):
        assert (await run.at_terminal("streams", action, "s", typed="n\n")).code == 1
    assert engine.desired["streams"][0]["status"] == "ENABLED"
    assert (await run.at_terminal("streams", "delete", "s", "--wait", typed="y\n")).code == 0


async def test_updates_of_a_table_without_a_key_are_given_up(
    shell: Shell,
    users: Users,
    registered: dict[str, str],
    engine: EngineDouble,
    sides: Sides,
    collector: Any,  # noqa: F811
) -> None:
    run = with_token(shell, users)
    sides.on_source("CREATE TABLE notes (body text)", f"ALTER TABLE notes OWNER TO {sides.source['user']}")
    choice = ["--source", "shop", "--to", "warehouse", "--include", "public.*"]
    refused = await run("preflight", *choice)
    assert (refused.code, "inserts_only" in refused.out) == (1, True)
    choice += ["--inserts-only", "public.notes"]
    ready = await run("preflight", *choice)
    assert (ready.code, "updates and deletes stay" in ready.out) == (0, True)
    assert (await run("streams", "create", "s", *choice, "--wait")).code == 0
    for listed in (await run("streams", "tables", "list", "s"), await run("streams", "show", "s")):
        told = {line.split()[0]: " ".join(line.split()[1:3]) for line in listed.out.splitlines() if "public." in line}
        assert told == {
            "public.customers": "all changes", "public.notes": "inserts only", "public.orders": "all changes"
        }  # fmt: skip


async def test_a_table_that_was_only_truncated_shows_it(
    shell: Shell,
    users: Users,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    run = with_token(shell, users)
    none = {"inserts": 0, "updates": 0, "deletes": 0}
    at = {"at_source": "2026-11-21T10:00:00.120000Z", "at_destination": "2026-11-21T10:00:00.124500Z"}
    engine.troubles["orders"] = {**none, "truncates": 3, "last_change": at}
    engine.troubles["customers"] = {**none, "truncates": 0, "last_change": None}
    choice = ["--source", "shop", "--to", "warehouse", "--include", "public.*"]
    assert (await run("streams", "create", "s", *choice, "--wait")).code == 0
    lines = [line.split() for line in (await run("streams", "show", "s")).out.splitlines() if "public." in line]
    told = {cells[0]: cells for cells in lines}
    assert told["public.orders"][-7:-3] == ["0", "0", "0", "3"]
    assert told["public.orders"][-1] == "ago"
    assert told["public.customers"][-5:] == ["0", "0", "0", "0", "–"]


async def test_rules_of_tables_come_from_a_file(
    shell: Shell,
    users: Users,
    registered: dict[str, str],
    engine: EngineDouble,
    tmp_path: Path,
    collector: Any,  # noqa: F811
) -> None:
    run = with_token(shell, users)
    file = tmp_path / "rules.json"
    wrong = {"name": "north_only", "condition": "id > 0 AND\n\tregoin = 'north'"}
    file.write_text(json.dumps([{"schema": "public", "table": "orders", "positive": [wrong]}]))
    engine.rule_problems = [{**example("rules-check")["problems"][0], "line": 2, "column": 2}]
    found = await run("rules", "check", str(file), "--source", "shop")
    assert found.code == 1 and "public.orders, rule north_only, line 2, column 2: the table" in found.out
    assert "     regoin = 'north'\n     ^\n" in found.out and "cure: Correct the rule" in found.out
    assert json.loads((await run("rules", "check", str(file), "--source", "shop", "--json")).out)["problems"]

    engine.rule_problems = [{**engine.rule_problems[0], "certain": False}]
    warned = await run("rules", "check", str(file), "--source", "shop")
    assert warned.code == 0 and "! public.orders, rule north_only" in warned.out and "can be kept" in warned.out

    engine.rule_problems = []
    choice = ["--source", "shop", "--to", "warehouse", "--include", "public.*", "--row-rules"]
    tried = await run("rules", "test", str(file), "--source", "shop", "--sample", "1")
    assert tried.code == 1, "a rule fails on one of them"
    assert "becomes insert  UPDATE id=7, region=north\n    north_only null before, true after\n" in tried.out
    assert "division by zero. (rule_failed)" in tried.out and engine.checked["sample"] == 1
    assert "recent" not in engine.checked
    decided = tmp_path / "decided.json"
    decided.write_text(file.read_text().replace('"condition"', '"on_error": "as_false", "condition"'))
    tried = await run("rules", "test", str(decided), "public.orders", "--source", "shop")
    assert "north_only undecidable, counted as not true before, true after\n" in tried.out
    assert "north_only failed, counted as not true\n" in tried.out
    several = await run("rules", "test", str(file), "public.other", "--source", "shop")
    assert (several.code, "no rules for public.other" in several.err) == (1, True)
    assert "can be kept" in (await run("rules", "check", "-", "--source", "shop", stdin=file.read_text())).out
    assert (await run("preflight", *choice, str(file))).code == 0
    assert (await run("streams", "create", "s", *choice, str(file), "--wait")).code == 0
    recent = await run("rules", "test", str(file), "--source", "shop", "--recent", "s", "--recent-limit", "7")
    assert engine.checked["recent"] == {"stream": engine.desired["streams"][0]["id"], "limit": 7, "wait_ms": 5000}
    assert "stops the stream  UPDATE id=9, region=north, card hidden, note not sent, tag from_warehouse, " in recent.out
    assert recent.out.endswith("1 changes of the stream came in time.\n")
    unknown = await run("rules", "test", str(file), "--source", "shop", "--recent", "nobody")
    assert (unknown.code, "nobody" in unknown.err) == (1, True)
    assert "all changes, by rules" in (await run("streams", "tables", "list", "s")).out
    shown = (await run("streams", "show", "s")).out
    assert ["public.orders", "table", "10", "2", "1", "0", "3"] in [line.split() for line in shown.splitlines()]
    assert "public.orders" in shown.splitlines()[-1], "what the source evaluates of its rules"
    assert "Counted since the capture started, " in shown and "the source rolls back count" in " ".join(shown.split())
    forgotten = await run("streams", "rules", "s", "--include", "public.*")
    assert (forgotten.code, "row_rules_changed" in forgotten.err) == (1, True)
    file.write_text("positive:")
    unread = await run("preflight", *choice, str(file))
    assert (unread.code, "is not JSON" in unread.err) == (1, True)
    file.write_text('[{"n": 1e999}]')
    unread = await run("rules", "test", str(file), "public.orders", "--source", "shop")
    assert (unread.code, "1e999 is no value of JSON" in unread.err) == (1, True)
    file.write_text("[" * 100_000)
    unread = await run("rules", "test", str(file), "public.orders", "--source", "shop")
    assert (unread.code, "nested too deep" in unread.err) == (1, True)


AS_THE_WIZARD_WRITES_IT = """name: "shop to warehouse"
source_id: {source}
destinations:
  - database_id: {warehouse}
    row_rules:
      - scope: global
        positive:
          - name: small
            condition: "amount < 50 AND item <> '\\"no\\"'"
            subset: false
            on_error: as_true
rules:
  include:
    - schema: public
      table: "*"
  exclude: []
parameters:
  parallelism: 2
accept: []
start: true"""
"""frontend/src/lib/yaml.test.ts has the same text."""


async def test_a_stream_is_made_of_the_wizards_yaml(
    shell: Shell, users: Users, registered: dict[str, str], engine: EngineDouble,
    tmp_path: Path, collector: Any,  # noqa: F811
) -> None:  # fmt: skip
    run = with_token(shell, users)
    file = tmp_path / "stream.yaml"
    text = AS_THE_WIZARD_WRITES_IT.format(source=registered["source"], warehouse=registered["destination"])
    file.write_text(text)
    made = await run("streams", "create-from", str(file), "--wait")
    assert made.code == 0 and "Creating shop to warehouse: done." in made.out, made.err
    stream = json.loads((await run("streams", "show", "shop to warehouse", "--json")).out)
    (rules,) = stream["destinations"][0]["row_rules"]
    assert rules["positive"][0]["condition"] == "amount < 50 AND item <> '\"no\"'"
    assert rules["positive"][0]["on_error"] == "as_true"
    assert (stream["parameters"], rules["scope"]) == ({"parallelism": 2}, "global")
    for wrong, why in (
        ("[", "cannot be read as a request"), ("name: 2026-11-28", "not JSON serializable"), ("- 1", "describes no"),
        ("name: &a [*a]", "Circular"), ("name: .nan", "not JSON compliant"),
    ):  # fmt: skip
        refused = await run("streams", "create-from", "-", stdin=wrong)
        assert (refused.code, why in refused.err, "cure:" in refused.err) == (1, True, True), refused.err
    again = await run("streams", "create-from", "-", stdin=text)
    assert again.code == 1 and "Traceback" not in again.err


async def test_a_pipe_gets_whole_values(shell: Shell, users: Users, registered: dict[str, str]) -> None:
    shell = with_token(shell, users, Role.ADMIN)
    shell.environment["COLUMNS"] = "40"
    name = "a name that is much longer than forty columns of a terminal"
    assert (await shell("tokens", "add", name)).code == 0
    assert name in (await shell("tokens", "list")).out


async def test_delete_follows_the_operation_that_runs(
    shell: Shell, users: Users, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble
) -> None:
    stream = await created(operator, registered)
    shell = with_token(shell, users)
    first = json.loads((await shell("streams", "delete", stream["name"], "--output", "json")).out)
    waited = await shell("streams", "delete", stream["name"], "--wait", "--timeout", "1")
    assert waited.code == 1
    assert first["operation_id"] in waited.err
    assert "waiting for: Engine local, which has not taken the request yet." in waited.err


async def test_troubles_of_tables_are_listed_and_resolved(
    shell: Shell,
    users: Users,
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    engine.troubles["orders"] = {"state": "STOPPED", "trouble": trouble("REPLACED", "copy")}
    stream = await created(operator, registered)
    await until(operator, f"{STREAMS}/{stream['id']}", "REPLACED")
    run = with_token(shell, users)
    listed = (await run("streams", "tables", "list", stream["name"])).out
    assert "Stopped" in listed and "cure (copy): Mend it." in listed
    refused = await run("streams", "tables", "follow", stream["name"], "public.orders")
    assert (refused.code, "choose one of the trouble's resolutions" in refused.err) == (1, True)
    assert (await run("streams", "tables", "copy", stream["name"], "orders")).code == 1
    copied = await run("streams", "tables", "copy", stream["name"], "public.orders", "--reason", "a damaged file")
    assert copied.out.startswith("Copying public.orders again: operation "), copied.err
    assert engine.resolved == [("copy", {"schema": "public", "table": "orders"})]
    accepted = await run("streams", "tables", "accept", stream["name"], "public.orders")
    assert (accepted.code, "no changed partitions" in accepted.err) == (1, True)
    sql = [f'ALTER TABLE "public"."{name}" REPLICA IDENTITY FULL;' for name in ("orders_1", "orders; 2")]
    unidentified = trouble("UNIDENTIFIED", cure_sql="\n".join(sql))
    engine.troubles["orders"] = {"state": "REPLICATING", "trouble": unidentified}
    await until(operator, f"{STREAMS}/{stream['id']}", "UNIDENTIFIED")
    listed = (await run("streams", "tables", "list", stream["name"])).out
    assert "Unidentified" in listed and "  cure: Mend it." in listed
    assert [line.strip() for line in listed.splitlines() if line.strip() in sql] == sql, "to be copied"
