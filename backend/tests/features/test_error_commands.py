"""The command line's error queue and conflict log, as a process of its own."""

import json
from typing import Any

from tests.conftest import Users
from tests.support.engine_double import EngineDouble, example
from tests.test_collector import collector  # noqa: F401
from tests.test_commands import Shell, shell, with_token  # noqa: F401


async def test_parked_transactions_are_shown_edited_and_tried(
    shell: Shell,  # noqa: F811
    users: Users,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    run = with_token(shell, users)
    choice = ["--source", "shop", "--to", "warehouse", "--include", "public.*"]
    assert (await run("streams", "create", "s", *choice, "--wait")).code == 0
    engine.parked = 0
    assert (await run("errors", "s")).out == "The error queue is empty.\n"
    engine.parked = 3
    queue = (await run("errors", "s")).out
    assert "duplicate key" in queue
    assert "3 are parked; 2 of them wait behind others" in queue
    assert "The destination has a row with this key already (t_pkey)" in queue
    assert "The destination has a row" not in (await run("errors", "s", "--cause", "23a5")).out, "of a part no groups"
    assert (await run("errors", "s", "--all", "--limit", "2")).out.count('"public"."t"') == 3
    assert "would be applied" in (await run("errors", "s", "--dry-run", "1")).out
    assert (await run("errors", "s", "--dry-run", "1", "--role", "clerk")).code == 0
    assert engine.roles == ["clerk"]
    assert "--execute" in (await run("errors", "s", "--role", "clerk")).err
    engine.dry_run_succeeds = False
    tried = await run("errors", "s", "--dry-run", "1")
    assert (tried.code, "would fail at change 2: INSERT into" in tried.err, "compare the rows" in tried.err) == (
        1,
        True,
        True,
    )
    shown = (await run("errors", "s", "--show", "1")).out
    assert "INSERT public.orders" in shown and shown.startswith("Transaction 1 (xid ")
    assert "≠ 19.90" in shown
    assert "→ 1. INSERT public.orders" in shown and "failed at this change" in shown
    engine.changes = 250
    part = (await run("errors", "s", "--show", "1", "--after", "100")).out
    assert "101. INSERT public.orders" in part and "Changes 101 to 200 of 250 are shown." in part
    assert "--show 1 --after 200" in part and "failed at change 1: --show 1 --after 0" in part
    engine.changes = 1
    tree = (await run("errors", "s", "--tree", "1", "--limit", "1")).out
    assert "2 wait behind 1:" in tree and "  2  0/1" in tree and "--tree 1 --cursor" in tree
    assert "1. INSERT public.orders" in shown and "Edited: amount = 9.90. Reason: the price" in shown
    assert (await run("errors", "s", "--show", "1", "--execute", "1")).code != 0
    assert "--show" in (await run("errors", "s", "--after", "5")).err
    assert "--leave-out" in (await run("errors", "s", "--if-match", "x")).err
    assert "--change NUMBER" in (await run("errors", "s", "--leave-out", "1", "--reason", "a duplicate")).err
    change = ("--change", "1")
    assert "--reason" in (await run("errors", "s", "--leave-out", "1", *change)).err
    decided = await run("errors", "s", "--leave-out", "1", *change, "--reason", "a duplicate")
    assert "is decided about already. Edited: amount = 9.90. Reason: the price" in decided.err
    change = (*change, "--if-match", f'"{engine.edits_version()}"')
    assert change[-1] in decided.err and change[-1] in shown
    left_out = await run("errors", "s", "--leave-out", "1", *change, "--reason", "a duplicate")
    assert (left_out.code, "is left out" in left_out.out) == (0, True)
    assert engine.edits == {1: {"left_out": True, "reason": "a duplicate"}}
    wrong = await run("errors", "s", "--edit", "1", *change, "--set", "amount", "--reason", "a price")
    assert "is not COLUMN=VALUE" in wrong.err
    assert "no new values" in (await run("errors", "s", "--edit", "1", *change, "--reason", "a price")).err
    stale = await run("errors", "s", "--restore", "1", *change)
    assert "has decided about its changes since you read it: change 1 was left out" in stale.err
    engine.knows_pages, engine.changes = False, 2
    older = await run("errors", "s", "--leave-out", "1", "--change", "2", "--reason", "a duplicate")
    assert (older.code, engine.edits.pop(2)["left_out"]) == (0, True)
    engine.knows_pages, engine.changes = True, 1
    change = ("--change", "1", "--if-match", "*")
    edit = ("--edit", "1", *change, "--set", "amount=a=b", "--null", "id", "--reason", "a price")
    assert (await run("errors", "s", *edit)).code == 0
    assert engine.edits == {1: {"values": {"amount": "a=b", "id": None}, "reason": "a price"}}
    changed = ("--edit", "1", *change, "--set", "amount=2", "--reason", "a price")
    assert "with amount = 2, and all other values as they came" in (await run("errors", "s", *changed)).out
    failed = example("errors")["execution"] | {"state": "FAILED", "error_id": 1, "executed": 2}
    engine.refuses_execution, engine.execution = failed["error"], failed
    behind = (await run("errors", "s", "--execute", "1", "--yes")).err
    assert "Transaction 1 is applied, with 1 behind it. The next one failed" in behind
    engine.execution = failed | {"executed": 0}
    assert "did not go through" in (await run("errors", "s", "--execute", "1", "--yes")).err
    engine.execution = left_out_whole = failed | {"left_out": 1, "left_out_ids": [1]}
    behind = (await run("errors", "s", "--execute", "1", "--yes")).err
    assert "nothing of it was applied: all its changes are left out, with 1 behind it" in behind
    engine.refuses_execution, engine.execution = None, left_out_whole | {"state": "DONE", "error": None}
    alone = (await run("errors", "s", "--execute", "1", "--yes")).out
    assert "Transaction 1 has left the queue, and nothing of it was applied" in alone
    assert "of 1 of them nothing" in (await run("errors", "s", "--execute-all", "--yes")).out
    assert (await run("errors", "s", "--restore", "1", *change)).code == 0
    assert engine.edits == {}


async def test_the_conflict_log(
    shell: Shell,  # noqa: F811
    users: Users,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    run = with_token(shell, users)
    choice = ["--source", "shop", "--to", "warehouse", "--include", "public.*"]
    assert (await run("streams", "create", "s", *choice, "--wait")).code == 0
    engine.conflicts = 3
    log = (await run("conflicts", "s")).out
    assert "update_exists" in log and "error 23514" in log and "public.t" in log
    opened = (await run("conflicts", "s", "--show", "2")).out
    assert "UPDATE public.t: update_exists, discard" in opened and "≠ 5" in opened
    lines = (await run("conflicts", "s", "--export", "ndjson", "--table", "public.a b")).out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [3, 2, 1]
    assert engine.asked_conflicts["table"] == "a b"
    engine.conflict_changes = {"message": "\x1b[31mred ß\x1b[0m"}
    of_log = ["conflicts", "s", "--export", "csv"]
    written = (await run(*of_log)).out
    assert written.count("\x1b[31mred ß\x1b[0m") == 3 and "\r\n" in written, "as the API sent it"
    seen = await run.to_terminal(*of_log)
    assert "\x1b[31m" not in seen and seen.count("\\x1b[31mred ß\\x1b[0m") == 3
    engine.conflict_changes = {}
    assert "is not schema.table" in (await run("conflicts", "s", "--table", "orders")).err
