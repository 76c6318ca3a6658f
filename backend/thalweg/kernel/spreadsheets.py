"""Text that other people's spreadsheets open."""

import csv
import io
import json
from collections.abc import Iterable
from typing import Any


def csv_line(cells: Iterable[Any]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def csv_cell(value: Any) -> Any:
    """Rows are JSON in their cell."""
    if isinstance(value, dict | list):
        return json.dumps(value)
    return harmless(value) if isinstance(value, str) else value


def harmless(text: str) -> str:
    """A spreadsheet runs text that begins like a formula, and users choose the names and values."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
