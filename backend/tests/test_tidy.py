"""The comments and sentences that `make lint` refuses because they begin with a clause in place of their subject."""

from pathlib import Path
from types import ModuleType

import pytest

LINT = Path(__file__).resolve().parents[2] / "scripts" / "lint"
# In the texts below, ~ keeps this file itself from being refused.


@pytest.fixture
def tidy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(LINT))
    return __import__("tidy")


@pytest.mark.parametrize(
    "text",
    [
        'ROWS = 1\n"""Of one answer."""\n',
        '  """As viewers see it."""\n',
        "# Of a stream.\n",
        'id: str = Field(description="~Of the stream.")\n',
        'Field(\n  description="~As it was.",\n)\n',
        'Field(\n  description=(\n    f"~Of `{name}`: so often."\n  )\n)\n',
    ],
)
def test_a_docstring_that_is_a_fragment_is_refused(tidy: ModuleType, text: str) -> None:
    (problem,) = tidy._word_problems(tidy.ROOT / "backend/thalweg/a.py", text.replace("~", ""), generated=False)
    assert "a fragment" in problem


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("engine/src/a.cc", "int a;\n  // ~What a is for.\n"),
        ("engine/src/a.h", "int a;  // ~Whose it is.\n"),
        ("engine/datalayer/a.c", "/*\n * ~Whoever calls it waits.\n */\n"),
        ("engine/src/a.inc", "-- Whatever is read.\n"),
        ("engine/test/a.cmake", "# What runs.\n"),
        ("frontend/src/a.tsx", "<p>\n  {/* ~What is shown. */}\n</p>\n"),
        ("frontend/src/a.ts", "/** ~Which of them. */\n"),
        ("e2e/a.ts", "/**\n * ~Who may enter.\n */\n"),
        ("backend/tests/a.py", "    # Whoever asks.\n"),
        ("backend/thalweg/a.py", '"""What it says."""\n'),
        ("scripts/a.sh", "# Who starts it.\n"),
    ],
)
def test_a_comment_that_hides_its_subject_is_refused(tidy: ModuleType, name: str, text: str) -> None:
    text = text.replace("~", "")
    (problem,) = tidy._word_problems(tidy.ROOT / name, text, generated=False)
    assert "hides its subject" in problem
    assert problem.startswith(f"{name}:{text[: text.index('Wh')].count(chr(10)) + 1}:")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "engine/src/a.cc",
            '// Says what a is for, and who asks.\nconst char* b = "What is it?";\nint c = 2 * What;\n',
        ),
        ("engine/src/a.cc", "// Whether a is there.\n// Whole blocks.\n"),
        ("frontend/src/a.tsx", "<p>What the engine says</p>\n"),
        ("CHANGELOG.md", "* What it is\n"),
    ],
)
def test_other_text_is_not(tidy: ModuleType, name: str, text: str) -> None:
    assert tidy._word_problems(tidy.ROOT / name, text, generated=False) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("What is masked stays.\n", 1),
        ("# A page\n\nIt is so. What\nis masked stays.\n", 3),
        ("* Rows.\n* What is masked stays\n* More?\n", 2),
        ("1. **Whatever it is** stays.\n", 1),
        ("> Whoever asks is told.\n", 1),
        ("Rows go: *What* remains stays.\n", 1),
        ("What is it? Who asks is told.\n", 1),
        ("| rows |\n|---|\n| What is masked |\n", 3),
        ('```\na\n```\n\n"Who may read" it\n', 5),
    ],
)
def test_a_sentence_that_hides_its_subject_is_refused(tidy: ModuleType, text: str, line: int) -> None:
    (problem,) = tidy._clauses(tidy.ROOT / "a.md", text)
    assert problem.startswith(f"a.md:{line}: '")
    assert problem.endswith("hides its subject; begin with the noun")


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("engine/src/a.cc", "int a;\n// It is so. ~What\n// is masked stays.\nint b;\n", 2),
        ("engine/src/a.h", "int a;  // so. ~Whoever asks is told.\n", 1),
        ("engine/datalayer/a.c", "/*\n * It is so.\n * ~What is masked stays.\n */\n", 3),
        ("frontend/src/a.ts", "/** So. ~What is masked stays. */\n", 1),
        ("backend/thalweg/a.py", 'def a() -> None:\n    """Says so. ~What is\n    masked stays."""\n', 2),
        ("backend/tests/a.py", "# So.\n# ~Whatever is read.\na = 1\n", 2),
        ("scripts/a.sh", "# So: done. ~Who starts it waits.\n", 1),
    ],
)
def test_so_is_a_sentence_within_a_comment(tidy: ModuleType, name: str, text: str, line: int) -> None:
    (problem,) = tidy._clauses_in_comments(tidy.ROOT / name, text.replace("~", ""))
    assert problem.startswith(f"{name}:{line}: 'Wh")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("engine/src/a.cc", 'int a = f("//", \'"\');  // so\nconst char* b = "It is so. What it is.";\n'),
        ("frontend/src/a.ts", 'const a = "/*";\nconst b = "It is so. What it is.";\n'),
        ("backend/thalweg/a.py", 'A = f("""It is so. What it is.""")\n'),
        ("engine/src/a.h", "// Is it so? Who asks? What is it?\n"),
    ],
)
def test_a_string_or_a_question_is_no_such_sentence(tidy: ModuleType, name: str, text: str) -> None:
    assert tidy._clauses_in_comments(tidy.ROOT / name, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "**What happened at 14:03?** The command says it.\n",
        '"Who changed this row, and\nwhen?" is asked.\n',
        "## What the source needs\n\nIt says what is masked. Whole rows stay.\n",
        "```\nWhat is masked stays.\n```\n",
        "<!-- Written by a script. -->\n\nWhat is masked stays.\n",
        "See [What the source needs](#what-the-source-needs).\n",
    ],
)
def test_questions_headings_and_written_pages_may_begin_so(tidy: ModuleType, text: str) -> None:
    assert tidy._clauses(tidy.ROOT / "a.md", text) == []


def test_generated_files_are_worded_elsewhere(tidy: ModuleType) -> None:
    path = tidy.ROOT / "frontend/src/schema.d.ts"
    text = "/** ~What the API says. */\n".replace("~", "")
    assert tidy._word_problems(path, text, generated=True) == []


def test_a_folder_of_a_layer_needs_a_page(tidy: ModuleType, tmp_path: Path) -> None:
    for folder in ("backend/thalweg/live", "backend/thalweg/workers/alerts", "engine/src/queue", "frontend/src/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text("")
    for folder in ("engine/src/queue", "frontend/src/lib"):
        (tmp_path / folder / "README.md").write_text("# a page")
    (tmp_path / "engine/src/generated").mkdir()  # no source in it
    assert tidy._missing_pages(tmp_path) == [
        f"backend/thalweg/{folder}: has no README.md" for folder in ("live", "workers")
    ]


def test_a_standard_that_the_bibliography_lacks_is_refused(tidy: ModuleType) -> None:
    page = tidy.ROOT / "docs" / "README.md"
    assert tidy._uncited(page, "As RFC 9457 wants it.") == []
    (problem,) = tidy._uncited(page, "RFC ~1149 and RFC ~1149".replace("~", ""))
    assert problem == "docs/README.md: cites RFC ~1149, which docs/bibliography.md lacks".replace("~", "")
