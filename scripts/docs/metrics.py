"""docs/reference/metrics.md: what /metrics of engines and of the control plane serve, and to whom."""

import json
from pathlib import Path

from markdown import cell, code, head, table

SOURCE = "engine/contract/metrics.json"
TEXT = """
Engines and the control plane serve metrics at `/metrics`, in Prometheus' text format. Without a token they answer 401.

An engine serves them on its control port. The token is its control token, the content of its `--token-file`:

```
curl -H "Authorization: Bearer $(cat .thalweg/secrets/engine-token)" http://127.0.0.1:8643/metrics
```

The control plane serves its own at the console's address: requests by route, and `thalweg_alerts`, the open alerts by
alert rule, severity and state. The token is an API token. One with the role `metrics` can read this and nothing else:

```
thalweg tokens add prometheus --role metrics --days 365 > thalweg-token
```

Configure Prometheus as follows, with both tokens in files that only Prometheus may read:

```yaml
scrape_configs:
  - job_name: thalweg-engines
    authorization:
      credentials_file: /etc/prometheus/thalweg-engine-token
    static_configs:
      - targets: ["127.0.0.1:8643"]
  - job_name: thalweg
    authorization:
      credentials_file: /etc/prometheus/thalweg-token
    static_configs:
      - targets: ["127.0.0.1:8642"]
```

## Of an engine
"""


def page(root: Path) -> str:
    metrics = json.loads((root / SOURCE).read_text())["metrics"]
    return head("Metrics", SOURCE, TEXT) + "\n" + table(
        ("name", "type", "unit", "labels", "what it counts"),
        ((code(metric["name"]), metric["type"], metric["unit"], ", ".join(code(label) for label in metric["labels"]),
          cell(metric["help"])) for metric in sorted(metrics, key=lambda metric: str(metric["name"]))),
    )
