"""tokens list, add, revoke."""

from typing import Annotated

import typer

from thalweg.cli.client import Json, connect
from thalweg.cli.output import AsJson, done, print_json, print_table
from thalweg.kernel.principal import Role

app = typer.Typer(no_args_is_help=True, help="API tokens: your own, and as an admin everybody's.")


@app.command("list")
def list_tokens(as_json: AsJson = False) -> None:
    """All tokens, and when each was last used."""
    items = list(connect().items("/tokens"))
    if as_json:
        print_json(items)
        return
    print_table(
        ["NAME", "ID", "USER", "ROLE", "EXPIRES", "LAST USED", "REVOKED"],
        [
            [
                item["name"], item["id"], item["user_name"], item["role"], (item["expires_at"] or "never")[:10],
                (item["last_used_at"] or "–")[:19], (item["revoked_at"] or "")[:19],
            ]
            for item in items
        ],
    )  # fmt: skip


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="A name that shows its purpose.")],
    role: Annotated[
        Role, typer.Option(help="The token's role, which cannot exceed your own. metrics: read /metrics.")
    ] = Role.VIEWER,
    days: Annotated[
        int | None,
        typer.Option(
            min=1, max=3650, help="Days until it expires. Default: 90, or when the token that creates it expires."
        ),
    ] = None,
) -> None:
    """Create a token and print nothing else on standard output. It is not shown again."""
    body: Json = {"name": name, "role": role} | ({} if days is None else {"expires_in_days": days})
    made = connect().create("/tokens", body)
    done(made["secret"], made)


@app.command()
def revoke(name: Annotated[str, typer.Argument(help="The token's name or id.")]) -> None:
    """Revoke a token."""
    api = connect()
    token = api.find("/tokens", "token", name)
    api.delete(f"/tokens/{token['id']}")
    done(f"Revoked {token['name']}.", token)
