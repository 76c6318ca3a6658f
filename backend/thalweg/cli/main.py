"""`thalweg`: everything that the console does, from a terminal, over the same REST API.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 not logged in, 4 the control plane cannot be reached.
"""

import sys

import httpx
import typer

from thalweg.cli.client import EXIT_UNREACHABLE, CommandError
from thalweg.cli.commands import advisor, alerts, databases, destinations, monitoring, session, streams, watching
from thalweg.cli.output import err

commands = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
    help="Thalweg replicates PostgreSQL databases. The address comes from THALWEG_URL, the token from THALWEG_TOKEN "
    "or THALWEG_TOKEN_FILE, else both from `thalweg login`.",
)  # fmt: skip
commands.command()(session.login)
commands.command()(session.logout)
commands.command()(watching.status)
commands.command()(watching.watch)
commands.command()(watching.operations)
commands.command()(streams.preflight)
commands.command("mon")(monitoring.monitor)
commands.command()(destinations.errors)
commands.add_typer(alerts.app, name="alerts")
commands.add_typer(advisor.app, name="advisor")
commands.add_typer(databases.app, name="databases")
commands.add_typer(streams.app, name="streams")
commands.add_typer(destinations.app, name="destinations")


def app() -> None:
    try:
        commands()
    except CommandError as error:
        err.print(f"[red]error:[/] {_plain(error.message)}")
        for line in error.details:
            err.print(f"  {_plain(line)}")
        if error.cure:
            err.print(f"[bold]cure:[/]  {_plain(error.cure)}")
        sys.exit(error.exit_code)
    except httpx.HTTPError as error:
        err.print(f"[red]error:[/] {_plain(str(error))}")
        sys.exit(EXIT_UNREACHABLE)
    except KeyboardInterrupt:
        sys.exit(130)


def _plain(text: str) -> str:
    """Square brackets of messages are not markup."""
    return text.replace("[", "\\[")


if __name__ == "__main__":
    app()
