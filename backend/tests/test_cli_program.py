"""The installed programs: their version, and what shells ask it for completion."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BACKEND = Path(__file__).resolve().parents[1]
PROGRAMS = Path(sys.executable).parent


def run(*arguments: str, program: str = "thalweg", **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("THALWEG_")}
    done = subprocess.run(
        [PROGRAMS / program, *arguments], capture_output=True, text=True, check=False, cwd=BACKEND,
        env={**kept, "PYTHONPATH": str(BACKEND), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", ["thalweg", "thalweg-admin"])
def test_version(program: str) -> None:
    """Needs no control plane."""
    version = (BACKEND.parent / "VERSION").read_text().strip()
    assert run("--version", program=program) == f"{program} {version}\n"
    for asked in (("--version", "--output", "json"), ("--output=json", "--version")):
        assert json.loads(run(*asked, program=program)) == {"program": program, "version": version}


@pytest.mark.parametrize(
    ("typed", "offered", "not_offered"),
    [
        ("thalweg str", ["streams"], "slots"), ("thalweg streams cre", ["create", "create-from"], "delete"),
        ("thalweg preflight --inserts", ["--inserts-only"], "--exclude"),
        ("thalweg-admin cre", ["create-admin", "create-token"], "migrate"),
        ("thalweg-admin enrol-local --tok", ["--token-file"], "--wait"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(shell: str, typed: str, offered: list[str], not_offered: str) -> None:
    program = typed.split()[0]
    variable = f"_{program.upper().replace('-', '_')}_COMPLETE"
    words = {
        "bash": {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": typed},
    }[shell]
    answer = run(program=program, **{variable: f"complete_{shell}"}, **words)
    assert all(word in answer for word in offered)
    assert not_offered not in answer.split()
    assert variable in run("--show-completion", shell, program=program)
