"""Nobody waits for an error that nobody sends: a code that is compared with, or made up by a test, is in a catalogue.

The engine's errors are in engine/contract/errors.json, the API's problems in TITLES of the backend. Codes that the
tests of the engine compare are the engine's alone."""

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from sources import ROOT, shown

ERRORS = ROOT / "engine" / "contract" / "errors.json"
PROBLEMS = ROOT / "backend" / "thalweg" / "kernel" / "problems.py"
ENGINE_TESTS = ("engine/test/system", "engine/bench")
CONSOLE = ("frontend/src", "e2e/journeys")
COMPARED = re.compile(r"\bcode\s*[!=]==\s*\"(\w+)\"")
CODE_NAMES = ("code", "error_code")


def main() -> int:
    engine = {error["code"] for error in json.loads(ERRORS.read_text())["errors"]}
    problems = _titles()
    found: list[str] = []
    for path in _python("backend/thalweg"):
        found += [*_compared(path, engine | problems), *_documents(path, engine)]
    for path in _python("backend/tests"):  # which compare codes of findings and notices, too
        found += _documents(path, engine)
    for folder in ENGINE_TESTS:
        for path in _python(folder):
            found += _compared(path, engine)
    for folder in CONSOLE:
        for path in sorted((ROOT / folder).rglob("*.ts*")):
            for match in COMPARED.finditer(path.read_text()):
                if match[1] not in engine | problems:
                    found.append(f"{shown(path)}: no error has the code {match[1]}")
    print("\n".join(found) or "every code is known")
    return 1 if found else 0


def _python(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def _titles() -> set[str]:
    for node in ast.parse(PROBLEMS.read_text()).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "TITLES":
            assert node.value is not None
            return set(ast.literal_eval(node.value))
    raise SystemExit(f"{shown(PROBLEMS)}: no TITLES found")


def _compared(path: Path, known: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare) and _is_code(node.left):
            for code in (code for comparator in node.comparators for code in _literals(comparator)):
                if code not in known:
                    yield f"{shown(path)}:{node.lineno}: no error has the code {code}"


def _documents(path: Path, engine: set[str]) -> Iterator[str]:
    """An engine's error document has a code and a class."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Dict):
            members = {key.value: value for key, value in zip(node.keys, node.values, strict=True)
                       if isinstance(key, ast.Constant)}
            if {"code", "class"} <= members.keys():
                for code in _literals(members["code"]):
                    if code not in engine:
                        yield f"{shown(path)}:{node.lineno}: no engine says {code}"


def _is_code(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name in CODE_NAMES
        case ast.Subscript(slice=ast.Constant(value=name)):
            return name in CODE_NAMES
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=name), *_]):
            return name in CODE_NAMES
    return False


def _literals(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return [text for part in parts for text in _literals(part)]
    return []


if __name__ == "__main__":
    sys.exit(main())
