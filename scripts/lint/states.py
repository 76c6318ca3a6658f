"""States are spelt in one place, kernel/lifecycle.py: elsewhere in the backend its enums stand, never a string."""

import ast
import sys
from collections.abc import Iterator

from sources import ROOT, shown

PACKAGE = ROOT / "backend/thalweg"
LIFECYCLE = PACKAGE / "kernel/lifecycle.py"
ENDINGS = ("Status", "Phase", "State", "Stage", "Kind")
# The same words in another sense, by file.
ALLOWED = {
    "cli/commands/advisor.py": {"ABORTED": "the end of a verdict"},
    "cli/commands/destinations.py": {"running": "a word of the command's answer"},
    "cli/commands/users.py": {"ENABLED": "a column's heading"},
    "inspection/preflight_source.py": {"FULL": "a replica identity"},
}


def main() -> int:
    states = states_of(LIFECYCLE.read_text())
    problems = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path == LIFECYCLE:
            continue
        allowed = ALLOWED.get(path.relative_to(PACKAGE).as_posix(), {})
        found = list(literals(path.read_text(), states))
        problems += [
            f'{shown(path)}:{line}: "{word}": write {" or ".join(states[word])}'
            for line, word in found if word not in allowed
        ]
        unused = allowed.keys() - {word for _, word in found}
        problems += [f'{shown(path)}: "{word}" does not occur any more; take it out of ALLOWED' for word in unused]
    print("\n".join(problems) or "states are spelt in one place")
    return 1 if problems else 0


def states_of(text: str) -> dict[str, list[str]]:
    """The enums' members by their values."""
    found: dict[str, list[str]] = {}
    for enum in _enums(ast.parse(text)):
        if enum.name.endswith(ENDINGS):
            for member, value in _members(enum):
                found.setdefault(value, []).append(f"{enum.name}.{member}")
    return found


def literals(text: str, states: dict[str, list[str]]) -> Iterator[tuple[int, str]]:
    """Line and word. Members of other enums may have the same value: an alert is pending, too."""
    tree = ast.parse(text)
    members = {id(node) for enum in _enums(tree) for node in ast.walk(enum)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in states and id(node) not in members:
            yield node.lineno, str(node.value)


def _enums(tree: ast.AST) -> Iterator[ast.ClassDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "StrEnum" for base in node.bases):
            yield node


def _members(enum: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for node in enum.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            yield ast.unparse(node.targets[0]), str(node.value.value)


if __name__ == "__main__":
    sys.exit(main())
