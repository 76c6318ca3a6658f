"""The query of an address as a search: moments, a table, a key."""

from datetime import datetime
from typing import Any

from pydantic import ValidationError

from thalweg.features.changes.schemas import SearchCreate
from thalweg.kernel.log_positions import key_part, moment_of
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import Problem
from thalweg.kernel.table_names import table_parts, unquoted


def search_of(
    from_: str | None, to: str | None, table: str | None, key: list[str], xid: int | None, limit: int
) -> SearchCreate:
    """Raises invalid_request with each parameter that is wrong."""
    wanted: dict[str, Any] = {"xid": xid, "limit": limit}
    wrong = []
    for name, text in (("from", from_), ("to", to)):
        moment = None if text is None else moment_of(text)
        if text is not None and moment is None:
            wrong.append(_wrong(name, "It is neither a time nor an LSN.", "Write 2026-11-30T10:00:00Z, or 0/1A2B3C4D."))
        if isinstance(moment, datetime):
            wanted[f"{name}_time"] = moment
        elif moment is not None:
            wanted[name] = moment
    if table is not None:
        parts = table_parts(table)
        if parts is None:
            wrong.append(_wrong("table", "It is not schema.table.", "Write public.orders; quote odd names as in SQL."))
        else:
            wanted["table"] = {"schema": unquoted(parts[0]), "table": unquoted(parts[1])}
    if key:
        pairs = [pair for text in key if (pair := key_part(text)) is not None]
        wanted["key"] = dict(pairs)
        if len(wanted["key"]) < len(key):
            message = "It is not COLUMN=VALUE." if len(pairs) < len(key) else "Name each column once."
            wrong.append(_wrong("key", message, "Write key=id=5, once for each column."))
    if not wrong:
        try:
            return SearchCreate.model_validate(wanted)
        except ValidationError as error:
            wrong = [
                _wrong(str(found["loc"][0]).removesuffix("_time"), found["msg"], "Correct it.")
                for found in error.errors(include_url=False, include_input=False)
            ]
    where = "; ".join(f"{problem.pointer}: {problem.message}" for problem in wrong)
    raise Problem("invalid_request", where, wrong[0].cure, errors=wrong)


def _wrong(name: str, message: str, cure: str) -> FieldProblem:
    return FieldProblem(pointer=f"/query/{name}", code="invalid", message=message, cure=cure)
