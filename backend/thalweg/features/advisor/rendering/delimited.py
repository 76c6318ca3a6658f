"""Pipe-delimited text of all six tables (as Oracle's run_streams_advisor.sh printed them); CSV of one of them."""

import csv
import io

from thalweg.features.advisor.rendering.tables import TableName, as_text, table_of, tables_of
from thalweg.features.advisor.schemas import Run
from thalweg.kernel.spreadsheets import harmless

DELIMITER = "|"


def pipe_text(run: Run) -> str:
    """Each table has a line with its view's name, one with its columns, and its rows; an empty line ends it."""
    lines: list[str] = []
    for table in tables_of(run):
        lines += [table.name.view, DELIMITER.join(table.columns)]
        lines += [DELIMITER.join(_field(as_text(value)) for value in row) for row in table.rows]
        lines.append("")
    return "\n".join(lines) + "\n"


def _field(text: str) -> str:
    """A delimiter in a name would shift the columns behind it."""
    return text.replace(DELIMITER, "/").replace("\n", " ")


def csv_text(run: Run, name: TableName) -> str:
    table, target = table_of(run, name), io.StringIO()
    writer = csv.writer(target, lineterminator="\r\n")
    writer.writerow(table.columns)
    writer.writerows([harmless(as_text(value)) for value in row] for row in table.rows)
    return target.getvalue()
