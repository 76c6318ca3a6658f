"""Gives each row of a reference's tables an address and an entry of its own in the search, under the name that the row
describes: an error's code, a parameter, a metric. A search for one then finds its row first, before pages that mention
it."""

import html
import json
import re
from pathlib import Path

REFERENCES = "reference/*.html"
ROW = re.compile(r"<tr>\n<td><code>([a-z][a-z0-9]*(?:_[a-z0-9]+)+)</code></td>\n(.*?)</tr>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")


def marked(page: str) -> tuple[str, dict[str, str]]:
    """The page with an id for each such row, and the rows' texts by their names. A name's first row has its id."""
    found: dict[str, str] = {}

    def with_id(row: re.Match[str]) -> str:
        name, cells = row.groups()
        if name in found or f'id="{name}"' in page:
            return row[0]
        found[name] = " ".join(html.unescape(TAG.sub(" ", cells)).split())
        return row[0].replace("<tr>", f'<tr id="{name}">', 1)

    return ROW.sub(with_id, page), found


def add_to_search(site: Path) -> None:
    index = site / "search" / "search_index.json"
    document = json.loads(index.read_text())
    for path in sorted(site.glob(REFERENCES)):
        page, found = marked(path.read_text())
        path.write_text(page)
        address = path.relative_to(site).as_posix()
        document["docs"] += [
            {"location": f"{address}#{name}", "title": name, "text": text} for name, text in found.items()
        ]
    index.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")))
