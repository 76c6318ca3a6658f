"""Errors of streams in the command line: with the row that they are about, for operators, and with their cures."""

import json
from typing import Any

import httpx

from tests.alerts.test_rest import alert_of, quick  # noqa: F401
from tests.conftest import Users
from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble
from tests.test_collector import collector, wait_for, without_slot_alert  # noqa: F401
from tests.test_commands import Shell, shell, with_token  # noqa: F401
from thalweg.cli.errors import own_error
from thalweg.kernel.principal import Role

KEY = "Key (id)=(4711) already exists."
CURE = "Remove the row, then retry."
TAKEN: dict[str, Any] = {
    "code": "apply_failed", "class": "operator_action", "title": "A change cannot be applied", "side": "destination",
    "message": f'duplicate key value violates unique constraint "orders_pkey": {KEY}', "cure": CURE,
    "sqlstate": "23505", "table": '"public"."orders"', "operation": "INSERT",
}  # fmt: skip


async def test_commands_tell_the_row_and_the_cure(
    shell: Shell,  # noqa: F811
    users: Users,
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    await without_slot_alert(operator)
    engine.status, engine.phase, engine.error = "ABORTED", "STOPPED", TAKEN
    stream = await created(operator, registered)
    await wait_for(operator, f"{STREAMS}/{stream['id']}", status="ABORTED")
    alert = await alert_of(operator, "component_aborted")
    assert (alert["evidence"]["cure"], KEY in str(alert)) == (CURE, False), "alerts go to everybody"
    ask, viewer = with_token(shell, users), with_token(shell, users, Role.VIEWER)
    for command in (
        ("status",), ("streams", "show", stream["name"]), ("destinations", "list", stream["name"]),
        ("alerts", "show", alert["id"]),
    ):  # fmt: skip
        told = (await ask(*command)).out
        for words in (KEY, f"cure: {CURE}", "INSERT into"):
            assert told.count(words) >= 1, (command, words, told)
        assert told.count(KEY) == told.count(f"cure: {CURE}") == 1, (command, told)
        document = (await ask(*command, "--output", "json")).out
        assert json.loads(document) and all(word in document for word in (KEY, CURE)), command
        seen = (await viewer(*command)).out
        assert (KEY in seen, CURE in seen) == (False, True), command


def test_an_error_that_a_destination_has_is_not_told_twice() -> None:
    error = {"code": "apply_failed", "message": "no"}
    other = {"code": "connection_lost", "message": "gone"}
    assert own_error({"error": None, "destinations": [{"error": error}]}) is None
    assert own_error({"error": error, "destinations": [{"error": None}, {"error": error}]}) is None
    assert own_error({"error": other, "destinations": [{"error": error}]}) == other
