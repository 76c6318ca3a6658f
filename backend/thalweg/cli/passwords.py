"""Passwords given to a command: by standard input or a file. As arguments, every user of the host could read them."""

from pathlib import Path
from typing import Annotated, TextIO

import typer

from thalweg.cli.client import CommandError
from thalweg.kernel.words import ended

PasswordStdin = Annotated[bool, typer.Option(help="Read the password from standard input.")]
PasswordFile = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, readable=True, help="Read the password from the first line of a file."),
]


def stdin_if(wanted: bool) -> TextIO | None:
    return typer.get_text_stream("stdin") if wanted else None


def given_secret(stdin: TextIO | None, file: Path | None, option: str = "--password") -> str | None:
    """The first line of standard input or of the file; None: neither is asked for."""
    if stdin is not None and file is not None:
        raise CommandError(f"{option}-stdin and {option}-file exclude each other.", "Give one of them.")
    if stdin is not None:
        return stdin.readline().rstrip("\r\n")
    if file is None:
        return None
    try:
        with file.open(encoding="utf-8") as opened:
            return opened.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(
            f"{file} cannot be read: {ended(str(error))}", f"Name a text file by {option}-file."
        ) from error
