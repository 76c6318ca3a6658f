"""Names that a reference describes in a table: each has an address and an entry of its own in the help's search."""

import json
from pathlib import Path
from types import ModuleType

import pytest

HELP = Path(__file__).resolve().parents[2] / "scripts" / "help"
PAGE = """<table>
<tbody>
<tr>
<td><code>position_gap</code></td>
<td>Changes are &lt;gone&gt;. See <a href="x.html">the guide</a>.</td>
</tr>
<tr>
<td><code>position_gap</code></td>
<td>Told again.</td>
</tr>
<tr>
<td><code>true</code></td>
<td>No name.</td>
</tr>
</tbody>
</table>
"""


@pytest.fixture
def terms(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(HELP))
    return __import__("terms")


def test_a_row_gets_the_id_that_is_its_name(terms: ModuleType) -> None:
    page, found = terms.marked(PAGE)
    assert page == PAGE.replace("<tr>\n<td><code>position_gap", '<tr id="position_gap">\n<td><code>position_gap', 1)
    assert found == {"position_gap": "Changes are <gone>. See the guide ."}


def test_the_search_knows_the_row_by_its_name(terms: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "search").mkdir()
    (tmp_path / "reference").mkdir()
    index = tmp_path / "search" / "search_index.json"
    index.write_text(json.dumps({"config": {}, "docs": [{"location": "reference/errors.html", "title": "Errors"}]}))
    (tmp_path / "reference" / "errors.html").write_text(PAGE)
    terms.add_to_search(tmp_path)
    assert json.loads(index.read_text())["docs"][1] == {
        "location": "reference/errors.html#position_gap", "title": "position_gap",
        "text": "Changes are <gone>. See the guide .",
    }  # fmt: skip
    assert '<tr id="position_gap">' in (tmp_path / "reference" / "errors.html").read_text()
