"""login, logout."""

import socket
from typing import Annotated

import httpx
import typer

from thalweg.cli.client import (
    DEFAULT_URL,
    Api,
    CommandError,
    config_file,
    connect,
    load_config,
    save_config,
    unreachable,
)
from thalweg.cli.output import out


def login(
    url: Annotated[str | None, typer.Option(help="The control plane's address.")] = None,
    user: Annotated[str | None, typer.Option(help="Your name.")] = None,
    password_stdin: Annotated[bool, typer.Option(help="Read the password from standard input.")] = False,
    days: Annotated[int, typer.Option(help="Days until the token expires.")] = 90,
) -> None:
    """Log in: makes an API token for this machine and keeps it in the configuration file (mode 0600)."""
    url = url or load_config().get("url") or DEFAULT_URL
    user = user or typer.prompt("User", default="admin")
    if password_stdin:
        password = typer.get_text_stream("stdin").readline().rstrip("\n")
    else:
        password = typer.prompt("Password", hide_input=True)
    token = _token_for(url, user, password, days)
    save_config({"url": url, "token": token["secret"], "token_id": token["token"]["id"]})
    out.print(f"Logged in to {url} as {user} ({token['token']['role']}), until {token['token']['expires_at'][:10]}.")


def _token_for(url: str, user: str, password: str, days: int) -> dict[str, dict[str, str]]:
    """The session lives for this one call: the cookie is forgotten with the client."""
    api = Api(url, None)
    session = api.post("/session", {"name": user, "password": password})
    csrf = {"X-CSRF-Token": session["csrf_token"]}
    body = {"name": f"thalweg on {socket.gethostname()}", "role": session["user"]["role"], "expires_in_days": days}
    token = api.post("/tokens", body, csrf)
    api.delete("/session", csrf)
    return token


def logout() -> None:
    """Revoke this machine's token and forget it."""
    config = load_config()
    if config.get("token_id"):
        try:
            connect().delete(f"/tokens/{config['token_id']}")
        except CommandError as error:
            out.print(f"The token could not be revoked: {error.message}")
        except httpx.HTTPError as error:
            raise unreachable(config.get("url", DEFAULT_URL), error) from error
    config_file().unlink(missing_ok=True)
    out.print("Logged out.")
