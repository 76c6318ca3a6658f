"""The rate of changes of each table, from the totals that engines report."""

from collections import deque
from datetime import datetime, timedelta
from typing import Any

from thalweg.engine_client.documents import CHANGES

WINDOW = timedelta(seconds=30)
SPACING = timedelta(seconds=5)

Table = tuple[str, str]
Totals = dict[Table, int]


class TableRates:
    """Owner: the collector. Holds a few totals of each table: WINDOW / SPACING."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], deque[tuple[datetime, Totals]]] = {}

    def add_to(self, document: dict[str, Any], at: datetime) -> None:
        """Gives every table of a stream's status its `changes_per_second` over WINDOW; None until there are two looks
        at it, SPACING apart, at the same engine run."""
        for destination in document["destinations"]:
            key = (document["id"], destination["id"])
            totals = {_name(table): sum(table[kind] for kind in CHANGES) for table in destination["tables"]}
            since, before = self._first_of(key, totals, at)
            seconds = (at - since).total_seconds()
            for table in destination["tables"]:
                name = _name(table)
                known = name in before and at - since >= SPACING
                table["changes_per_second"] = round((totals[name] - before[name]) / seconds, 3) if known else None

    def forget_before(self, at: datetime) -> None:
        self._seen = {key: looks for key, looks in self._seen.items() if at - looks[-1][0] <= WINDOW}

    def _first_of(self, key: tuple[str, str], totals: Totals, at: datetime) -> tuple[datetime, Totals]:
        looks = self._seen.setdefault(key, deque())
        if looks and any(totals[name] < before for name, before in looks[-1][1].items() if name in totals):
            looks.clear()  # apply has started anew, and counts from 0
        if not looks or at - looks[-1][0] >= SPACING:
            looks.append((at, totals))
        while at - looks[0][0] > WINDOW and len(looks) > 1:
            looks.popleft()
        return looks[0]


def _name(table: dict[str, Any]) -> Table:
    return table["schema"], table["table"]
