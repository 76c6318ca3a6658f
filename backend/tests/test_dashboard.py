"""The Grafana dashboard asks only for metrics and labels that the engine's contract has."""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
METRIC = re.compile(r"\bthalweg_[a-z_]+")
SELECTOR = re.compile(r"(\bthalweg_[a-z_]+)\{([^}]*)\}")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
OF_THE_SCRAPE = {"instance", "job", "le"}


def expressions() -> list[str]:
    document: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana" / "thalweg-streams.json").read_text())
    queries = [variable["query"] for variable in document["templating"]["list"] if variable["type"] == "query"]
    return queries + [target["expr"] for panel in document["panels"] for target in panel["targets"]]


def contract() -> dict[str, set[str]]:
    document = json.loads((ROOT / "engine" / "contract" / "metrics.json").read_text())
    names: dict[str, set[str]] = {}
    for metric in document["metrics"]:
        parts = ("_bucket", "_sum", "_count") if metric["type"] == "histogram" else ("",)
        names.update((metric["name"] + part, set(metric["labels"])) for part in parts)
    return names


def test_dashboard_fits_the_metrics_of_the_contract() -> None:
    known, asked = contract(), 0
    for expression in expressions():
        names = METRIC.findall(expression)
        assert names, expression
        assert set(names) <= known.keys(), expression
        asked += len(names)
        for name, selector in SELECTOR.findall(expression):
            labels = {part.partition("=")[0].rstrip("=~!") for part in selector.split(",") if part}
            assert labels <= known[name], expression
        everywhere = set.intersection(*(known[name] for name in names)) | OF_THE_SCRAPE
        for grouped in GROUPED.findall(expression):
            assert {label.strip() for label in grouped.split(",")} <= everywhere, expression
    assert asked > 10
