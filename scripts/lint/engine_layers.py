"""The engine's layers: a component includes only what its thalweg_component(... USES ...) line names.

The table is engine/CMakeLists.txt itself, so there is one place where a direction is allowed. Third-party headers that
belong to one component: libpq in pg, Boost in control.
"""

import re
import sys

from sources import ROOT, shown, source_files

ENGINE = ROOT / "engine"
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
COMPONENT = re.compile(r"^thalweg_component\(([^)]*)\)", re.MULTILINE)
OWNERS = {"libpq-fe.h": "pg", "libpq/libpq-fs.h": "pg", "boost": "control"}
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


def main() -> int:
    table = allowed_directions()
    problems = [f"engine/src/{name}: undeclared component" for name in _folders() if name not in table]
    for path in source_files(".h", ".cc", ".inc"):
        if not path.is_relative_to(ENGINE / "src"):
            continue
        component = path.relative_to(ENGINE / "src").parts[0]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                problem = _problem(component, match[1] == '"', match[2], table)
                if problem:
                    problems.append(f"{shown(path)}:{number}: {problem}")
    print("\n".join(problems) or f"{len(table)} components keep their directions")
    return 1 if problems else 0


def _problem(component: str, is_own: bool, header: str, table: dict[str, set[str]]) -> str:
    owner = OWNERS.get(header) or OWNERS.get(header.split("/")[0])
    if owner and component != owner:
        return f"{header} belongs to {owner}"
    used = header.split("/")[0]
    if is_own and used in table and used not in table.get(component, set()):
        return f"{component} may not use {used} ({header})"
    return ""


def _folders() -> list[str]:
    return sorted(path.name for path in (ENGINE / "src").iterdir() if path.is_dir() and any(path.rglob("*.cc")))


if __name__ == "__main__":
    sys.exit(main())
