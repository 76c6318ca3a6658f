"""docs/reference/parameters.md: the parameters of a stream."""

import json
import runpy
from pathlib import Path
from typing import Any

from markdown import cell, code, head, table, value

SOURCE = "engine/contract/parameters.json"
OF_MINING = "backend/thalweg/engine_client/mining_limits.py"
TEXT = """
Set parameters when you create a stream, in the wizard or over REST, or later on its page or with
`PATCH /api/v1/streams/{id}`. A *live* parameter takes effect at once, while the stream runs; for any other
one the engine restarts the stream's components. The stream's page tells
[from which position on](../guides/rules.md#changing-rules) a change is in effect. A parameter of the *stream* has one
value, since all destinations share its capture and its queue; a *destination* may override the others.
"""
COMPONENTS = {
    "CAPTURE": "Capture",
    "QUEUE": "Queue",
    "PROPAGATION": "Propagation",
    "APPLY": "Apply",
    "INSTANTIATION": "Initial copy",
}


def _range(parameter: dict[str, Any]) -> str:
    if parameter["type"] == "enum":
        return ", ".join(code(choice) for choice in parameter["values"])
    if parameter["type"] == "boolean":
        return "`true`, `false`"
    if parameter["type"] == "conflict_handlers":
        return "[handlers](../guides/conflicts.md#handlers)"
    if parameter["type"] == "conflict_detection":
        return "[tables](../guides/conflicts.md#rows-that-somebody-else-has-changed)"
    if parameter["type"] == "statement_handlers":
        return "[statements](../guides/statement-handlers.md)"
    if parameter["type"] == "error_policies":
        return "[policies](../guides/error-queue.md#a-policy-for-each-error)"
    if parameter["type"] == "text":
        return f"up to {parameter['maximum']} characters"
    unit = f" {parameter['unit']}" if parameter.get("unit") else ""
    return cell(f"{parameter['minimum']:,} to {parameter['maximum']:,}{unit}".replace(",", "\u202f"))


def page(root: Path) -> str:
    parameters = json.loads((root / SOURCE).read_text())["parameters"]
    parameters += runpy.run_path(str(root / OF_MINING))["MINING_LIMITS"]
    text = head("Stream parameters", f"{SOURCE} and {OF_MINING}", TEXT)
    components = list(dict.fromkeys(parameter["component"] for parameter in parameters))
    for component in sorted(components, key=list(COMPONENTS).index):
        text += f"\n## {COMPONENTS[component]}\n\n" + table(
            ("parameter", "default", "range", "scope", "live", "what it does"),
            ((code(parameter["name"]), value(parameter["default"]), _range(parameter), parameter["scope"].lower(),
              "yes" if parameter["live"] else "no", cell(parameter["description"]))
             for parameter in parameters if parameter["component"] == component),
        )
    return text
