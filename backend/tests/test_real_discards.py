"""A parked transaction that is discarded, with the real engine: what the audit log keeps of it."""

import json
from typing import Any

import httpx

from tests.conftest import Sides
from tests.features.test_streams import STREAMS
from tests.test_collector import collector  # noqa: F401
from tests.test_real_engine import parked, stream, thalwegd  # noqa: F401


async def test_the_audit_log_keeps_whole_values_of_a_discarded_transaction(
    admin: httpx.AsyncClient,
    operator: httpx.AsyncClient,
    stream: dict[str, Any],  # noqa: F811
    sides: Sides,
) -> None:
    path = f"{STREAMS}/{stream['id']}"
    for on in (sides.on_destination, sides.on_source):
        on("ALTER TABLE orders ADD image bytea")
    sides.on_destination("INSERT INTO orders VALUES (1000, 'right as it is', 1)")
    large = "(1000, repeat('é', 150000), 2, repeat('z', 5000000)::bytea)"
    sides.on_source(f"INSERT INTO orders SELECT n, 'one of many', 1 FROM generate_series(1001, 1599) n; "
                    f"INSERT INTO orders VALUES {large}")  # fmt: skip
    (error,) = await parked(operator, path, 1)
    assert error["lcrs"] == 600
    why = {"reason": "1000 is right as it is"}
    answer = await operator.delete(f"{path}/destinations/warehouse/errors/{error['id']}", params=why)
    assert answer.status_code == 204, answer.text
    entries = (await admin.get("/api/v1/audit", params={"target_id": stream["id"]})).json()["items"]
    entry = next(entry for entry in entries if entry["action"] == "stream_errors_delete")
    assert (entry["after"]["changes_kept"], "values_cut" in entry["after"]) == (600, False)
    lines = (await admin.get(f"/api/v1/audit/{entry['id']}:changes")).text.splitlines()
    changes = [json.loads(line) for line in lines]
    assert [change["number"] for change in changes] == list(range(1, 601))
    wanted = {column["name"]: column["wanted"] for column in changes[-1]["columns"]}
    assert (wanted["item"]["text"] == "é" * 150_000, wanted["item"]["cut"]) == (True, False)
    assert (wanted["image"]["text"] == "\\x" + "7a" * 5_000_000, wanted["image"]["cut"]) == (True, False)
    assert {column["name"]: column["now"]["text"] for column in changes[-1]["columns"]}["item"] == "right as it is"
