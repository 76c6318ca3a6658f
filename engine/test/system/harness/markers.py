"""The way of a marker, put together from what each engine saw of it."""

from harness.engine import Engine


def way(engines: list[Engine], stream: str, marker: str | None) -> dict[str, str]:
    """Of the marker with this id, or of the newest heartbeat: the time at each stage, the source's commit first."""
    trails = [engine.request("GET", f"/v1/streams/{stream}/markers") for engine in engines]
    placed = [entry for entry in trails[0]["placed"] if entry["id"] == marker and entry["commit_lsn"]]
    if not placed:
        return {}
    lsn = placed[-1]["commit_lsn"]
    return {"SOURCE": placed[-1]["commit_time"]} | {
        stage["stage"]: passage["at"] for trail in trails for stage in trail["stages"] for passage in stage["passages"]
        if passage["commit_lsn"] == lsn}


def passed(engines: list[Engine], stream: str, marker: str | None, stages: list[str]) -> bool:
    times = way(engines, stream, marker)
    if set(times) != {"SOURCE", *stages}:
        return False
    in_order = [times[stage] for stage in ("SOURCE", *stages)]
    assert in_order == sorted(in_order), times
    return True
