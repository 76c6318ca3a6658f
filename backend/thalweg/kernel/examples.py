"""Examples in the OpenAPI document: of bodies by operation, of answers by schema. A page or a list shows one item; what
else a page has stands under its own name."""

import json
from typing import Any

from thalweg.kernel.settings import PACKAGE

DIRECTORY = PACKAGE / "examples"
JSON = "application/json"


def add_examples(document: dict[str, Any]) -> None:
    requests = _read("requests")
    answers = _read("answers")
    used: dict[str, Any] = {}
    for item in document["paths"].values():
        for operation in item.values():
            name = operation["operationId"]
            if name in requests:
                used[name] = {"value": requests[name]}
                _attach(operation["requestBody"], name)
            for status, answer in operation["responses"].items():
                schema = answer.get("content", {}).get(JSON, {}).get("schema", {})
                if status.startswith("2"):
                    shown = _answer(schema, answers)
                    if shown is not None:
                        used[shown[0]] = {"value": shown[1]}
                        _attach(answer, shown[0])
    document["components"]["examples"] = dict(sorted(used.items()))


def _read(name: str) -> dict[str, Any]:
    return dict(json.loads((DIRECTORY / f"{name}.json").read_text()))


def _attach(described: dict[str, Any], name: str) -> None:
    described["content"][JSON]["examples"] = {"example": {"$ref": f"#/components/examples/{name}"}}


def _answer(schema: dict[str, Any], answers: dict[str, Any]) -> tuple[str, Any] | None:
    """The example's name and its value."""
    if schema.get("type") == "array":
        name = _name(schema["items"])
        return (f"{name}List", [answers[name]]) if name in answers else None
    name = _name(schema)
    item = name.removesuffix("Page")
    if item != name and item in answers:
        return name, {"items": [answers[item]], "next_cursor": None, **answers.get(name, {})}
    return (name, answers[name]) if name in answers else None


def _name(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]
