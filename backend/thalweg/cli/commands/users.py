"""users list, add, edit, remove."""

from typing import Annotated

import typer

from thalweg.cli.client import CommandError, Json, connect
from thalweg.cli.output import AsJson, ask, done, print_json, print_table
from thalweg.cli.passwords import PasswordFile, PasswordStdin, given_secret, stdin_if
from thalweg.kernel.principal import Demand, UserRole

app = typer.Typer(no_args_is_help=True, help="People who may log in.")
Name = Annotated[str, typer.Argument(help="The user's name or id.")]


@app.command("list")
def list_users(as_json: AsJson = False) -> None:
    """All users."""
    items = list(connect().items("/users"))
    if as_json:
        print_json(items)
        return
    print_table(
        ["NAME", "ROLE", "ENABLED", "2ND FACTOR", "SINCE"],
        [
            [item["name"], item["role"], _yes(item["enabled"]), _yes(item["second_factor"]), item["created_at"][:10]]
            for item in items
        ],
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="With which they log in.")],
    role: Annotated[UserRole, typer.Option(help="The user's role.")] = UserRole.VIEWER,
    password_stdin: PasswordStdin = False,
    password_file: PasswordFile = None,
) -> None:
    """Add a user. The password comes from standard input, a file or a prompt."""
    password = given_secret(stdin_if(password_stdin), password_file)
    if password is None:
        password = ask("New password", hide_input=True, confirmation_prompt=True)
    made = connect().create("/users", {"name": name, "role": role, "password": password})
    done(f"Added {made['name']} ({made['role']}).", made)


@app.command()
def edit(
    name: Name,
    new_name: Annotated[str | None, typer.Option("--name", help="Another name.")] = None,
    role: Annotated[UserRole | None, typer.Option(help="Another role.")] = None,
    enabled: Annotated[bool | None, typer.Option(help="Whether they may log in.")] = None,
) -> None:
    """Change a user's name or role, or lock the user out."""
    asked = {"name": new_name, "role": role, "enabled": enabled}
    body: Json = {key: value for key, value in asked.items() if value is not None}
    if not body:
        raise CommandError("Nothing to change.", "Give --name, --role, --enabled or --no-enabled.")
    api = connect()
    user = api.find("/users", "user", name)
    changed = api.patch(f"/users/{user['id']}", body, user["etag"])
    done(f"{changed['name']}: {changed['role']}, {'enabled' if changed['enabled'] else 'disabled'}.", changed)


@app.command()
def remove(name: Name) -> None:
    """Remove a user with sessions and tokens."""
    api = connect()
    user = api.find("/users", "user", name)
    api.delete(f"/users/{user['id']}")
    done(f"Removed {user['name']}.", user)


@app.command()
def reset_second_factor(name: Name) -> None:
    """Turn off the second factor of a user who has lost the device. This ends all sessions of that user."""
    api = connect()
    user = api.find("/users", "user", name)
    api.post(f"/users/{user['id']}:reset-second-factor")
    done(f"{user['name']} logs in with the password alone now.", user)


@app.command()
def require_second_factor(
    of: Annotated[Demand | None, typer.Argument(help="The users who must have one. Default: show them.")] = None,
) -> None:
    """Require a second factor. From then on, a user without one can only set one up; API tokens need none."""
    api = connect()
    policy = api.get("/access-policy")
    if of is not None:
        policy = api.patch("/access-policy", {"require_second_factor": of}, policy["etag"])
    done(f"A second factor is demanded of: {policy['require_second_factor']}.", policy)
