"""The six tables of a run with the columns that Streams' views have, and ours behind them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from thalweg.features.advisor.schemas import Run

Value = str | int | float | bool | datetime | None


class TableName(StrEnum):
    COMPONENT = "component"
    COMPONENT_LINK = "component_link"
    COMPONENT_STAT = "component_stat"
    DATABASE = "database"
    PATH_BOTTLENECK = "path_bottleneck"
    PATH_STAT = "path_stat"

    @property
    def view(self) -> str:
        return f"DBA_STREAMS_TP_{self.value.upper()}"


@dataclass(frozen=True)
class Table:
    name: TableName
    columns: list[str]
    rows: list[list[Value]]


# Column, and the field it is of; without one it is the field of the same name.
COMPONENT = ("COMPONENT_ID", "COMPONENT_NAME", "COMPONENT_DB", "COMPONENT_TYPE", "ENGINE", "STATE")
LINK = (
    "SOURCE_COMPONENT_ID", "SOURCE_COMPONENT_NAME", "SOURCE_COMPONENT_DB", "SOURCE_COMPONENT_TYPE",
    "DESTINATION_COMPONENT_ID", "DESTINATION_COMPONENT_NAME", "DESTINATION_COMPONENT_DB",
    "DESTINATION_COMPONENT_TYPE", "PATH_ID", "POSITION", "BACK_PRESSURED", "MESSAGES_PER_SECOND",
)  # fmt: skip
STAT = (
    "COMPONENT_ID", "COMPONENT_NAME", "COMPONENT_DB", "COMPONENT_TYPE", "SUB_COMPONENT_TYPE", "SESSION_ID:thread",
    "STATISTIC_TIME", "STATISTIC_NAME", "STATISTIC_VALUE", "STATISTIC_UNIT", "ADVISOR_RUN_ID", "ADVISOR_RUN_TIME",
)  # fmt: skip
DATABASE = ("GLOBAL_NAME", "LAST_QUERIED", "VERSION", "ROLE", "ADDRESS")
BOTTLENECK = (
    "PATH_ID", "COMPONENT_ID", "COMPONENT_NAME", "COMPONENT_DB", "COMPONENT_TYPE", "TOP_SESSION_ID:top_thread",
    "ACTION_NAME", "BOTTLENECK_IDENTIFIED", "ADVISOR_RUN_ID", "ADVISOR_RUN_TIME", "ADVISOR_RUN_REASON",
    "SUB_COMPONENT_TYPE", "TOP_EVENT", "TOP_EVENT_PERCENT", "VERDICT", "EXPLANATION",
)  # fmt: skip
PATH = (
    "PATH_ID", "STATISTIC_TIME", "STATISTIC_NAME", "STATISTIC_VALUE", "STATISTIC_UNIT", "ADVISOR_RUN_ID",
    "ADVISOR_RUN_TIME",
)  # fmt: skip
SOURCES: dict[TableName, tuple[tuple[str, ...], Callable[[Run], list[Any]]]] = {
    TableName.COMPONENT: (COMPONENT, lambda run: list(run.analysis.components)),
    TableName.COMPONENT_LINK: (LINK, lambda run: list(run.analysis.component_links)),
    TableName.COMPONENT_STAT: (STAT, lambda run: list(run.analysis.component_statistics)),
    TableName.DATABASE: (DATABASE, lambda run: list(run.analysis.databases)),
    TableName.PATH_BOTTLENECK: (BOTTLENECK, lambda run: list(run.analysis.path_bottlenecks)),
    TableName.PATH_STAT: (PATH, lambda run: list(run.analysis.path_statistics)),
}


def table_of(run: Run, name: TableName) -> Table:
    columns, rows_of = SOURCES[name]
    own: dict[str, Value] = {"ADVISOR_RUN_ID": run.id, "ADVISOR_RUN_TIME": run.at}
    rows = [[_value(row, column, own) for column in columns] for row in rows_of(run)]
    return Table(name, [column.partition(":")[0] for column in columns], rows)


def tables_of(run: Run) -> list[Table]:
    """In the order of the Oracle Streams advisor's script."""
    return [table_of(run, name) for name in TableName]


def _value(row: Any, column: str, own: dict[str, Value]) -> Value:
    title, _, field = column.partition(":")
    if title in own:
        return own[title]
    value: Value = getattr(row, field or title.lower())
    return value


def as_text(value: Value) -> str:
    """NULL is empty; times in UTC to the second, as spreadsheets read them."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return f"{value:.2f}" if isinstance(value, float) else str(value)
