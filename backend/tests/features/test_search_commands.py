"""`thalweg changes`, as a process of its own."""

import asyncio
import json
import signal
import sys
from typing import Any

import httpx
import pytest

from tests.conftest import Users
from tests.features.test_searches import mined
from tests.support.engine_double import EngineDouble
from tests.support.serving import eventually
from tests.test_commands import BACKEND, Shell, shell, with_token  # noqa: F401
from thalweg.cli.commands.changes import _differing, _progress
from thalweg.kernel.principal import Role


async def test_changes_are_listed(
    shell: Shell,  # noqa: F811
    users: Users,
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
) -> None:
    stream = await mined(operator, registered)
    run = with_token(shell, users)
    engine.searches.states = ["RUNNING", "DONE"]
    engine.searches.page_max = 3
    row = ["--table", "public.orders", "--key", "id=5"]
    listed = await run("changes", "shop", *row, "--from", "2026-11-30", "--to", "0/2F40A8B0", "--stream", stream)
    assert (listed.code, listed.err) == (0, "")
    lines = listed.out.splitlines()
    assert len(lines) == 6
    assert lines[2].split() == [
        "2", "2026-11-30", "09:14:20", "774", "UPDATE", "public.orders", "id=5", "state:", "new", "→", "paid",
    ]  # fmt: skip
    assert lines[1].endswith("state=new, email=masked, note=NULL")
    assert lines[-1] == "4 changes in the log from 0/1A2B3C4D to 0/2F40A8B0."
    assert engine.searches.asked == [
        (
            stream,
            {
                "from_time": "2026-11-30T00:00:00Z", "to": "0/2F40A8B0", "limit": 1000, "key": {"id": "5"},
                "table": {"schema": "public", "table": "orders"},
            },
        )
    ]  # fmt: skip
    found = json.loads((await run("changes", "shop", "--json")).out)
    assert [change["number"] for change in found["changes"]] == [1, 2, 3, 4]
    assert (found["state"], found["stream_id"]) == ("DONE", stream)
    engine.searches.changes = []
    assert (await run("changes", "shop")).out == "0 changes in the log from 0/1A2B3C4D to 0/2F40A8B0.\n"


async def test_changes_are_exported_and_undone(
    shell: Shell,  # noqa: F811
    users: Users,
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
) -> None:
    await mined(operator, registered)
    run = with_token(shell, users)
    lines = (await run("changes", "shop", "--export", "ndjson")).out.splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3, 4]
    assert (await run("changes", "shop", "--export", "csv")).out.startswith("number,commit_time,xid")
    script = (await run("changes", "shop", "--undo")).out
    assert script.startswith("-- Undoes 1 change") and script.endswith("COMMIT;\n")
    assert "--undo" in (await run("changes", "shop", "--undo", "--export", "csv")).err


async def test_what_cannot_be_searched(
    shell: Shell,  # noqa: F811
    users: Users,
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
) -> None:
    run = with_token(shell, users)
    none = await run("changes", "shop")
    assert (none.code, "No stream of this database mines its WAL" in none.err) == (1, True)
    await mined(operator, registered)
    wrong: list[tuple[list[str], str]] = [
        (["--from", "yesterday"], "--from: “yesterday” is neither"), (["--key", "id=5"], "--table SCHEMA.TABLE"),
        (["--table", "public.t", "--key", "id"], "“id” is not COLUMN=VALUE"), (["--table", "t"], "is not schema.table"),
    ]  # fmt: skip
    for arguments, message in wrong:
        answer = await run("changes", "shop", *arguments)
        assert (answer.code, message in answer.err) == (1, True), answer.err
    assert engine.searches.asked == []
    engine.searches.states = ["FAILED"]
    failed = await run("changes", "shop")
    assert (failed.code, "no longer kept" in failed.err, "wal_keep_mb" in failed.err) == (1, True, True)


async def test_an_interrupted_command_ends_its_search(
    shell: Shell,  # noqa: F811
    users: Users,
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
) -> None:
    await mined(operator, registered)
    engine.searches.states = ["RUNNING"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "thalweg.cli.main", "changes", "shop", cwd=BACKEND,
        env={**shell.environment, "THALWEG_TOKEN": users.tokens[Role.OPERATOR]},
    )  # fmt: skip

    async def looks() -> bool:
        return len(engine.searches.looked) > 1

    await eventually(looks)
    assert engine.searches.known
    process.send_signal(signal.SIGINT)
    assert await process.wait() == 130
    assert engine.searches.known == {}


def column(name: str, before: Any, after: Any, *, key: bool = False) -> dict[str, Any]:
    def value(text: Any) -> Any:
        return text if text is None or isinstance(text, dict) else {"text": text, "cut": False, "masked": False}

    return {"name": name, "key": key, "before": value(before), "after": value(after)}


@pytest.mark.parametrize(
    ("operation", "columns", "words"),
    [
        ("UPDATE", [column("id", "5", "6", key=True), column("a", "x", "x")], "id: 5 → 6"),
        ("UPDATE", [column("a", None, "x"), column("long", None, None)], "a: ? → x"),
        ("INSERT", [column("id", None, "5", key=True), column("a", None, "x" * 50)], f"a={'x' * 40}…"),
        ("DELETE", [column("a", "li\nne\x1b", None), column("b", None, None)], r"a=li\nne\x1b"),
        ("TRUNCATE", [], ""),
    ],
)
def test_what_has_changed(operation: str, columns: list[dict[str, Any]], words: str) -> None:
    assert _differing({"operation": operation, "columns": columns}) == words


def test_progress_names_its_share() -> None:
    search = {"mined_bytes": 64 << 20, "total_bytes": 256 << 20, "found": 3}
    assert _progress(search) == "Searching: 25 % of 256.0 MiB, 3 changes found …"
    assert "0 %" in _progress({**search, "total_bytes": 0})
