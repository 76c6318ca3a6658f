"""`thalweg`: everything that the console does, from a terminal, over the same REST API.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 not logged in, 4 the control plane cannot be reached.
"""

import sys
from typing import Annotated

import httpx
import typer

from thalweg import __version__
from thalweg.cli.client import EXIT_UNREACHABLE, CommandError
from thalweg.cli.commands import (
    advisor,
    alerts,
    auditing,
    captures,
    changes,
    conflicts,
    databases,
    destinations,
    engines,
    monitoring,
    rules,
    session,
    slots,
    streams,
    tables,
    tokens,
    users,
    watching,
)
from thalweg.cli.output import Format, choice, err, output_first, print_version, styled

commands = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
    help="Thalweg replicates PostgreSQL databases. The address comes from THALWEG_URL, the token from THALWEG_TOKEN "
    "or THALWEG_TOKEN_FILE, else both from `thalweg login`. "
    "THALWEG_CA_FILE names the authority of an https:// address, where the system does not know it.",
)  # fmt: skip


def _show_version(context: typer.Context, value: bool) -> None:
    if value:
        print_version("thalweg", __version__, context.params.get("output"))
        raise typer.Exit()


@commands.callback()
def root(
    output: Annotated[Format, typer.Option(is_eager=True, help="Output format; may be given anywhere.")] = Format.TABLE,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    choice.format = output


commands.command()(session.login)
commands.command()(session.logout)
commands.command()(watching.status)
commands.command()(watching.watch)
commands.command()(watching.operations)
commands.command()(streams.preflight)
commands.command("mon")(monitoring.monitor)
commands.command()(destinations.errors)
commands.command()(conflicts.conflicts)
commands.command()(changes.changes)
commands.add_typer(alerts.app, name="alerts")
commands.add_typer(advisor.app, name="advisor")
commands.add_typer(databases.app, name="databases")
streams.app.command("capture")(captures.change)
streams.app.add_typer(tables.app, name="tables")
commands.add_typer(streams.app, name="streams")
commands.add_typer(rules.app, name="rules")
commands.add_typer(destinations.app, name="destinations")
commands.add_typer(slots.app, name="slots")
commands.add_typer(engines.app, name="engines")
commands.add_typer(users.app, name="users")
commands.add_typer(tokens.app, name="tokens")
commands.command()(auditing.audit)


def app() -> None:
    try:
        commands(output_first(sys.argv[1:]))
    except CommandError as error:
        err.print(styled("error:", "red"), error.message)
        for line in error.details:
            err.print(f"  {line}")
        if error.cure:
            err.print(styled("cure:", "bold"), f" {error.cure}")
        sys.exit(error.exit_code)
    except httpx.HTTPError as error:
        err.print(styled("error:", "red"), str(error))
        sys.exit(EXIT_UNREACHABLE)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    app()
