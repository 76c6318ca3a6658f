"""Changes of parked transactions as entries of the audit log hold them."""

import json
from typing import Any

from thalweg.engine_client.parked_documents import ParkedChange, ParkedContents

ENTRY_CHARACTERS_MAX = 100_000
"""Limits the changes in an entry itself, which lists show."""


def document_of(change: ParkedChange) -> dict[str, Any]:
    return change.model_dump(mode="json", by_alias=True)


def bounded(contents: ParkedContents) -> dict[str, Any]:
    """The first changes, as many as an entry of the audit log holds; `changes_total` says how many there were."""
    changes: list[dict[str, Any]] = []
    room = ENTRY_CHARACTERS_MAX
    for change in contents.changes:
        document = document_of(change)
        room -= len(json.dumps(document))
        if room < 0:
            break
        changes.append(document)
    head = contents.error.model_dump(mode="json")
    return {**head, "changes_total": contents.changes_total, "changes": changes}
