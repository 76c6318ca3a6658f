"""The comments that `make lint` refuses because they begin with a clause in place of their subject."""

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
    "text", ['ROWS = 1\n"""Of one answer."""\n', '  """As viewers see it."""\n', "# Of a stream.\n"]
)
def test_a_docstring_that_is_a_fragment_is_refused(tidy: ModuleType, text: str) -> None:
    (problem,) = tidy._word_problems(tidy.ROOT / "backend/thalweg/a.py", text, generated=False)
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


def test_generated_files_are_worded_elsewhere(tidy: ModuleType) -> None:
    path = tidy.ROOT / "frontend/src/schema.d.ts"
    text = "/** ~What the API says. */\n".replace("~", "")
    assert tidy._word_problems(path, text, generated=True) == []
