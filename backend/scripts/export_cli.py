"""Writes docs/reference/cli.md from the command line itself. `--check` fails when it is stale."""

import sys
import textwrap
from pathlib import Path
from typing import Any

import typer.main

from thalweg.cli.admin import commands as admin
from thalweg.cli.main import commands

TARGET = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"
INTRODUCTION = """<!-- Written by backend/scripts/export_cli.py from the command line itself. Do not edit. -->

# Command line

`thalweg` does everything that the console does, over the same REST API. `thalweg-admin` serves tasks that must work
before any user can log in; it runs on the control plane's host and needs its settings.

The control plane's address comes from `THALWEG_URL`, the API token from `THALWEG_TOKEN` or the file that
`THALWEG_TOKEN_FILE` names; otherwise both come from the file that `thalweg login` writes.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | refused or failed; the cure is on standard error |
| 2 | wrong usage |
| 3 | not logged in |
| 4 | the control plane cannot be reached |

Every command of both prints JSON with `--output json`, which may stand anywhere on the line. Standard output then has
JSON and nothing else; questions and errors go to standard error. `thalweg --version` prints the version, and so does
`thalweg-admin --version`.

Completion with the tab key completes commands and options. `thalweg --install-completion` sets it up for the shell that
it is called from (bash, zsh, fish or PowerShell), in that shell's own configuration; it works from the next shell on.
`thalweg --show-completion` prints the script instead, to install it by hand. `thalweg-admin` has both options, too.
"""


def sections(command: Any, name: str, level: int) -> list[str]:
    text = [f"{'#' * level} {name}", _filled(command.help or "")]
    rows = [row for parameter in command.params if (row := _row(parameter))]
    if rows:
        text.append("\n".join(["| argument or option | default | meaning |", "|---|---|---|", *rows]))
    for child in sorted(getattr(command, "commands", {})):
        text += sections(command.commands[child], f"{name} {child}", level + (level < 3))
    return text


def _filled(text: str) -> str:
    """Paragraphs whose lines end at 120 columns."""
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(textwrap.fill(part, 120, break_long_words=False, break_on_hyphens=False) for part in paragraphs)


def _row(parameter: Any) -> str | None:
    if parameter.name in ("help", None):
        return None
    is_option = parameter.param_type_name == "option"
    names = ", ".join(parameter.opts + parameter.secondary_opts) if is_option else str(parameter.name).upper()
    default = "required" if parameter.required else _shown(parameter.default)
    return f"| `{names}` | {default} | {getattr(parameter, 'help', None) or ''} |"


def _shown(value: object) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"`{getattr(value, 'value', value)}`"


def rendered() -> str:
    parts = [INTRODUCTION.strip()]
    for app, name in ((commands, "thalweg"), (admin, "thalweg-admin")):
        parts += sections(typer.main.get_command(app), name, 2)
    return "\n\n".join(parts) + "\n"


def main() -> int:
    text = rendered()
    if "--check" in sys.argv:
        if not TARGET.exists() or TARGET.read_text() != text:
            print("docs/reference/cli.md is stale: run backend/scripts/export_cli.py", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
