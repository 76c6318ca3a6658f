"""Transactions on their way, and markers: what the stream's engines tell, put together."""

import httpx

from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble, example
from tests.test_collector import collector, wait_for  # noqa: F401
from thalweg.engine_client.documents import Markers
from thalweg.features.tracking.way import markers_of
from thalweg.workers.collector import Collector


async def test_transactions_are_those_of_the_engine(
    viewer: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    collector: Collector,  # noqa: F811
) -> None:  # fmt: skip
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    await wait_for(operator, path, status="ENABLED")
    shown = (await viewer.get(f"{path}/transactions")).json()
    assert [transaction["xid"] for transaction in shown["transactions"]] == [880, 913, 912, 915]
    assert shown["transactions"][0]["age_seconds"] == 61
    assert (shown["open"], shown["waiting"], shown["executing"]) == (1, 2, 1)
    retried = shown["transactions"][1]
    assert (retried["state"], retried["retry"]["number"], retried["retry"]["times"]) == ("WAIT RETRY", 2, 10)
    assert retried["retry"]["detail"] is None and "id = 7" not in str(shown), "viewers see no row"
    told = (await operator.get(f"{path}/transactions")).json()["transactions"][1]["retry"]
    assert "(id = 7)" in told["detail"] and told["at"] == "2026-11-21T10:00:30Z"
    assert (await viewer.get(f"{STREAMS}/nosuchstream/transactions")).status_code == 404


async def test_a_marker_is_placed_and_its_way_is_shown(
    viewer: httpx.AsyncClient, operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble,
    collector: Collector,  # noqa: F811
) -> None:  # fmt: skip
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    await wait_for(operator, path, status="ENABLED")
    assert (await viewer.post(f"{path}/markers", json={})).status_code == 403
    answer = await operator.post(f"{path}/markers", json={"label": "after the index"})
    assert (answer.status_code, answer.json()["state"]) == (202, "WAITING")
    waiting = (await viewer.get(answer.headers["location"])).json()
    assert (waiting["label"], waiting["state"], waiting["hops"]) == ("after the index", "WAITING", [])
    refused = await operator.post(f"{path}/markers", json={"label": "refused"})
    assert (refused.status_code, refused.json()["cure"]) == (409, "Do it right.")

    markers = (await viewer.get(f"{path}/markers")).json()["markers"]
    assert [marker["kind"] for marker in markers] == ["TRACKED", "TRACKED", "TRACKED", "HEARTBEAT"]
    arrived = next(marker for marker in markers if marker["id"] == "m7x3c9v1")
    assert (arrived["state"], arrived["latency_ms"]) == ("ARRIVED", 3.0)
    assert [(hop["stage"], hop["step_ms"]) for hop in arrived["hops"]] == [
        ("CAPTURE", 0.6), ("ENQUEUE", 0.1), ("DEQUEUE", 0.1), ("DISPATCH", 0.1), ("COMMIT", 2.1),
    ]  # fmt: skip
    # The heartbeat has been captured and has not arrived.
    assert (markers[-1]["state"], markers[-1]["latency_ms"], len(markers[-1]["hops"])) == ("CAPTURED", None, 2)


def test_a_way_over_two_engines_to_several_destinations() -> None:
    whole = example("markers")
    capturing = Markers.model_validate({**whole, "stages": whole["stages"][:2]})
    apply = [{**stage, "destination": name} for name in ("near", "far") for stage in whole["stages"][2:]]
    applying = Markers.model_validate({"placed": [], "stages": apply})
    marker = next(marker for marker in markers_of([("c", capturing), ("a", applying)]) if marker.id == "m7x3c9v1")
    assert [(hop.engine_id, hop.destination_id) for hop in marker.hops] == [
        *[("c", None)] * 2, *[("a", "far")] * 3, *[("a", "near")] * 3,
    ]  # fmt: skip
    assert marker.hops[2].step_ms == marker.hops[5].step_ms == 0.1
    assert marker.state == "ARRIVED"
    without = Markers.model_validate({"placed": [], "stages": [*apply[:5], {**apply[5], "passages": []}]})
    assert (
        next(marker for marker in markers_of([("c", capturing), ("a", without)]) if marker.id == "m7x3c9v1").state
        == "CAPTURED"
    )
