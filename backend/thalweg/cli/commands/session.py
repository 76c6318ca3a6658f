"""login, logout."""

import socket
from collections.abc import Callable
from typing import Annotated

import httpx
import typer

from thalweg.cli.client import (
    DEFAULT_URL,
    Api,
    CommandError,
    Json,
    config_file,
    connect,
    load_config,
    save_config,
    unreachable,
)
from thalweg.cli.output import ask, done, err
from thalweg.cli.passwords import PasswordFile, given_secret, stdin_if


def login(
    url: Annotated[str | None, typer.Option(help="The control plane's address.")] = None,
    user: Annotated[str | None, typer.Option(help="Your name.")] = None,
    password_stdin: Annotated[
        bool,
        typer.Option(help="Read the password from standard input, and a code, if one is needed, from the next line."),
    ] = False,
    password_file: PasswordFile = None,
    code: Annotated[
        str | None, typer.Option(help="The second factor's code, or a recovery code. Default: asked for if needed.")
    ] = None,
    days: Annotated[int, typer.Option(help="Days until the token expires.")] = 90,
) -> None:
    """Log in: makes an API token for this machine and keeps it in the configuration file (mode 0600)."""
    url = url or load_config().get("url") or DEFAULT_URL
    user = user or ask("User", default="admin")
    stdin = stdin_if(password_stdin)
    password = given_secret(stdin, password_file)
    if password is None:
        password = ask("Password", hide_input=True)

    def wanted_code() -> str:
        if code is not None:
            return code
        asked = stdin.readline().strip() if stdin else ask("Code of your second factor, or a recovery code")
        if not asked:
            raise CommandError("A code of the second factor is needed.", "Give it by --code, or as the second line.")
        return asked

    token = _token_for(url, user, password, wanted_code, days)
    save_config({"url": url, "token": token["secret"], "token_id": token["token"]["id"]})
    made = token["token"]
    done(
        f"Logged in to {url} as {user} ({made['role']}), until {made['expires_at'][:10]}.",
        {"url": url, "user": user, "role": made["role"], "token_id": made["id"], "expires_at": made["expires_at"]},
    )


def _token_for(
    url: str, user: str, password: str, wanted_code: Callable[[], str], days: int
) -> dict[str, dict[str, str]]:
    """The session lives for this one call: the cookie is forgotten with the client."""
    api = Api(url, None)
    session = _session(api, user, password, wanted_code)
    csrf = {"X-CSRF-Token": session["csrf_token"]}
    body = {"name": f"thalweg on {socket.gethostname()}", "role": session["user"]["role"], "expires_in_days": days}
    try:
        return api.post("/tokens", body, csrf)
    finally:
        api.delete("/session", csrf)


def _session(api: Api, user: str, password: str, wanted_code: Callable[[], str]) -> Json:
    try:
        return api.post("/session", {"name": user, "password": password})
    except CommandError as error:
        if error.code != "second_factor_required":
            raise
    return api.post("/session:verify-code", {"code": wanted_code()})


def logout() -> None:
    """Revoke this machine's token and delete it."""
    config = load_config()
    token_id = config.get("token_id")
    revoked = bool(token_id)
    if revoked:
        try:
            connect().delete(f"/tokens/{token_id}")
        except CommandError as error:
            revoked = False
            err.print(f"The token could not be revoked: {error.message}")
        except httpx.HTTPError as error:
            raise unreachable(config.get("url", DEFAULT_URL), error) from error
    config_file().unlink(missing_ok=True)
    done("Logged out.", {"token_id": token_id, "revoked": revoked})
