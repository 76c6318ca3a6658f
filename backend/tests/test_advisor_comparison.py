"""Two runs side by side, where streams and destinations have components and statistics of the same names."""

from itertools import count

import pytest

from tests.test_advisor_analysis import RUNNING, recorded
from thalweg.advisor.analysis import analyse
from thalweg.advisor.schemas import Analysis, ComponentStatistic, PathStatistic, Thresholds
from thalweg.advisor.streams import DatabaseFacts, StreamInput
from thalweg.features.advisor.comparing import comparison_of
from thalweg.features.advisor.schemas import Comparison, Run, RunReason, RunScope
from thalweg.kernel.clock import now
from thalweg.live.schemas import Sample

NAMES = ("near", "far")
STREAMS = {"k3j2h1g4": "orders", "m5n6p7q8": "invoices"}
Owner = tuple[str, str | None, int | None, str]


def fanned_out(sample: Sample) -> Sample:
    """Each destination with apply components and figures of its own, by the same names."""
    (share,) = sample.destinations
    own = [part for part in sample.components if part.destination_id is not None]
    shared = [part for part in sample.components if part.destination_id is None]
    return sample.model_copy(
        update={
            "destinations": [share.model_copy(update={"destination_id": name}) for name in NAMES],
            "components": shared + [
                part.model_copy(update={"id": f"{name}:{part.id.rsplit(':', 1)[-1]}", "destination_id": name})
                for name in NAMES for part in own
            ],
        }
    )  # fmt: skip


def analysis_of_four_paths() -> Analysis:
    samples = [fanned_out(sample) for sample in recorded("missing_index")]
    ends = {name: DatabaseFacts(name, f"b:1/{name}", "15.1") for name in NAMES}
    source = DatabaseFacts("shop", "a:1/shop", "15.1")
    streams = [StreamInput(known, name, samples, source, ends, {}, RUNNING) for known, name in STREAMS.items()]
    return analyse(streams, Thresholds(), now())[0]


def owner_of(row: ComponentStatistic | PathStatistic) -> Owner:
    if isinstance(row, PathStatistic):
        return row.path_id, None, None, row.statistic_name
    return row.component_id, row.sub_component_type, row.thread, row.statistic_name


def run_of(number: int, analysis: Analysis, numbers: "count[int]") -> tuple[Run, dict[Owner, float]]:
    """A run in which no two figures are equal, and those figures by their owners."""
    tables = {
        table: [row.model_copy(update={"statistic_value": float(next(numbers))}) for row in getattr(analysis, table)]
        for table in ("path_statistics", "component_statistics")
    }
    run = Run(
        id=number, at=now(), reason=RunReason.ON_DEMAND, detail=None, requested_by="ann", name=None, note=None,
        kept=False, etag="1", samples=9, scope=RunScope(stream_id=None, component_id=None, window_seconds=30),
        begin_at=None, end_at=None, paths=[], findings=0, worst=None,
        analysis=analysis.model_copy(update=tables), findings_ranked=[], fact_sheets=[], series=[],
    )  # fmt: skip
    return run, {owner_of(row): row.statistic_value for rows in tables.values() for row in rows}


def test_no_path_shows_the_figures_of_another() -> None:
    analysis, numbers = analysis_of_four_paths(), count(1)
    assert [path.path_name for path in analysis.paths] == [
        f"{stream} → {name}" for stream in STREAMS.values() for name in NAMES
    ]
    (before, first), (after, second) = (run_of(number, analysis, numbers) for number in (1, 2))
    compared: Comparison = comparison_of(before, after)
    shown = {
        (row.path_id or row.component_id, row.sub_component_type, row.thread, row.statistic_name): row
        for row in compared.statistics
    }
    assert {owner: (row.before, row.after) for owner, row in shown.items()} == {
        owner: (first[owner], second[owner]) for owner in first
    }
    assert len(compared.statistics) == len(shown) == len(first)
    assert [row.path_id for row in compared.bottlenecks] == [path.path_id for path in analysis.paths]


def test_a_figure_is_named_after_the_path_that_it_is_of() -> None:
    """And after the stream where both of its paths have it."""
    analysis, numbers = analysis_of_four_paths(), count(1)
    compared = comparison_of(run_of(1, analysis, numbers)[0], run_of(2, analysis, numbers)[0])
    owners = {row.component_id: row.path_name for row in compared.statistics if row.component_id}
    assert owners == {
        f"{stream_id}:{part}": owner
        for stream_id, stream in STREAMS.items()
        for part, owner in (
            ("capture", stream), ("queue", stream), ("apply:near", f"{stream} → near"), ("apply:far", f"{stream} → far")
        )
    }  # fmt: skip
    of_paths = {row.path_id: row.path_name for row in compared.statistics if row.path_id}
    assert of_paths == {path.path_id: path.path_name for path in analysis.paths}


def without(analysis: Analysis, *, component: str, path: str | None = None) -> Analysis:
    """As another run has it, in which no path went through the component, and where one is named, without that path."""
    paths = [
        known.model_copy(update={"component_ids": [part for part in known.component_ids if part != component]})
        for known in analysis.paths if known.path_id != path
    ]  # fmt: skip
    return analysis.model_copy(
        update={
            "paths": paths,
            "path_statistics": [row for row in analysis.path_statistics if row.path_id != path],
            "path_bottlenecks": [row for row in analysis.path_bottlenecks if row.path_id != path],
            "component_statistics": [row for row in analysis.component_statistics if row.component_id != component],
        }
    )


@pytest.mark.parametrize("lacks", ["before", "after"])
@pytest.mark.parametrize(
    ("component", "path", "owner"),
    [
        ("k3j2h1g4:apply:far", None, "orders → far"), ("k3j2h1g4:apply:far", "k3j2h1g4:far", "orders → far"),
        ("k3j2h1g4:queue", None, "orders"),
    ],
)  # fmt: skip
def test_a_component_that_one_of_the_runs_lacks_keeps_its_name(
    component: str, path: str | None, owner: str, lacks: str
) -> None:
    """A destination was added or dropped, or another engine applies: the runs are of different shape."""
    whole, numbers = analysis_of_four_paths(), count(1)
    smaller = without(whole, component=component, path=path)
    shapes = (smaller, whole) if lacks == "before" else (whole, smaller)
    (before, _), (after, _) = (run_of(number, shape, numbers) for number, shape in enumerate(shapes, 1))
    compared = comparison_of(before, after)
    own = [row for row in compared.statistics if row.component_id == component]
    assert own and {row.path_name for row in own} == {owner}
    assert all(getattr(row, lacks) is None and row.change is None for row in own)
    assert {row.path_name for row in compared.bottlenecks} == {known.path_name for known in whole.paths}
    assert {row.path_name for row in compared.statistics if row.path_id} == {known.path_name for known in whole.paths}
