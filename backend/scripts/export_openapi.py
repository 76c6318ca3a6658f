"""Writes backend/openapi.json, from which the console's types are generated. `--check` fails when it is stale."""

import json
import sys
from pathlib import Path

from thalweg.api import create_app

TARGET = Path(__file__).resolve().parents[1] / "openapi.json"


def rendered() -> str:
    return json.dumps(create_app().openapi(), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    text = rendered()
    if "--check" in sys.argv:
        if TARGET.read_text() != text:
            print("backend/openapi.json is stale: run backend/scripts/export_openapi.py", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
