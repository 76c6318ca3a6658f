"""The OpenAPI document is one that clients can be generated from, and that names each operation's failures."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCUMENT: dict[str, Any] = json.loads((Path(__file__).resolve().parents[1] / "openapi.json").read_text())
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
PROBLEM = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}", operation


def test_every_schema_has_a_name_that_every_language_can_have() -> None:
    assert [name for name in SCHEMAS if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", name)] == []
    # A generator names a class by the title where there is one.
    assert {name: schema["title"] for name, schema in SCHEMAS.items() if schema.get("title", name) != name} == {}
    assert [name for name, count in Counter(map(str.lower, SCHEMAS)).items() if count > 1] == []


def test_every_operation_has_a_name_a_summary_and_a_tag() -> None:
    named = Counter(operation["operationId"] for _, operation in operations())
    assert [name for name, count in named.items() if count > 1] == []
    assert [name for name in named if not re.fullmatch(r"[a-z][a-z_]*[a-z]", name)] == []
    assert [where for where, operation in operations() if not operation.get("summary")] == []
    assert [where for where, operation in operations() if len(operation.get("tags", [])) != 1] == []


def test_every_operation_names_its_failures_as_problems() -> None:
    for where, operation in operations():
        failures = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
        assert failures.keys() >= {"400", "422"}, where
        for status, answer in failures.items():
            if (where, status) != ("GET /readyz", "503"):
                assert answer["content"]["application/problem+json"] == PROBLEM, (where, status)
        if operation.get("security") != [] and where not in ("GET /healthz", "GET /readyz"):
            assert failures.keys() >= {"401", "403"}, where


def reached(paths: Iterator[str]) -> set[str]:
    """The schemas that these paths use, and those that they use in turn."""
    names: set[str] = set()
    found = [json.dumps(DOCUMENT["paths"][path]) for path in paths]
    while found:
        new = set(re.findall(r"#/components/schemas/(\w+)", found.pop())) - names
        names |= new
        found += [json.dumps(SCHEMAS[name]) for name in new]
    return names


def test_rules_of_alerts_and_of_tables_differ_by_name() -> None:
    """docs/decisions/words-of-rules.md."""
    of_alerts = reached(path for path in DOCUMENT["paths"] if path.startswith("/api/v1/alerts"))
    assert {name for name in of_alerts if "Rule" in name} >= {"AlertRule", "AlertRuleId"}
    assert {name for name in of_alerts if "Rule" in name and not name.startswith("Alert")} == set()
    of_streams = reached(path for path in DOCUMENT["paths"] if path.startswith("/api/v1/streams"))
    assert of_streams >= {"TableRules", "TablePattern", "RowRule"}
    assert {name for name in of_streams if name.startswith("AlertRule")} == set()
