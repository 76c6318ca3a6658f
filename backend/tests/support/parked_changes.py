"""The changes of a parked transaction, as the engine's double tells them."""

from collections.abc import Mapping
from typing import Any

from tests.support.contract import example


class ParkedChanges:
    def __init__(self) -> None:
        self.changes = 1
        """How many it has."""
        self.texts: dict[int, str] = {}
        """New amounts of some of them, by number."""
        self.always_cut: set[int] = set()
        """Those whose amounts are never told whole."""
        self.troubles: dict[int, str] = {}
        """Problems of some of them, for which the destination's row is not told."""
        self.whole_page = 100
        """The most changes of a page with whole values."""
        self.knows_pages = True
        self.knows_whole = True
        self.busy_openings = 0
        """How many requests are refused because others are being answered."""
        self.deletes = True
        self.delete_status = 204
        """Its answer to a DELETE, whether it `deletes` or not."""
        self.delete_takes = 0.0
        """Until that answer, in seconds."""

    def opens_others(self) -> bool:
        self.busy_openings -= 1
        return self.busy_openings >= 0

    def changes_page(self, query: Mapping[str, str], *, whole: bool) -> dict[str, Any]:
        after, limit = int(query.get("after", "0")), int(query.get("limit", "100"))
        if not self.knows_pages:
            after, limit = 0, 100
        if whole:
            limit = min(limit, self.whole_page)
        numbers = list(range(after + 1, min(after + limit, self.changes) + 1))
        return {
            "changes_total": self.changes,
            "changes": [self._numbered(number, whole=whole) for number in numbers],
            "next_after": numbers[-1] if numbers and numbers[-1] < self.changes else None,
        }

    def _numbered(self, number: int, *, whole: bool) -> dict[str, Any]:
        (change,) = example("error-contents")["changes"]
        text = self.texts.get(number)
        if text is not None:
            told = text if whole and number not in self.always_cut else text[:1024]
            change["columns"][1]["wanted"] = {
                "state": "text", "text": told, "bytes": len(text), "cut": told != text,
            }  # fmt: skip
        trouble = {"problem": self.troubles[number], "rows_found": None} if number in self.troubles else {}
        return {**change, **trouble, "number": number}
