"""Changes of parked transactions as entries of the audit log hold them."""

import json
from typing import Any

from thalweg.engine_client.parked_documents import ParkedChange, ParkedContents, ParkedValue

ENTRY_CHARACTERS_MAX = 100_000
"""Limits the changes in an entry itself, which lists show."""
ENTRY_VALUE_BYTES_MAX = 1024
"""Longer values are cut there."""


def document_of(change: ParkedChange) -> dict[str, Any]:
    return change.model_dump(mode="json", by_alias=True)


def cut_values(change: ParkedChange) -> list[tuple[str, ParkedValue]]:
    """Those of which the engine has told the beginning only, with their columns."""
    return [
        (column.name, value)
        for column in change.columns
        for value in (column.wanted, column.before, column.now)
        if value.cut
    ]


def _shortened(change: ParkedChange) -> ParkedChange:
    columns = [
        column.model_copy(update={name: _short(getattr(column, name)) for name in ("wanted", "before", "now")})
        for column in change.columns
    ]
    return change.model_copy(update={"columns": columns})


def _short(value: ParkedValue) -> ParkedValue:
    beginning = (value.text or "")[:ENTRY_VALUE_BYTES_MAX].encode()[:ENTRY_VALUE_BYTES_MAX].decode(errors="ignore")
    if value.text is None or len(beginning) == len(value.text):
        return value
    return value.model_copy(update={"text": beginning, "cut": True})


def bounded(contents: ParkedContents) -> dict[str, Any]:
    """The first changes, as many as an entry of the audit log holds, their values cut; `changes_total` says how many
    there were."""
    changes: list[dict[str, Any]] = []
    room = ENTRY_CHARACTERS_MAX
    for change in contents.changes:
        document = document_of(_shortened(change))
        room -= len(json.dumps(document))
        if room < 0:
            break
        changes.append(document)
    head = contents.error.model_dump(mode="json")
    return {**head, "changes_total": contents.changes_total, "changes": changes}
