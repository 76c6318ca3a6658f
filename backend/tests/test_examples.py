"""Each body and answer has an example that its schema takes; the real operations take those of bodies."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs

from tests.conftest import Sides
from tests.support.engine_double import EngineDouble

# Requests that need a running engine, log mining, a table in trouble, a firing alert, the demo or a current code.
LEFT_OUT = {
    "engines_enrol", "engines_drop_stream", "destinations_add", "stream_markers_create", "advisor_cures_apply",
    "alerts_acknowledge", "lab_causes_start", "lab_load_change",
    "session_verify_code", "users_prepare_second_factor", "users_confirm_second_factor", "users_renew_recovery_codes",
    "users_remove_second_factor",
    "stream_tables_copy", "stream_tables_accept", "stream_tables_follow", "stream_tables_remove", "searches_create",
}  # fmt: skip
DOCUMENT: dict[str, Any] = json.loads((Path(__file__).resolve().parents[1] / "openapi.json").read_text())
JSON = "application/json"


def described() -> Iterator[tuple[str, dict[str, Any]]]:
    """(which, what is said of its JSON) of each body and each answer of success."""
    for item in DOCUMENT["paths"].values():
        for operation in item.values():
            name = operation["operationId"]
            if JSON in operation.get("requestBody", {}).get("content", {}):
                yield f"{name}: body", operation["requestBody"]["content"][JSON]
            for status, answer in operation["responses"].items():
                if status.startswith("2") and JSON in answer.get("content", {}):
                    yield f"{name}: {status}", answer["content"][JSON]


def value_of(content: dict[str, Any]) -> Any:
    reference = content["examples"]["example"]["$ref"].rpartition("/")[2]
    return DOCUMENT["components"]["examples"][reference]["value"]


def closed(schema: Any) -> Any:
    """The schema without room for fields that it does not name: an example must not show what is not there any more."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(part) for name, part in schema.items()}
    if "properties" in made and schema.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


def test_every_body_and_answer_has_an_example() -> None:
    assert [which for which, content in described() if "examples" not in content] == []


def test_examples_fit_their_schemas() -> None:
    components = closed({"schemas": DOCUMENT["components"]["schemas"]})
    wrong = {}
    for which, content in described():
        validator = jsonschema_rs.validator_for({**closed(content["schema"]), "components": components})
        errors = [f"{list(error.instance_path)}: {error.message}" for error in validator.iter_errors(value_of(content))]
        if errors:
            wrong[which] = errors
    assert wrong == {}


class Product:
    """Sends the examples of bodies to the operations that they belong to."""

    def __init__(self, client: httpx.AsyncClient, ids: dict[str, str]) -> None:
        self.client = client
        self.ids = ids
        """Of what is there, by the ids that the examples show."""
        self.sent: set[str] = set()

    async def __call__(self, operation: str, *, changed: dict[str, Any] | None = None, **path: Any) -> Any:
        self.sent.add(operation)
        (where, method, described) = next(
            (where, method, details)
            for where, item in DOCUMENT["paths"].items()
            for method, details in item.items()
            if details["operationId"] == operation
        )
        text = json.dumps(value_of(described["requestBody"]["content"][JSON]))
        for shown, real in self.ids.items():
            text = text.replace(shown, real)
        answer = await self.client.request(
            method, where.format(**path), json=json.loads(text) | (changed or {}), headers={"If-Match": "*"}
        )
        assert answer.is_success, (operation, answer.text)
        return answer.json() if answer.content else None


async def test_operations_take_the_examples(
    admin: httpx.AsyncClient, sides: Sides, registered: dict[str, str], engine: EngineDouble
) -> None:
    at_source = {name: sides.source[name] for name in ("host", "port", "dbname", "user", "password")}
    send = Product(admin, {"8w3kq0f5tz2m": registered["source"], "c61vn9r4xy7d": registered["destination"]})
    user = await send("users_create")
    await send("session_create", changed={"name": "ines"})
    await send("users_update", user_id=user["id"])
    await send("users_change_password", user_id=user["id"])
    await send("access_policy_update")
    await send("tokens_create")
    await send("enrolments_create")
    (known,) = (await admin.get("/api/v1/engines")).json()["items"]
    await send("engines_update", engine_id=known["id"])

    await send("databases_test_unsaved", changed=at_source)
    await send("databases_update", database_id=registered["source"], changed={"password": at_source["password"]})
    await send("databases_create", changed=at_source)
    await send("streams_preview_tables")
    await send("streams_check_rules")
    await send("streams_test_rules")
    assert (await send("preflights_run"))["ready"]
    stream = {"stream_id": (await send("streams_create"))["stream_id"]}
    await send("streams_update", **stream)
    await send("destinations_update", **stream, destination_id="warehouse")
    queue = {**stream, "destination_id": "warehouse"}
    await send("stream_errors_edit", **queue, error_id=1, number=1)
    await send("stream_errors_dry_run", **queue, error_id=1)
    await send("stream_errors_execute", **queue, error_id=1)
    await send("stream_errors_execute_all", **queue)

    run = await send("advisor_runs_create")
    await send("advisor_runs_update", run_id=run["id"])
    schedule = await send("advisor_schedules_create")
    await send("advisor_schedules_update", schedule_id=schedule["id"])
    await send("advisor_policy_update")
    await send("alert_rules_update", rule="latency")
    await send("alert_rules_update_stream", rule="latency", **stream)
    await send("alert_silences_create")
    channel = await send("alert_channels_create")
    await send("alert_channels_update", channel_id=channel["id"])
    with_bodies = {which.removesuffix(": body") for which, _ in described() if which.endswith(": body")}
    assert send.sent == with_bodies - LEFT_OUT
