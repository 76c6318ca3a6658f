"""docs/reference/errors.md: the engine's error catalogue, and the problem types of the REST API."""

import ast
import re
from pathlib import Path

from markdown import cell, code, head, table

CATALOGUE = "engine/src/base/error_catalogue.inc"
PROBLEMS = "backend/thalweg/kernel/problems.py"

ENTRY = re.compile(
    r"""^THALWEG_ERROR\(
        (?P<code>\w+),\s*(?P<class>\w+),\s*
        (?P<title>(?:"(?:[^"\\]|\\.)*"\s*)+),\s*
        (?P<cure>(?:"(?:[^"\\]|\\.)*"\s*)+)
    \)""",
    re.VERBOSE | re.MULTILINE,
)
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')

CLASSES = {
    "transient": "heals by itself; the engine tries again, with growing pauses",
    "permanent": "does not heal by itself; the stream stops, or the transaction is parked",
    "operator_action": "somebody must change something, usually at a database",
    "corruption": "bytes that must not look like that; the engine goes no further",
}

TEXT = """
An error has a stable code, the same in the API, the console and the logs. Scripts may match on it.
"""


def _text(literals: str) -> str:
    """The text of adjacent C string literals."""
    return "".join(ast.literal_eval(f'"{part}"') for part in LITERAL.findall(literals))


def _engine_errors(root: Path) -> list[tuple[str, str, str, str]]:
    source = (root / CATALOGUE).read_text()
    found = [(m["code"], m["class"], _text(m["title"]), _text(m["cure"])) for m in ENTRY.finditer(source)]
    declared = len(re.findall(r"^THALWEG_ERROR\(", source, re.MULTILINE))
    if len(found) != declared:
        raise SystemExit(f"{CATALOGUE}: {declared} errors, but only {len(found)} could be read")
    unknown = {error[1] for error in found} - CLASSES.keys()
    if unknown:
        raise SystemExit(f"{CATALOGUE}: class without an explanation here: {', '.join(sorted(unknown))}")
    return found


def _api_problems(root: Path) -> list[tuple[str, int, str]]:
    """TITLES is a literal, so it is read without importing the backend."""
    for node in ast.parse((root / PROBLEMS).read_text()).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "TITLES":
            assert node.value is not None
            titles: dict[str, tuple[int, str]] = ast.literal_eval(node.value)
            return sorted((name, status, title) for name, (status, title) in titles.items())
    raise SystemExit(f"{PROBLEMS}: no TITLES found")


def page(root: Path) -> str:
    classes = "".join(f"* `{name}`: {words}.\n" for name, words in CLASSES.items())
    engine = table(
        ("code", "class", "what it means", "cure"),
        ((code(name), code(kind), cell(title), cell(cure)) for name, kind, title, cure in _engine_errors(root)),
    )
    problems = table(
        ("code", "status", "title"),
        ((code(name), str(status), cell(title)) for name, status, title in _api_problems(root)),
    )
    return (
        head("Errors", f"{CATALOGUE} and {PROBLEMS}", TEXT)
        + f"\n## Of streams\n\nWhat a stream's `error` holds. Its class says who heals it:\n\n{classes}\n{engine}"
        + "\n## Of the REST API\n\nProblem details (RFC 9457) as `application/problem+json`. `type` is "
        + "`urn:thalweg:problem:` and the code;\n`detail` says what happened this time, `cure` what to do, `sql` holds "
        + "the cure as SQL where there is one, and `errors`\nnames single fields or checks.\n\n"
        + problems
    )
