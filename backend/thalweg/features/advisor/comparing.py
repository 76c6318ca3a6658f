"""Two runs side by side."""

from thalweg.advisor.comparison import bottleneck_in_words, pairs_of
from thalweg.advisor.schemas import AdvisorPath, ComponentStatistic, PathStatistic
from thalweg.features.advisor.schemas import ComparedBottleneck, ComparedStatistic, Comparison, Run, RunSummary
from thalweg.features.advisor.service import get_run
from thalweg.kernel.context import Context


async def compare(context: Context, before_id: int, after_id: int) -> Comparison:
    return comparison_of(await get_run(context, before_id), await get_run(context, after_id))


def comparison_of(before: Run, after: Run) -> Comparison:
    earlier = {row.path_id: row for row in before.analysis.path_bottlenecks}
    later = {row.path_id: row for row in after.analysis.path_bottlenecks}
    compared = [
        (name, bottleneck_in_words(earlier.get(name)), bottleneck_in_words(later.get(name)))
        for name in dict.fromkeys([*later, *earlier])
    ]
    # A path may go through other components in one run than in the other: a destination was added, an engine changed.
    found = [*after.analysis.paths, *before.analysis.paths]
    names = {path.path_id: path.path_name for path in reversed(found)}
    return Comparison(
        before=_summary(before), after=_summary(after),
        statistics=[
            ComparedStatistic(
                **_subject(pair.row), path_name=_name(pair.row, found, names),
                statistic_name=pair.row.statistic_name, statistic_unit=pair.row.statistic_unit,
                before=pair.values[0], after=pair.values[1], change=pair.change, change_percent=pair.change_percent,
            )
            for pair in pairs_of(before.analysis, after.analysis)
        ],
        bottlenecks=[
            ComparedBottleneck(
                path_id=name, path_name=names[name], before=first, after=second, changed=first != second
            )
            for name, first, second in compared
        ],
    )  # fmt: skip


def _summary(run: Run) -> RunSummary:
    return RunSummary.model_validate({name: getattr(run, name) for name in RunSummary.model_fields})


def _subject(row: ComponentStatistic | PathStatistic) -> dict[str, object]:
    names = ("path_id", "component_id", "component_name", "component_type", "sub_component_type", "thread")
    return {name: getattr(row, name, None) for name in names}


def _name(row: ComponentStatistic | PathStatistic, found: list[AdvisorPath], names: dict[str, str]) -> str:
    """The owner of the figure; the stream owns what several destinations share."""
    if isinstance(row, PathStatistic):
        return names[row.path_id]
    through = [path for path in found if row.component_id in path.component_ids]
    if len({path.path_id for path in through}) == 1:
        return names[through[0].path_id]
    return through[0].stream_name if through else row.component_name
