"""Writes the reference pages that are made from contracts, so that they cannot contradict them.

usage: python3 scripts/docs             writes docs/reference
       python3 scripts/docs --check     writes nothing; fails when a page is stale
"""

import sys
from collections.abc import Callable
from pathlib import Path

import errors
import metrics
import parameters
import rest

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"

PAGES: dict[str, Callable[[Path], str]] = {
    "errors.md": errors.page,
    "metrics.md": metrics.page,
    "parameters.md": parameters.page,
    "rest.md": rest.page,
}


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = []
    for name, make in PAGES.items():
        path = REFERENCE / name
        text = make(ROOT).rstrip("\n") + "\n"
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote docs/reference/{name}")
    if arguments and stale:
        print(f"docs/reference is stale: {', '.join(stale)}. Run 'make docs' and commit what it writes.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
