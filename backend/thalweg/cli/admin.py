"""`thalweg-admin`: what must work before anybody can log in. Runs on the control plane's host, on its settings."""

import asyncio
import secrets
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import psycopg
import typer
from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from thalweg import __version__
from thalweg.cli import administration
from thalweg.cli.output import Format, choice, json_wanted, output_first, print_json, print_version
from thalweg.composition import EngineCaError, close_resources, make_resources
from thalweg.kernel.context import Resources
from thalweg.kernel.principal import Role
from thalweg.kernel.problems import Problem
from thalweg.kernel.secret_box import SecretKeyError
from thalweg.kernel.settings import Settings

commands = typer.Typer(no_args_is_help=True, help=__doc__)
Answer = TypeVar("Answer")
TokenFile = Annotated[Path, typer.Option(help="File with the engine's control token.", exists=True, dir_okay=False)]


def _fail(message: str, cure: str) -> typer.Exit:
    typer.echo(f"error: {message}", err=True)
    typer.echo(f"cure:  {cure}", err=True)
    return typer.Exit(1)


def _run(work: Callable[[Resources], Awaitable[Answer]]) -> Answer:
    async def with_resources() -> Answer:
        resources = make_resources(Settings(), "thalweg admin")
        try:
            return await work(resources)
        finally:
            await close_resources(resources)

    try:
        return asyncio.run(with_resources())
    except Problem as problem:
        raise _fail(problem.detail, problem.cure or "") from problem
    except (SQLAlchemyError, psycopg.Error, OSError) as error:
        message = str(error).splitlines()[0]
        raise _fail(
            f"The control store: {message}", "Check that it runs and THALWEG_STORE_URL; then migrate."
        ) from error
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'the name'}: {fault['msg']}" for fault in error.errors()
        )
        raise _fail(wrong, "Correct the option, or the setting THALWEG_… of that name.") from None
    except EngineCaError as error:
        raise _fail(str(error), "Name a file of PEM certificates, or leave the setting out.") from error
    except SecretKeyError as error:
        raise _fail(str(error), "Put the right key back (THALWEG_SECRET_KEY_FILE).") from error


def _done(line: str, document: dict[str, Any]) -> None:
    """Prints the result. A line is whole on every terminal, for the password or token that it may have."""
    if json_wanted(False):
        print_json(document)
    else:
        typer.echo(line)


def _show_version(context: typer.Context, value: bool) -> None:
    if value:
        print_version("thalweg-admin", __version__, context.params.get("output"))
        raise typer.Exit()


@commands.callback()
def root(
    output: Annotated[Format, typer.Option(is_eager=True, help="Output format; may be given anywhere.")] = Format.TABLE,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    choice.format = output


@commands.command()
def migrate() -> None:
    """Bring the control store's schema to this version."""
    try:
        revision = administration.migrate(Settings())
    except (SQLAlchemyError, psycopg.Error) as error:
        message = str(error).splitlines()[0]
        raise _fail(f"The control store: {message}", "Check that it runs, and THALWEG_STORE_URL.") from error
    _done(f"schema at revision {revision}", {"revision": revision})


@commands.command()
def create_admin(name: Annotated[str, typer.Argument()] = "admin") -> None:
    """Create an admin with a random password and print it. Changes nothing when the user exists."""
    password = secrets.token_urlsafe(15)
    made = _run(lambda resources: administration.create_user(resources, name, password, Role.ADMIN))
    _done(
        f"admin {name} created, password: {password}" if made else f"user {name} exists already",
        {"name": name, "created": made, "password": password if made else None},
    )


@commands.command()
def set_password(name: Annotated[str, typer.Argument()] = "admin") -> None:
    """Set a password, read from standard input, and end the user's sessions. Makes an admin when there is none."""
    password = typer.get_text_stream("stdin").readline().rstrip("\n")
    if len(password) < administration.PASSWORD_MIN:
        raise _fail("The password is too short.", f"Use at least {administration.PASSWORD_MIN} characters.")
    made = _run(lambda resources: administration.set_password(resources, name, password))
    _done(f"admin {name} created" if made else f"password of {name} set", {"name": name, "created": made})


@commands.command()
def reset_second_factor(name: Annotated[str, typer.Argument()] = "admin") -> None:
    """Switch a user's second factor off and end the user's sessions: for the last admin, who has lost the device."""
    had = _run(lambda resources: administration.reset_second_factor(resources, name))
    _done(f"second factor of {name} reset" if had else f"{name} has no second factor", {"name": name, "reset": had})


@commands.command()
def create_token(
    user: str = "admin", name: str = "admin token", role: Role = Role.ADMIN, expires_in_days: int = 365
) -> None:
    """Make an API token for a user and print it, alone, on standard output."""
    secret = _run(lambda resources: administration.create_token(resources, user, name, role, expires_in_days))
    _done(secret, {"user_name": user, "name": name, "role": role, "secret": secret})


@commands.command()
def enrol_local(
    token_file: TokenFile,
    name: str = "local",
    url: str = "http://127.0.0.1:8643",
    wait: Annotated[float, typer.Option(help="Seconds to wait for the engine to answer.")] = 30,
) -> None:
    """Enrol the engine on this host; when it is enrolled, only renew its control token."""
    token = token_file.read_text().strip()
    fresh = _run(lambda resources: administration.enrol_local(resources, name, url, token, wait))
    _done(
        f"engine {name} at {url} " + ("enrolled" if fresh else "was enrolled already"),
        {"name": name, "url": url, "enrolled": fresh},
    )


@commands.command()
def generate_key() -> None:
    """Print a fresh key for THALWEG_SECRET_KEY."""
    key = administration.new_key()
    _done(key, {"key": key})


def app() -> None:
    commands(output_first(sys.argv[1:]))


if __name__ == "__main__":
    app()
