"""docs/reference/rest.md: the REST API, from the OpenAPI document that the backend exports."""

import json
from pathlib import Path
from typing import Any

from markdown import cell, code, head, prose, table

SOURCE = "backend/openapi.json"
TEXT = """
The console and the command line use this API for everything. A running control plane shows the reference at
`/api/docs`, with examples, and serves the machine-readable document at `/api/v1/openapi.json`; this page is its
summary. You can generate clients from the document: `make test` generates one with openapi-python-client and drives
the product with it.

* **Authentication.** Send an API token as `Authorization: Bearer TOKEN`. (The console uses a session cookie and sends
  its `X-CSRF-Token` with each change.) Create tokens under *Settings* or with `POST /api/v1/tokens`.
  The calls that the console shows for curl take the token from `THALWEG_TOKEN`, or from the file that
  `THALWEG_TOKEN_FILE` names, as the command line does.
* **Errors** are problem details with a stable code and a cure: [errors](errors.md).
* **Lists** come in pages: pass `next_cursor` as `cursor` until it is null.
* **Creating** takes an `Idempotency-Key`: for a day, the same key and body return the first answer again.
* **Changing** takes the resource's `etag` in `If-Match`, so that nobody overwrites unseen changes.
* **Long work** answers 202 with an operation; `GET /api/v1/operations/{id}` shows its progress.
"""


def _schema_name(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    return str(schema.get("title") or schema.get("type") or "")


def _type(schema: dict[str, Any]) -> str:
    """A schema in a few words: Stream, list of Stream, text, integer or null."""
    if "$ref" in schema:
        name = _schema_name(schema)
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(option) for option in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(code(value) for value in schema["enum"])
    if "const" in schema:
        return code(schema["const"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map to {_type(schema['additionalProperties'])}"
    return {"string": schema.get("format") or "text"}.get(str(schema.get("type")), str(schema.get("type", "any")))


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    about = f"`{operation['operationId']}`"
    if operation.get("description"):
        about += f": {operation['description']}"
    text = f"### {method.upper()} {path}\n\n{prose(about)}\n"
    parameters = operation.get("parameters", [])
    if parameters:
        text += "\n" + table(("parameter", "in", "required", "meaning"), (
            (code(parameter["name"]), parameter["in"], "yes" if parameter.get("required") else "no",
             cell(". ".join(filter(None, (_type(parameter["schema"]), parameter.get("description"))))))
            for parameter in parameters))
    content = operation.get("requestBody", {}).get("content", {})
    answers = [(status, answer) for status, answer in operation["responses"].items() if status.startswith("2")]
    lines = [f"Body: {_type(body['schema'])}" for body in content.values()]
    for status, answer in answers:
        kinds = [_type(body["schema"]) if body.get("schema") else code(kind)
                 for kind, body in answer.get("content", {}).items()]
        lines.append(f"Answer {status}" + (f": {', '.join(kinds)}" if kinds else ""))
    return text + "\n" + "  \n".join(lines) + "\n"


def _schema(name: str, schema: dict[str, Any]) -> str:
    text = f"### {name}\n"
    if schema.get("description"):
        text += f"\n{prose(schema['description'])}\n"
    if "enum" in schema:
        return f"{text}\n{prose(_type(schema))}\n"
    required = schema.get("required", [])
    return text + "\n" + table(("field", "type", "required", "meaning"), (
        (code(field), cell(_type(part)), "yes" if field in required else "no", cell(part.get("description", "")))
        for field, part in schema.get("properties", {}).items()))


def page(root: Path) -> str:
    document = json.loads((root / SOURCE).read_text())
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["other"])[0]
            by_tag.setdefault(tag, []).append(_operation(method, path, operation))
    text = head("REST API", SOURCE, TEXT)
    for tag, operations in by_tag.items():
        text += f"\n## {tag.replace('-', ' ').capitalize()}\n\n" + "\n".join(operations)
    text += "\n## Schemas\n\n"
    return text + "\n".join(_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items()))
