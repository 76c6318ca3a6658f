"""Components' counters and gauges: engine/contract/component-numbers.json has exactly those that the engine's sources
send; no other is in the contract's examples, or read by the engine's Prometheus metrics, the control plane or
the console."""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

from component_states import COMPONENTS as STATED
from sources import ROOT, shown, source_files

CONTRACT = ROOT / "engine/contract/component-numbers.json"
SOURCES = ROOT / "engine/src"
EXAMPLES = ("stats.example.json", "stats.fanout.example.json", "stats-history.example.json")
COMPONENTS = {
    **STATED, "capture/wal/wal_capture": "LOGMINER BUILDER", "queue/spilling_consumer": "QUEUE SPILL",
}  # fmt: skip
"""The component that a source belongs to, by the beginning of its path."""

READERS = ("backend/thalweg/", "frontend/src/")
KINDS = ("counters", "gauges")
Numbers = dict[str, dict[str, set[str]]]  # by component and kind
# Where numbers are sent: a sample's member, a function that returns that member, one that is added.
SENT = re.compile(
    r"\.(counters|gauges) = (\{\{.*?\}\})[,}]|::(counters|gauges)\(\) const \{\s*return (\{\{.*?\}\});", re.DOTALL
)
ADDED = re.compile(r"\b(counters|gauges)\.emplace_back\((\"\w+\")")
NAME = re.compile(r'"([a-z]\w*)"')
# Where they are read.
METRIC = re.compile(r'^    \{"(\w+)",\s*\{"thalweg_', re.MULTILINE)
IN_BACKEND = re.compile(
    r"""(?:\b(?:gauges|values|rates|gauge_peaks)\.get\(|\bgauges\[|\bgauge_seconds\(|\brate_of\([^"()]*, """
    r"""|\bclues\.rate\([^"]*?, )"([a-z]\w*)"|"([a-z]\w*)" in component\.gauges"""
)
IN_CONSOLE = re.compile(r"\b(?:gauges|counters|counter_rates)\??\.(\w+)|\"gauges\.(\w+)\"")


def main() -> int:
    listed = {
        component: {kind: set(names[kind]) for kind in KINDS}
        for component, names in json.loads(CONTRACT.read_text())["components"].items()
    }
    problems = [*differences(listed, _sent()), *_unlisted_examples(listed)]
    names = {name for kinds in listed.values() for kind in KINDS for name in kinds[kind]}
    problems += [f"{where}: reads {name}, which no component sends" for where, name in _read() if name not in names]
    print("\n".join(problems) or "components' counters and gauges are those that the engine sends")
    return 1 if problems else 0


def differences(listed: Numbers, sent: Numbers) -> Iterator[str]:
    name = shown(CONTRACT)
    yield from (f"{name}: lacks {number}" for number in sorted(_flat(sent) - _flat(listed)))
    yield from (f"{name}: no source sends {number}" for number in sorted(_flat(listed) - _flat(sent)))


def _unlisted_examples(listed: Numbers) -> Iterator[str]:
    for example in EXAMPLES:
        numbers = _flat(_shown(json.loads((CONTRACT.parent / example).read_text()))) - _flat(listed)
        yield from (f"engine/contract/{example}: shows {number}, which is not listed" for number in sorted(numbers))


def _flat(numbers: Numbers) -> set[str]:
    return {
        f"{component}'s {name} ({kind})"
        for component, kinds in numbers.items()
        for kind, names in kinds.items()
        for name in names
    }


def sent_in(text: str) -> Iterator[tuple[str, str]]:
    for member, numbers, function, returned in SENT.findall(text):
        yield from ((member or function, name) for name in NAME.findall(numbers or returned))
    yield from ((kind, name.strip('"')) for kind, name in ADDED.findall(text))


def read_in(suffix: str, text: str) -> Iterator[str]:
    pattern = IN_BACKEND if suffix == ".py" else IN_CONSOLE
    yield from ("".join(groups) for groups in pattern.findall(text))


def _sent() -> Numbers:
    numbers: Numbers = {}
    for path in source_files(".cc"):
        if not path.is_relative_to(SOURCES) or re.search(r"_(?:test|bench|fuzz)\.", path.name):
            continue
        name = path.relative_to(SOURCES).as_posix()
        component = next((component for start, component in COMPONENTS.items() if name.startswith(start)), name)
        for kind, number in sent_in(path.read_text()):
            numbers.setdefault(component, {}).setdefault(kind, set()).add(number)
    return numbers


def _shown(example: Any) -> Numbers:
    """Those of all components somewhere in a document."""
    if not isinstance(example, dict):
        return {}
    numbers: Numbers = {}
    if "gauges" in example:
        numbers[example["sub_component"] or example["type"]] = {kind: set(example[kind]) for kind in KINDS}
    for member in example.values():
        for item in member if isinstance(member, list) else [member]:
            for component, kinds in _shown(item).items():
                for kind, names in kinds.items():
                    numbers.setdefault(component, {}).setdefault(kind, set()).update(names)
    return numbers


def _read() -> Iterator[tuple[str, str]]:
    metrics = SOURCES / "control/metrics.cc"
    yield from ((shown(metrics), name) for name in METRIC.findall(metrics.read_text()))
    for path in source_files(".py", ".ts", ".tsx"):
        where = shown(path)
        if where.startswith(READERS) and not re.search(r"\.test\.|/test/|/generated/", where):
            yield from ((where, name) for name in read_in(path.suffix, path.read_text()))


if __name__ == "__main__":
    sys.exit(main())
