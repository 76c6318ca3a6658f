"""The example files of engine/contract."""

import json
from pathlib import Path
from typing import Any

CONTRACT = Path(__file__).resolve().parents[3] / "engine" / "contract"


def example(name: str) -> dict[str, Any]:
    return dict(json.loads((CONTRACT / f"{name}.example.json").read_text()))
