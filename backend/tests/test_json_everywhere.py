"""`--output json` of every command: standard output is JSON alone, whatever the command also says or asks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer.main
from typer.testing import CliRunner

from thalweg.cli import admin, administration
from thalweg.cli.main import commands
from thalweg.cli.output import Format, choice, output_first

DOCUMENT = json.loads((Path(__file__).parents[1] / "openapi.json").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]
PREFIX = "/api/v1"
TEXT = "x"
"""The API's answer for each name and id, so that a command finds what is called so."""
SAMPLE = f'event: stream.sample\ndata: {{"stream_id": "{TEXT}"}}\n\n'
CHOICE = ["--source", TEXT, "--to", TEXT, "--include", "public.*"]
RULES = '[{"schema": "public", "table": "t", "positive": []}]'
ARGUMENTS: dict[str, list[str]] = {
    "login": ["--user", "ann"],
    "logout": [],
    "status": [],
    "watch": ["--count", "2"],
    "operations": [],
    "preflight": CHOICE,
    "mon": ["--count", "1"],
    "errors": [TEXT],
    "conflicts": [TEXT],
    "changes": [TEXT, "--table", "public.t", "--key", "id=5"],
    "audit": [],
    "alerts list": [],
    "alerts show": [TEXT],
    "alerts ack": [TEXT],
    "alerts silence": ["2h"],
    "alerts rules": [],
    "alerts channels": [],
    "alerts channels test": [TEXT],
    "alerts channels add-webhook": [TEXT, "https://example.com/hook"],
    "alerts channels add-email": [TEXT, "--host", "mail", "--from", "a@example.com", "--to", "b@example.com"],
    "alerts channels add-log": [],
    "alerts channels remove": [TEXT],
    "advisor run": [],
    "advisor list": [],
    "advisor show": [],
    "advisor compare": ["1", "2"],
    "advisor report": [],
    "advisor export": ["--format", "csv"],
    "databases list": [],
    "databases add": [TEXT, "--host", "h", "--dbname", "d", "--user", "u"],
    "databases edit": [TEXT, "--password"],
    "databases test": [TEXT],
    "databases tables": [TEXT],
    "databases remove": [TEXT],
    "streams list": [],
    "streams watch": ["--count", "2"],
    "streams show": [TEXT],
    "streams create": [TEXT, *CHOICE],
    "streams create-from": ["-"],
    "streams start": [TEXT],
    "streams stop": [TEXT],
    "streams retry": [TEXT],
    "streams delete": [TEXT],
    "streams capture": [TEXT, "wal"],
    "streams set": [TEXT, "parallelism=2"],
    "streams parameters": [],
    "streams rules": [TEXT, "--include", "public.*"],
    "streams tables list": [TEXT],
    "streams tables copy": [TEXT, "public.t"],
    "streams tables accept": [TEXT, "public.t"],
    "streams tables follow": [TEXT, "public.t"],
    "streams tables remove": [TEXT, "public.t"],
    "rules check": ["-", "--source", TEXT],
    "rules test": ["-", "--source", TEXT],
    "destinations list": [TEXT],
    "destinations add": [TEXT, TEXT],
    "destinations start": [TEXT, TEXT],
    "destinations stop": [TEXT, TEXT],
    "destinations retry": [TEXT, TEXT],
    "destinations drop": [TEXT, TEXT],
    "destinations set": [TEXT, TEXT, "group_size=100"],
    "destinations rules": [TEXT, TEXT],
    "slots list": [],
    "slots drop": [TEXT],
    "engines list": [],
    "engines token": [],
    "engines enrol": [TEXT, "--url", "https://engine:8643", "--token-file", "token"],
    "engines address": [TEXT],
    "engines drop-stream": [TEXT, TEXT],
    "engines remove": [TEXT],
    "users list": [],
    "users add": [TEXT],
    "users edit": [TEXT, "--role", "viewer"],
    "users remove": [TEXT],
    "users reset-second-factor": [TEXT],
    "users require-second-factor": [],
    "tokens list": [],
    "tokens add": [TEXT],
    "tokens revoke": [TEXT],
}
"""Of each command; a new one belongs here."""
ADMINISTRATION: dict[str, tuple[list[str], Any, dict[str, Any]]] = {
    "migrate": ([], "abc", {"revision": "abc"}),
    "create-admin": (["ann"], False, {"name": "ann", "created": False, "password": None}),
    "set-password": (["ann"], False, {"name": "ann", "created": False}),
    "reset-second-factor": (["ann"], True, {"name": "ann", "reset": True}),
    "create-token": (
        ["--user", "ann", "--role", "viewer"], "a secret",
        {"user_name": "ann", "name": "admin token", "role": "viewer", "secret": "a secret"},
    ),
    "enrol-local": (
        ["--token-file", "token"], True, {"name": "local", "url": "http://127.0.0.1:8643", "enrolled": True},
    ),
    "generate-key": ([], "a key", {"key": "a key"}),
}  # fmt: skip
"""The arguments of `thalweg-admin`'s commands, what their work at the store gives, and what is printed of it."""
TYPED = {
    "login": "a password\n",
    "databases add": "a password\n",
    "databases edit": "a password\n",
    "users add": "a password\na password\n",
    "streams create-from": f"name: {TEXT}",
    "rules check": RULES,
    "rules test": RULES,
}
"""At standard input: answers of questions, or a file."""
KNOWN_AT_LOGIN = {"csrf_token": TEXT, "expires_at": "2026-11-21T00:00:00Z"}
"""Not null of a browser's session, and of a token that it makes."""
LINE_BY_LINE = ("watch", "streams watch", "mon")
FAILS_FOR_ITS_ANSWER = (
    "status",
    "streams list",
    "alerts list",
    "preflight",
    "rules check",
    "rules test",
    "advisor run",
)
"""They print what they have found, and end with 1 where that is not well."""


