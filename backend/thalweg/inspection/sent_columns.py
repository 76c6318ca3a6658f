"""Columns of the source's tables as their transformations send them to the destinations."""

from dataclasses import replace

from thalweg.inspection.catalogue import Column, Table
from thalweg.inspection.checks import Checklist, quoted, quoted_table
from thalweg.kernel.renames import DestinationNames
from thalweg.kernel.transformations import TableTransformations

Columns = dict[tuple[str, str], list[Column]]


def sent_columns(columns: Columns, transformations: list[TableTransformations]) -> Columns:
    by_table = {transformation.key: transformation for transformation in transformations}
    return {
        name: _sent(of_table, by_table[name]) if name in by_table else of_table for name, of_table in columns.items()
    }


def _sent(columns: list[Column], transformations: TableTransformations) -> list[Column]:
    named = ((column, transformations.sent_name(column.name)) for column in columns if not column.generated)
    cast = transformations.cast_columns
    return [
        *(replace(column, name=name, type=cast.get(name, column.type)) for column, name in named if name is not None),
        *(
            Column(name, data_type, not_null=False, generated=False, is_identity=False, has_default=False)
            for name, data_type in transformations.added_columns.items()
        ),
    ]


def check_targets(
    checklist: Checklist, tables: list[Table], columns: Columns, present: Columns,
    transformations: list[TableTransformations], names: DestinationNames,
) -> None:  # fmt: skip
    """Engines make tables as they are at the source: those that come with other columns must be there, and take NULL
    where it masks. `columns` are the source's, `present` the destination's, by its names."""
    keys = {table.name: table.key_columns for table in tables}
    bad: list[str] = []
    sql: list[str] = []
    for transformation in transformations:
        if transformation.key not in columns:
            continue
        sent, nulls = _sent(columns[transformation.key], transformation), transformation.null_columns
        there = names.of(transformation.key)
        shown = ".".join(there)
        is_there = there in present
        at_source = [(column.name, column.type) for column in columns[transformation.key] if not column.generated]
        needed = [column.name for column in sent if column.not_null and column.name in nulls]
        differs = [(column.name, column.type) for column in sent] != at_source or bool(transformation.cast_columns)
        if not is_there and (differs or needed):
            bad.append(f"{shown} is not there, and its columns would not be the source's")
            sql.append(_create(transformation, there, sent, keys.get(transformation.key, []), nulls))
        for column in present.get(there, []):
            if column.generated and any(column.name == item.name for item in sent):
                bad.append(f"{shown}: column {column.name} is generated there, and values come for it")
                sql.append(f"ALTER TABLE {quoted_table(there)} ALTER COLUMN {quoted(column.name)} DROP EXPRESSION;")
            if column.not_null and column.name in nulls:
                bad.append(f"{shown}: column {column.name} is NOT NULL, and masked with NULL")
                sql.append(f"ALTER TABLE {quoted_table(there)} ALTER COLUMN {quoted(column.name)} DROP NOT NULL;")
    checklist.tables(
        "transformed_tables", "Transformed tables", bad, "they cannot take the rows as they are sent.",
        "Create and change these tables at the destination: the engine makes tables only as they are at the source.",
        sql, "They take the rows as they are sent.",
    )  # fmt: skip


def _create(
    transformation: TableTransformations, there: tuple[str, str], sent: list[Column], key: list[str], nulls: set[str]
) -> str:
    lines = [
        f"{quoted(column.name)} {column.type}{' NOT NULL' if column.not_null and column.name not in nulls else ''}"
        for column in sent
    ]
    names = [name for name in (transformation.sent_name(column) for column in key) if name is not None]
    if names:
        lines.append(f"PRIMARY KEY ({', '.join(quoted(name) for name in names)})")
    return f"CREATE TABLE {quoted_table(there)} ({', '.join(lines)});"
