"""`make lint` checks the files that pages name."""

from pathlib import Path

import pytest

LINT = Path(__file__).resolve().parents[2] / "scripts" / "lint"


def test_files_and_folders_that_pages_name_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(LINT))
    links = __import__("links")
    there = "`docs/concepts.md`, `kernel/http/help.py`, `scripts/lint/`, `engine/contract/*.json`, `README.md`"
    placeholders = "`x.cc`, `x_fuzz.cc`, `DIR/desired.json`, `pg_hba.conf`, `.thalweg/secrets/`, `a.b`, `GET /x/`"
    assert links.missing_names(f"{there} {placeholders}\n```\n`gone.h`\n```\n") == []
    gone = ["engine/gone.md", "gone.h", "http/concepts.md", "scripts/gone/", "scripts/gone_*.sh"]
    assert links.missing_names(" ".join(f"`{name}`" for name in gone)) == gone


def test_a_folder_has_a_readme_or_a_line_in_the_one_above(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(LINT))
    links = __import__("links")
    files = [tmp_path / name for name in ("a/one/x.py", "a/two/deep/y.py", "b/README.md", "a/corpus/x/1")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.touch()
    (tmp_path / "README.md").write_text("`a/`, `b/`, `one/`")
    monkeypatch.setattr(links, "ROOT", tmp_path)
    monkeypatch.setattr(links, "source_files", lambda: files)
    monkeypatch.setattr(links, "shown", lambda path: path.relative_to(tmp_path).as_posix())
    assert links._unmapped_folders() == ["README.md: does not say what a/two/deep/ holds"]


def test_a_page_is_in_the_menu_and_in_an_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(LINT))
    links = __import__("links")
    pages = {
        "README.md": "[a](a.md) [guides](guides/README.md) [g](guides/g.md#x) [why](decisions/README.md)",
        "a.md": "",
        "b.md": "",
        "guides/README.md": "",
        "guides/g.md": "",
        "decisions/README.md": "[d](d.md)",
        "decisions/d.md": "",
        "decisions/e.md": "",
    }
    named = [name for name in pages if name not in ("a.md", "decisions/d.md", "decisions/e.md")]
    menu = {links.MENU: "nav:\n" + "".join(f"  - Page: docs/{name}\n" for name in named)}
    for name, text in ({f"docs/{name}": text for name, text in pages.items()} | menu).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert links.unlisted_pages(tmp_path) == [
        f"{links.MENU}: does not have docs/{'a.md'} in its nav",
        f"docs/README.md: does not list docs/{'b.md'}",
        f"docs/decisions/README.md: does not list docs/{'decisions/e.md'}",
        f"docs/guides/README.md: does not list docs/{'guides/g.md'}",
    ]
