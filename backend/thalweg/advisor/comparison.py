"""Compares two analyses: every statistic before, after, and its change."""

from dataclasses import dataclass

from thalweg.advisor.schemas import Analysis, ComponentStatistic, PathBottleneck, PathStatistic, Verdict

Key = tuple[str, str, str | None, int | None, str]


@dataclass(frozen=True)
class Pair:
    """The same statistic in both; None where one of them has it not."""

    before: ComponentStatistic | PathStatistic | None
    after: ComponentStatistic | PathStatistic | None

    @property
    def row(self) -> ComponentStatistic | PathStatistic:
        row = self.after or self.before
        assert row is not None  # noqa: S101
        return row

    @property
    def values(self) -> tuple[float | None, float | None]:
        return (
            self.before.statistic_value if self.before else None,
            self.after.statistic_value if self.after else None,
        )

    @property
    def change(self) -> float | None:
        before, after = self.values
        return None if before is None or after is None else round(after - before, 3)

    @property
    def change_percent(self) -> float | None:
        before, change = self.values[0], self.change
        return None if not before or change is None else round(100 * change / abs(before), 1)


def pairs_of(before: Analysis, after: Analysis) -> list[Pair]:
    """Paths first, then components; in the order of `after`, then what only `before` has."""
    earlier, later = _rows(before), _rows(after)
    keys = [*later, *(key for key in earlier if key not in later)]
    keys.sort(key=lambda key: key[0] != "path")
    return [Pair(earlier.get(key), later.get(key)) for key in keys]


def _rows(analysis: Analysis) -> dict[Key, ComponentStatistic | PathStatistic]:
    rows: dict[Key, ComponentStatistic | PathStatistic] = {}
    for path in analysis.path_statistics:
        rows["path", path.path_id, None, None, path.statistic_name] = path
    for row in analysis.component_statistics:
        rows["component", row.component_id, row.sub_component_type, row.thread, row.statistic_name] = row
    return rows


def bottleneck_in_words(bottleneck: PathBottleneck | None) -> str | None:
    """A bottleneck in a few words, such as APPLY SERVER: EXECUTE."""
    if bottleneck is None:
        return None
    if bottleneck.verdict is not Verdict.BOTTLENECK:
        return bottleneck.verdict.value
    stage = bottleneck.sub_component_type or (bottleneck.component_type.value if bottleneck.component_type else "")
    return f"{stage}: {bottleneck.top_event}" if bottleneck.top_event else stage
