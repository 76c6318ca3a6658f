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
    paths = {path.path_id: path for path in (*before.analysis.paths, *after.analysis.paths)}
    return Comparison(
        before=_summary(before), after=_summary(after),
        statistics=[
            ComparedStatistic(
                **_subject(pair.row), path_name=_name(pair.row, list(paths.values())),
                statistic_name=pair.row.statistic_name, statistic_unit=pair.row.statistic_unit,
                before=pair.values[0], after=pair.values[1], change=pair.change, change_percent=pair.change_percent,
            )
            for pair in pairs_of(before.analysis, after.analysis)
        ],
        bottlenecks=[
            ComparedBottleneck(
                path_id=name, path_name=paths[name].path_name, before=first, after=second, changed=first != second
            )
            for name, first, second in compared
        ],
    )  # fmt: skip


def _summary(run: Run) -> RunSummary:
    return RunSummary.model_validate({name: getattr(run, name) for name in RunSummary.model_fields})


def _subject(row: ComponentStatistic | PathStatistic) -> dict[str, object]:
    names = ("path_id", "component_id", "component_name", "component_type", "sub_component_type", "thread")
    return {name: getattr(row, name, None) for name in names}


def _name(row: ComponentStatistic | PathStatistic, paths: list[AdvisorPath]) -> str:
    """The owner of the figure; the stream owns what several destinations share."""
    if isinstance(row, PathStatistic):
        return next(path.path_name for path in paths if path.path_id == row.path_id)
    through = [path for path in paths if row.component_id in path.component_ids]
    return through[0].path_name if len(through) == 1 else through[0].stream_name
