"""docs/reference/errors.md: the engine's error catalogue, and the problem types of the REST API."""

import ast
from pathlib import Path

import catalogue
from markdown import cell, code, head, table

PROBLEMS = "backend/thalweg/kernel/problems.py"

TEXT = """
Every error has a stable code, the same in the API, the console and the logs. Scripts may match on it.
"""

SIDE = """The side of an error is the place of the fault: the `source`, the `destination`, the `link` between two
engines, or the `engine` itself. If the table names none, each error has its own side: a lost connection has the side
of its database. The side is null if the engine cannot tell.
"""


def _api_problems(root: Path) -> list[tuple[str, int, str]]:
    """TITLES is a literal, so it is read without importing the backend."""
    for node in ast.parse((root / PROBLEMS).read_text()).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "TITLES":
            assert node.value is not None
            titles: dict[str, tuple[int, str]] = ast.literal_eval(node.value)
            return sorted((name, status, title) for name, (status, title) in titles.items())
    raise SystemExit(f"{PROBLEMS}: no TITLES found")


def page(root: Path) -> str:
    classes = "".join(f"* `{name}`: {words}.\n" for name, words in catalogue.classes(root).items())
    engine = table(
        ("code", "class", "side", "what it means", "cure"),
        (
            (code(error.code), code(error.kind), code(error.side or ""), cell(error.title), cell(error.cure))
            for error in catalogue.engine_errors(root)
        ),
    )
    problems = table(
        ("code", "status", "title"),
        ((code(name), str(status), cell(title)) for name, status, title in _api_problems(root)),
    )
    return (
        head("Errors", f"{catalogue.SOURCE} and {PROBLEMS}", TEXT)
        + "\n## Of streams\n\nA stream's `error` holds one of these. Its class says who heals it:\n\n"
        + f"{classes}\n{SIDE}\n{engine}"
        + "\n## Of the REST API\n\nProblem details (RFC 9457) as `application/problem+json`. `type` is "
        + "`urn:thalweg:problem:` and the code;\n`detail` says what happened this time, `cure` what to do, `sql` holds "
        + "the cure as SQL where there is one, and `errors`\nnames single fields or checks.\n\n"
        + problems
    )
