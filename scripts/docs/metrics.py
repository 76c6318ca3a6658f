"""docs/reference/metrics.md: what an engine's /metrics serves."""

import json
from pathlib import Path

from markdown import cell, code, head, table

SOURCE = "engine/contract/metrics.json"
TEXT = """
Each engine serves them on its control port at `/metrics`, in Prometheus' text format, to whoever sends its token:

```
curl -H "Authorization: Bearer $(cat .thalweg/secrets/engine-token)" http://127.0.0.1:8643/metrics
```
"""


def page(root: Path) -> str:
    metrics = json.loads((root / SOURCE).read_text())["metrics"]
    return head("Metrics", SOURCE, TEXT) + "\n" + table(
        ("name", "type", "unit", "labels", "what it counts"),
        ((code(one["name"]), one["type"], one["unit"], ", ".join(code(label) for label in one["labels"]),
          cell(one["help"])) for one in sorted(metrics, key=lambda one: str(one["name"]))),
    )