def commands_of(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    if not hasattr(command, "commands") or (command.invoke_without_command and path):
        yield " ".join(path)
    for name, below in getattr(command, "commands", {}).items():
        yield from commands_of(below, (*path, name))


def instance(schema: dict[str, Any]) -> Any:
    """The least that fits: one of each list, null where that may stand, the first of several words."""
    if "$ref" in schema:
        return instance(SCHEMAS[schema["$ref"].rsplit("/", 1)[-1]])
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return None if {"type": "null"} in choices else instance(choices[0])
    match schema.get("type"):
        case "object":
            return {name: instance(member) for name, member in schema.get("properties", {}).items()} | {
                name: known for name, known in KNOWN_AT_LOGIN.items() if name in schema.get("properties", {})
            }
        case "array":
            return [instance(schema["items"])]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "2026-11-21T00:00:00Z" if schema.get("format") == "date-time" else TEXT


def answer(request: httpx.Request) -> httpx.Response:
    """As the API's document describes it."""
    path = request.url.path.removeprefix(PREFIX)
    if path == "/events":
        return httpx.Response(200, text=SAMPLE * 2)
    operation = next(
        operations[request.method.lower()]
        for template, operations in sorted(DOCUMENT["paths"].items())
        if request.method.lower() in operations and fits(template.removeprefix(PREFIX), path)
    )
    status, told = next((code, told) for code, told in operation["responses"].items() if code.startswith("2"))
    content = told.get("content", {})
    if "application/json" not in content:
        return httpx.Response(int(status), text="a|b\n" if content else "")
    document = instance(content["application/json"]["schema"])
    if isinstance(document, dict) and "next_cursor" in document:
        document["next_cursor"] = None
    return httpx.Response(int(status), json=document)


def fits(template: str, path: str) -> bool:
    """By their segments; after a colon stands what is done to a resource."""
    known, asked = (text.replace(":", "/:").split("/") for text in (template, path))
    return len(known) == len(asked) and all(
        name == one or name.startswith("{") for name, one in zip(known, asked, strict=True)
    )


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    client = httpx.Client

    def answered(**options: Any) -> httpx.Client:
        return client(**{**options, "transport": httpx.MockTransport(answer)})

    monkeypatch.setattr(httpx, "Client", answered)
    monkeypatch.setattr(choice, "format", Format.TABLE)  # of this process: other tests' commands have another
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text("a token")
    (tmp_path / "thalweg").mkdir()
    (tmp_path / "thalweg" / "config.json").write_text(json.dumps({"token": "a", "token_id": "b"}))
    return CliRunner(env={"XDG_CONFIG_HOME": str(tmp_path), "THALWEG_URL": "http://127.0.0.1:1"})


def test_every_command_is_tried() -> None:
    assert sorted(ARGUMENTS) == sorted(commands_of(typer.main.get_command(commands)))


@pytest.mark.parametrize("command", ARGUMENTS)
def test_standard_output_is_json(runner: CliRunner, command: str) -> None:
    asked = output_first([*command.split(), *ARGUMENTS[command], "--output", "json"])
    told = runner.invoke(commands, asked, input=TYPED.get(command, ""))
    assert told.exception is None or isinstance(told.exception, SystemExit), repr(told.exception)
    assert told.exit_code in ((0, 1) if command in FAILS_FOR_ITS_ANSWER else (0,)), told.output
    if command in LINE_BY_LINE:
        assert all(json.loads(line) for line in told.stdout.splitlines())
    json.loads(told.stdout if command not in LINE_BY_LINE else told.stdout.splitlines()[0])


def test_every_command_of_the_administration_is_tried() -> None:
    assert sorted(ADMINISTRATION) == sorted(commands_of(typer.main.get_command(admin.commands)))


@pytest.mark.parametrize("command", ADMINISTRATION)
def test_standard_output_of_the_administration_is_json(
    runner: CliRunner, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The work itself: tests/test_commands.py."""
    arguments, given, printed = ADMINISTRATION[command]
    monkeypatch.setattr(admin, "_run", lambda work: given)
    monkeypatch.setattr(administration, "migrate", lambda settings: given)
    monkeypatch.setattr(administration, "new_key", lambda: given)
    asked = output_first([command, *arguments, "--output", "json"])
    told = runner.invoke(admin.commands, asked, input="weathered copper kettle\n")
    assert (told.exit_code, json.loads(told.stdout)) == (0, printed), told.output
    people = runner.invoke(admin.commands, [command, *arguments], input="weathered copper kettle\n")
    assert people.exit_code == 0 and len(people.stdout.splitlines()) == 1 and "{" not in people.stdout


def test_a_report_appends_json_to_its_file(runner: CliRunner, tmp_path: Path) -> None:
    for _ in range(2):
        told = runner.invoke(commands, ["--output", "json", "advisor", "report", "--file", "reports"])
        assert (told.exit_code, told.stdout) == (0, "")
    first, second = (tmp_path / "reports").read_text().splitlines()
    assert json.loads(first) == json.loads(second) and "analysis" in json.loads(first)


def test_login_and_logout_say_nothing_of_the_secret(runner: CliRunner, tmp_path: Path) -> None:
    told = runner.invoke(commands, ["--output", "json", "login", "--user", "ann"], input=TYPED["login"])
    assert json.loads(told.stdout) == {
        "url": "http://127.0.0.1:1", "user": "ann", "role": "metrics", "token_id": TEXT,
        "expires_at": KNOWN_AT_LOGIN["expires_at"],
    }  # fmt: skip
    assert "Password" in told.stderr
    ended = runner.invoke(commands, ["--output", "json", "logout"])
    assert json.loads(ended.stdout) == {"token_id": TEXT, "revoked": True}
    assert not (tmp_path / "thalweg" / "config.json").exists()
