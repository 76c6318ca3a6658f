"""The engine's layers: a component includes only what its thalweg_component(... USES ...) line names.

The table is engine/CMakeLists.txt itself, so there is one place where a direction is allowed. ARCHITECTURE.md says
which components own a library's headers, and lists every source that starts a thread.
"""

import re
import sys

from sources import ROOT, shown, source_files

ENGINE = ROOT / "engine"
MAP = (ROOT / "ARCHITECTURE.md").read_text()
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
COMPONENT = re.compile(r"^thalweg_component\(([^)]*)\)", re.MULTILINE)
THREAD = re.compile(r"\bstd::j?thread(?: \w|\()|\bstd::vector<std::j?thread>|\bstd::async\(|\bthread_pool \w")
# Tests, and the headers that only they include; agent_thread.h starts what its callers own.
FOR_TESTS = re.compile(r"_(?:test|bench|fuzz|harness)\.|/(?:cutting_proxy|scripted_peers|agent_thread)\.h$")
# Wires the concrete parts, so it may use them all.
COMPOSITION_ROOT = "daemon"


def allowed_directions() -> dict[str, set[str]]:
    table: dict[str, set[str]] = {}
    for declaration in COMPONENT.findall((ENGINE / "CMakeLists.txt").read_text()):
        name, *words = declaration.split()
        uses = words[words.index("USES") + 1:] if "USES" in words else []
        table[name] = set(uses[:uses.index("PRIVATE")] if "PRIVATE" in uses else uses) | {name}
    table[COMPOSITION_ROOT] = set(table) | {COMPOSITION_ROOT}
    return table


def header_owners() -> dict[str, set[str]]:
    """By a header's name, or the first folder of its path."""
    return {header.strip("<>").split("/")[0]: {name.rstrip("/") for name in _names(row[1])}
            for row in _rows("## The engine's layers") for header in _names(row[0])}


def main() -> int:
    table = allowed_directions()
    problems = [f"engine/src/{name}: undeclared component" for name in _folders() if name not in table]
    owners_of = header_owners()
    starting: set[str] = set()
    for path in source_files(".h", ".cc", ".inc"):
        if not path.is_relative_to(ENGINE / "src"):
            continue
        file = path.relative_to(ENGINE / "src")
        component = file.parts[0]
        text = path.read_text()
        if THREAD.search(text) and not FOR_TESTS.search(f"/{file.as_posix()}"):
            starting.add(file.with_suffix("").as_posix())
        for number, line in enumerate(text.splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                problem = _problem(component, match[1] == '"', match[2], table, owners_of)
                if problem:
                    problems.append(f"{shown(path)}:{number}: {problem}")
    problems += _thread_problems(starting)
    print("\n".join(problems) or f"{len(table)} components keep their directions")
    return 1 if problems else 0


def _problem(component: str, is_own: bool, header: str, table: dict[str, set[str]],
             owners_of: dict[str, set[str]]) -> str:
    owners = owners_of.get(header.split("/")[0])
    if owners and component not in owners:
        return f"{header} belongs to {', '.join(sorted(owners))}"
    used = header.split("/")[0]
    if is_own and used in table and used not in table.get(component, set()):
        return f"{component} may not use {used} ({header})"
    return ""


def _thread_problems(starting: set[str]) -> list[str]:
    named = {name for row in _rows("### Threads") for name in _names(row[0])}
    return [f"engine/src/{file}: starts a thread that ARCHITECTURE.md's table does not list"
            for file in sorted(starting - named)] + [
        f"ARCHITECTURE.md: engine/src/{file} starts no thread" for file in sorted(named - starting)]


def _rows(heading: str) -> list[list[str]]:
    section = re.split(r"^#+ .*\n", MAP.partition(f"{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return [row.strip("|").split("|") for row in section.splitlines() if row.startswith("|")]


def _names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _folders() -> list[str]:
    return sorted(path.name for path in (ENGINE / "src").iterdir() if path.is_dir() and any(path.rglob("*.cc")))


if __name__ == "__main__":
    sys.exit(main())
