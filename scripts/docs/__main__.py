"""Writes what is made from contracts, so that it cannot contradict them: reference pages, and the error catalogue in
the languages of engine, backend and console.

usage: python3 scripts/docs             writes them
       python3 scripts/docs --check     writes nothing; fails when a file is stale
"""

import sys
from collections.abc import Callable
from pathlib import Path

import catalogue
import errors
import metrics
import parameters
import rest

ROOT = Path(__file__).resolve().parents[2]

FILES: dict[str, Callable[[Path], str]] = {
    "engine/src/base/error_catalogue.inc": catalogue.cpp,
    "backend/thalweg/engine_client/error_codes.py": catalogue.python,
    "frontend/src/lib/engine-errors.generated.ts": catalogue.typescript,
    "docs/reference/errors.md": errors.page,
    "docs/reference/metrics.md": metrics.page,
    "docs/reference/parameters.md": parameters.page,
    "docs/reference/rest.md": rest.page,
}


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = []
    for name, make in FILES.items():
        path = ROOT / name
        text = make(ROOT).rstrip("\n") + "\n"
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {name}")
    if arguments and stale:
        print(f"Stale: {', '.join(stale)}. Run 'make docs' and commit what it writes.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
