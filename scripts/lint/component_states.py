"""Component states: engine/contract/component-states.json has exactly those that the engine's sources set, and the
console has words for exactly these."""

import json
import re
import sys
from collections.abc import Iterator

from sources import ROOT, shown, source_files

CONTRACT = ROOT / "engine/contract/component-states.json"
SOURCES = ROOT / "engine/src"
CONSOLE = ROOT / "frontend/src/lib/states.ts"
# The component that a source belongs to, by the beginning of its path.
COMPONENTS = {
    "capture/capture_agent": "CAPTURE",
    "capture/logical/logical_capture": "CAPTURE",
    "capture/wal/wal_capture": "CAPTURE",
    "capture/wal/wal_shipment": "WAL SHIPMENT",
    "daemon/queue_sample": "QUEUE",
    "daemon/independent_destination_view": "QUEUE SPILL",
    "propagation/batch_packer": "PROPAGATION SENDER",
    "propagation/sender": "PROPAGATION SENDER",
    "propagation/receiver": "PROPAGATION RECEIVER",
    "apply/reader/reader": "APPLY READER",
    "apply/coordinator/coordinator": "APPLY COORDINATOR",
    "apply/applier/": "APPLY SERVER",
}
# Where a state is set: a StateText's first one, a later one, one that a sample computes.
SET = re.compile(r"\bStateText \w+\{([^}]*)\}|(?:\bstate_?|_state|\btext)\.set\(([^;]*)\);")
SAMPLED = re.compile(r"\.state = ([^;{}]*?),\s*\.time_ns")
STATE = re.compile(r'"([A-Z][A-Z: -]+)"')
WORDS = re.compile(r'^  (?:"([A-Z][A-Z: -]*)"|([A-Z]+)): \[', re.MULTILINE)


def main() -> int:
    listed: dict[str, list[str]] = json.loads(CONTRACT.read_text())["states"]
    set_states: dict[str, set[str]] = {component: set() for component in listed}
    problems = []
    for name, text in _texts():
        states = states_in(text)
        component = next((component for start, component in COMPONENTS.items() if name.startswith(start)), None)
        if component is not None:
            set_states.setdefault(component, set()).update(states)
        elif states:
            problems.append(f"engine/src/{name}: sets {', '.join(sorted(states))}; add it to COMPONENTS")
    for component in sorted(set_states):
        problems += differences(component, set(listed.get(component, ())), set_states[component])
    problems += unworded({state for states in listed.values() for state in states}, CONSOLE.read_text())
    print("\n".join(problems) or "component states are those that the engine sends")
    return 1 if problems else 0


def _texts() -> Iterator[tuple[str, str]]:
    for path in source_files(".h", ".cc"):
        if path.is_relative_to(SOURCES) and not re.search(r"_(?:test|bench|fuzz)\.|example_streams", path.name):
            yield path.relative_to(SOURCES).as_posix(), path.read_text()


def states_in(text: str) -> set[str]:
    settings = [match[1] or match[2] for match in SET.finditer(text)] + SAMPLED.findall(text)
    return {state for setting in settings for state in STATE.findall(setting)}


def differences(component: str, listed: set[str], found: set[str]) -> list[str]:
    name = shown(CONTRACT)
    return [f"{name}: lacks {component}'s {state}" for state in sorted(found - listed)] + [
        f"{name}: no source sets {component}'s {state}" for state in sorted(listed - found)
    ]


def unworded(states: set[str], console: str) -> list[str]:
    of_components, _, of_api = console.partition("const ofApi")
    own = {quoted or plain for quoted, plain in WORDS.findall(of_components)}
    worded = own | {quoted or plain for quoted, plain in WORDS.findall(of_api)}
    return [f"{shown(CONSOLE)}: no words for {state}" for state in sorted(states - worded)] + [
        f"{shown(CONSOLE)}: no component has the state {state}" for state in sorted(own - states)
    ]


if __name__ == "__main__":
    sys.exit(main())
