"""The graph's states say what the overview says: what rests, fails or does not answer looks so."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.test_last_latency import AT
from tests.test_stalls import HELD, seen
from thalweg.db.models import DestinationRow, EngineRow, StreamRow
from thalweg.features.topology.service import _component_node, _database_node, _edges, _path
from thalweg.live.schemas import Sample

NEAR, FAR = "near", "far"


def engine(name: str, state: str = "ONLINE") -> Any:
    return SimpleNamespace(id=name, name=name, state=state, message=None if state == "ONLINE" else "No answer.")


def states(
    sample: Sample | None, *, far: str = "ONLINE", age: float = 0.0, observed_status: str = "ENABLED",
    observed_phase: str = "REPLICATING", **destination: Any,
) -> dict[str, Any]:  # fmt: skip
    """Of the nodes on the way to the destination `a`, which another engine applies."""
    observed = {"id": "a", "status": "ENABLED", "phase": "REPLICATING", **destination}
    row: Any = SimpleNamespace(id="a", engine=engine(FAR, far), database=SimpleNamespace(name="Warehouse"))
    stream: Any = SimpleNamespace(
        id="s", name="orders", capture_engine=engine(NEAR), desired_status="ENABLED",
        destinations=[row], destination=lambda _: row,
        observed={"destinations": [observed]},
        observed_status=observed_status, observed_phase=observed_phase, observed_at=AT - timedelta(seconds=age),
    )  # fmt: skip
    nodes = [_component_node(stream, link, sample, AT) for link in _path(stream, row)]
    return {node.kind.value if node.engine == NEAR else f"far {node.kind.value}": node.state for node in nodes}


APPLYING = HELD.model_copy(update={"id": "a:coordinator", "state": "APPLYING"})
WELL = seen(0, APPLYING)


def test_components_of_several_destinations_differ_by_name() -> None:
    ones = {
        name: SimpleNamespace(id=name, engine=engine(NEAR), database=SimpleNamespace(name=shown))
        for name, shown in (("a", "Warehouse"), ("b", "Reports"))
    }
    stream: Any = SimpleNamespace(
        id="s", name="orders", capture_engine=engine(NEAR), destinations=list(ones.values()), destination=ones.get,
        observed=None,
    )  # fmt: skip
    labels = {
        (link.kind.value, _component_node(stream, link, None, AT).label)
        for one in ones.values()
        for link in _path(stream, one)  # type: ignore[arg-type]
    }
    assert labels == {
        ("CAPTURE", "orders"), ("QUEUE", "orders"), ("APPLY", "orders → Warehouse"), ("APPLY", "orders → Reports"),
    }  # fmt: skip


def test_what_belongs_to_the_only_path_has_the_name_of_a_path() -> None:
    one: Any = SimpleNamespace(id="a", engine=engine(FAR), database=SimpleNamespace(name="Warehouse"))
    stream: Any = SimpleNamespace(
        id="s", name="orders", capture_engine=engine(NEAR), destinations=[one], destination=lambda _: one, observed=None
    )
    labels = [_component_node(stream, link, None, AT).label for link in _path(stream, one)]
    assert labels == ["orders"] * 2 + ["orders → Warehouse"] * 4


@pytest.mark.parametrize(
    ("engines", "whole", "each"),
    [
        ([NEAR], "combined", ["combined"]),
        ([FAR], "propagation", ["propagation"]),
        ([NEAR, FAR], "fan-out", ["combined", "propagation"]),
    ],
)
def test_edges_have_the_mode_that_the_stream_has(engines: list[str], whole: str, each: list[str]) -> None:
    """Those to and from databases have none."""
    stream = StreamRow(id="s", source_id="d", capture_engine_id=NEAR, capture_engine=EngineRow(id=NEAR, name=NEAR))
    stream.destinations = [
        DestinationRow(id=name, database_id=name, engine_id=name, engine=EngineRow(id=name, name=name))
        for name in engines
    ]
    assert (stream.mode, [stream.mode_to(destination) for destination in stream.destinations]) == (whole, each)
    for destination, mode in zip(stream.destinations, each, strict=True):
        edges = _edges(stream, destination, _path(stream, destination), None)
        assert {edge.mode for edge in edges if edge.kind in ("LCR", "PROPAGATION")} == {mode}
        assert {edge.mode for edge in edges if edge.kind in ("WAL", "SQL")} == {None}


def test_what_works_shows_what_its_component_does() -> None:
    assert states(WELL) == {
        "CAPTURE": "REPLICATING", "QUEUE": "REPLICATING", "PROPAGATION SENDER": "REPLICATING",
        "far PROPAGATION RECEIVER": "REPLICATING", "far QUEUE": "REPLICATING", "far APPLY": "APPLYING",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("destination", "state"),
    [
        ({"status": "DISABLED", "phase": "STOPPED"}, "PAUSED"),
        ({"status": "ABORTED", "phase": "STOPPED"}, "ABORTED"),
        ({"phase": "RETRYING"}, "RETRYING"),
    ],
)
def test_a_destination_that_rests_or_fails_looks_so(destination: dict[str, str], state: str) -> None:
    for sample in (None, WELL):
        shown = states(sample, **destination)
        assert (shown["far APPLY"], shown["CAPTURE"]) == (state, "REPLICATING")
    assert states(seen(0, APPLYING, stalled_since=AT))["far APPLY"] == "STALLED"


def test_a_stream_that_rests_with_its_only_destination_is_paused() -> None:
    rests = {"status": "DISABLED", "phase": "STOPPED"}
    shown = states(None, **{f"observed_{name}": value for name, value in rests.items()}, **rests)
    assert set(shown.values()) == {"PAUSED"}


def test_an_engine_that_does_not_answer_looks_so() -> None:
    shown = states(WELL, far="UNREACHABLE")
    assert {state for kind, state in shown.items() if kind.startswith("far")} == {"UNREACHABLE"}
    assert shown["CAPTURE"] == "REPLICATING"
    assert set(states(WELL, age=60).values()) == {"UNKNOWN"}, "nobody has looked for a minute"


def test_a_database_that_cannot_be_read_looks_so_and_says_why() -> None:
    row: Any = SimpleNamespace(id="d", name="Reports")
    for reading, state in ((None, None), ("No answer.", "UNREADABLE"), ("", "ONLINE")):
        read: Any = None if reading is None else SimpleNamespace(failure=reading or None)
        node = _database_node(row, read)
        assert (node.state, node.reason) == (state, reading or None)
