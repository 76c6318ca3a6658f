"""The engine's error catalogue, read from its contract, and the sources that are written from it."""

import json
from dataclasses import dataclass
from pathlib import Path

SOURCE = "engine/contract/errors.json"
SIDES = ("source", "destination", "link", "engine")
WRITTEN = f"Written by `make docs` from {SOURCE}. Do not edit."


@dataclass(frozen=True)
class EngineError:
    """`side` is None where each error says its own."""

    code: str
    kind: str
    side: str | None
    title: str
    cure: str


def classes(root: Path) -> dict[str, str]:
    """The meaning of each class, by its name."""
    found: dict[str, str] = json.loads((root / SOURCE).read_text())["classes"]
    return found


def engine_errors(root: Path) -> list[EngineError]:
    document = json.loads((root / SOURCE).read_text())
    errors = [
        EngineError(error["code"], error["class"], error["side"], error["title"], error["cure"])
        for error in document["errors"]
    ]
    codes = [error.code for error in errors]
    if codes != sorted(set(codes)):
        raise SystemExit(f"{SOURCE}: the errors are not sorted by code, each code once")
    for error in errors:
        if error.kind not in document["classes"]:
            raise SystemExit(f"{SOURCE}: {error.code} has the class {error.kind}, which `classes` does not explain")
        if error.side is not None and error.side not in SIDES:
            raise SystemExit(f"{SOURCE}: {error.code} has the side {error.side}; there are {', '.join(SIDES)}")
    return errors


def cpp(root: Path) -> str:
    lines = [f"// {WRITTEN}", "// THALWEG_ERROR(code, class, side, title, cure), sorted by code."]
    for error in engine_errors(root):
        title, cure = json.dumps(error.title, ensure_ascii=False), json.dumps(error.cure, ensure_ascii=False)
        fields = f"{error.code}, {error.kind}, {error.side or 'unknown'}, {title}"
        lines.append(f"THALWEG_ERROR({fields},\n              {cure})")
    return "\n".join(lines) + "\n"


def python(root: Path) -> str:
    errors = engine_errors(root)
    lines = [
        f'"""The errors of engines by name. {WRITTEN}"""',
        "",
        "from enum import StrEnum",
        "",
        "",
        "class ErrorSide(StrEnum):",
        '    """Where the trouble is."""',
        "",
        *(f'    {side.upper()} = "{side}"' for side in SIDES),
        "",
        "",
        "class ErrorCode(StrEnum):",
        *(f'    {error.code.upper()} = "{error.code}"' for error in errors),
        "",
        "",
        "SIDES = {",
        *(f"    ErrorCode.{error.code.upper()}: ErrorSide.{error.side.upper()}," for error in errors if error.side),
        "}",
        '"""The sides of errors whose code implies one; the others arise on several sides."""',
    ]
    return "\n".join(lines) + "\n"


def typescript(root: Path) -> str:
    codes = "\n".join(f'  | "{error.code}"' for error in engine_errors(root))
    comment = "/** The codes of the errors that engines report. */"
    return f"// {WRITTEN}\n\n{comment}\nexport type EngineErrorCode =\n{codes};\n"
