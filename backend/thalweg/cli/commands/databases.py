"""databases list, add, edit, test, tables, remove; preflight."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from psycopg.conninfo import conninfo_to_dict

from thalweg.cli.client import Api, CommandError, Json, connect
from thalweg.cli.output import (
    SIGNS,
    AsJson,
    Yes,
    ask,
    confirm,
    done,
    json_wanted,
    line,
    number,
    out,
    print_json,
    print_table,
    size,
)
from thalweg.cli.passwords import PasswordFile, PasswordStdin, given_secret, stdin_if

app = typer.Typer(no_args_is_help=True, help="Databases that streams capture from and apply to.")
PemFile = Annotated[Path | None, typer.Option(exists=True, dir_okay=False, readable=True, help="PEM file, read here.")]
ReadFrom = Annotated[
    str | None,
    typer.Option(help="standby: read at the standby among the hosts, write at the primary.", show_default="primary"),
]
Name = Annotated[str, typer.Argument(help="The database's name or id.")]
PASSWORD_AGAIN = "Give the password again with this change: --password, --password-stdin or --password-file."  # noqa: S105


@app.command("list")
def list_databases(as_json: AsJson = False) -> None:
    """All registered databases."""
    items = list(connect().items("/databases"))
    if as_json:
        print_json(items)
        return
    print_table(
        ["NAME", "ADDRESS", "USER", "VERSION", "SOURCE OF", "DESTINATION OF"],
        [
            [
                item["name"], f"{item['host']}:{item['port']}/{item['dbname']}", item["user"], item["version"] or "–",
                str(len(item["source_of"])), str(len(item["destination_of"])),
            ]
            for item in items
        ],
    )  # fmt: skip


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Its name.")],
    uri: Annotated[str | None, typer.Option(help="postgresql://user@host:5432/database?sslmode=require")] = None,
    service: Annotated[str | None, typer.Option(help="A service of the administrator's service file.")] = None,
    host: Annotated[str | None, typer.Option(help="One host, or several: db1,db2:5433,[::1].")] = None,
    dbname: Annotated[str | None, typer.Option()] = None,
    user: Annotated[str | None, typer.Option()] = None,
    port: Annotated[int | None, typer.Option(show_default="5432")] = None,
    sslmode: Annotated[str | None, typer.Option(show_default="prefer")] = None,
    read_from: ReadFrom = None,
    ssl_root_cert: PemFile = None,
    ssl_cert: PemFile = None,
    ssl_key: PemFile = None,
    ssl_crl: PemFile = None,
    password: Annotated[bool, typer.Option("--password", help="Ask for the password, whatever else has one.")] = False,
    password_stdin: PasswordStdin = False,
    password_file: PasswordFile = None,
) -> None:
    """Register a database, after a connection test. The password comes from standard input or a file, the URI,
    PGPASSWORD or a prompt, in this order. Certificates and keys are read from files here and kept encrypted there."""
    given = {
        "uri": uri, "service": service, "host": host, "dbname": dbname, "user": user, "port": port, "sslmode": sslmode,
        "read_from": read_from,
    }  # fmt: skip
    body: Json = {field: value for field, value in given.items() if value is not None}
    body |= _contents(sslrootcert=ssl_root_cert, sslcert=ssl_cert, sslkey=ssl_key, sslcrl=ssl_crl)
    given_password = given_secret(stdin_if(password_stdin), password_file)
    if given_password is not None:
        body["password"] = given_password
    elif not password and "PGPASSWORD" in os.environ and not _holds_password(uri):
        body["password"] = os.environ["PGPASSWORD"]
    elif password or (uri is None and service is None and ssl_key is None):
        body["password"] = ask("Password", hide_input=True, default="")
    api = connect()
    result = api.post("/databases:test", body)
    if result["code"] is not None or not json_wanted(False):
        _show_test(result)
    created = api.create("/databases", {**body, "name": name})
    # The second test records its result with the database; else lists call the database not tested yet.
    api.post(f"/databases/{created['id']}/test")
    done(f"Registered {created['name']} as {created['id']}.", created)


@app.command()
def edit(
    name: Name,
    new_name: Annotated[str | None, typer.Option("--name", help="Another name.")] = None,
    uri: Annotated[
        str | None,
        typer.Option(
            help="Its whole address: postgresql://user@host:5432/database?sslmode=require. Options of libpq become "
            "those of the URI; user, database, password and sslmode stay where it names none."
        ),
    ] = None,
    host: Annotated[str | None, typer.Option()] = None,
    port: Annotated[int | None, typer.Option()] = None,
    dbname: Annotated[str | None, typer.Option()] = None,
    user: Annotated[str | None, typer.Option()] = None,
    sslmode: Annotated[str | None, typer.Option()] = None,
    read_from: ReadFrom = None,
    ssl_root_cert: PemFile = None,
    ssl_cert: PemFile = None,
    ssl_key: PemFile = None,
    ssl_crl: PemFile = None,
    password: Annotated[bool, typer.Option("--password", help="Give a new password, at the prompt.")] = False,
    password_stdin: Annotated[bool, typer.Option(help="Read a new password from standard input.")] = False,
    password_file: PasswordFile = None,
    no_test: Annotated[bool, typer.Option("--no-test", help="Change it even if the test fails.")] = False,
) -> None:
    """Change a database's address or login, after a connection test. Its streams use it immediately. Another address,
    or less TLS, wants the password again."""
    asked = {
        "name": new_name, "uri": uri, "host": host, "port": port, "dbname": dbname, "user": user, "sslmode": sslmode,
        "read_from": read_from,
    }  # fmt: skip
    body: Json = {key: value for key, value in asked.items() if value is not None}
    body |= _contents(sslrootcert=ssl_root_cert, sslcert=ssl_cert, sslkey=ssl_key, sslcrl=ssl_crl)
    given_password = given_secret(stdin_if(password_stdin), password_file)
    if given_password is not None:
        body["password"] = given_password
    elif password:
        body["password"] = ask("Password", hide_input=True)
    if not body:
        raise CommandError("Nothing to change.", "Give at least one option.")
    api = connect()
    database = api.find("/databases", "database", name)
    try:
        if body.keys() - {"name"} and not no_test:
            _test_change(api, database, body)
        changed = api.patch(f"/databases/{database['id']}", body, database["etag"])
    except CommandError as refused:
        if refused.code == "password_required":
            raise replace(refused, cure=PASSWORD_AGAIN) from refused
        raise
    if body.keys() - {"name"} and not no_test:
        api.post(f"/databases/{changed['id']}/test")  # Recorded with the database, as at its registration.
    done(f"Changed {changed['name']}.", changed)


def _holds_password(uri: str | None) -> bool:
    return "password" in _fields_of(uri)


def _fields_of(uri: str | None) -> set[str]:
    """Fields that a URI decides about, as libpq reads it: port and options even where it names none. The control plane
    says what is wrong with one that cannot be read."""
    if uri is None:
        return set()
    try:
        return {"port", "options", *(field for field, value in conninfo_to_dict(uri).items() if value)}
    except psycopg.Error:
        return set()


def _test_change(api: Api, database: Json, change: Json) -> None:
    """Tests a change first: if the database refused it, running streams would stop at once."""
    fields = ("host", "port", "dbname", "user", "sslmode", "options", "read_from")
    named = _fields_of(change.get("uri"))
    kept = {field: database[field] for field in fields if field not in named}
    asked = {field: value for field, value in change.items() if field != "name"}
    result = api.post("/databases:test", {**kept, **asked, "database_id": database["id"]})
    if result["code"] is not None:
        cure = f"{result['cure'] or ''} Nothing was changed; --no-test changes it anyway.".strip()
        raise _failed_test({**result, "cure": cure})
    if not json_wanted(False):
        _show_test(result)


def _contents(**files: Path | None) -> Json:
    return {field: path.read_text() for field, path in files.items() if path is not None}


@app.command()
def test(name: Name) -> None:
    """Connect to a registered database."""
    api = connect()
    _show_test(api.post(f"/databases/{api.find('/databases', 'database', name)['id']}/test"))


def _show_test(result: Json) -> None:
    if result["code"] is not None:
        raise _failed_test(result)
    if json_wanted(False):
        print_json(result)
        return
    tls = "with TLS" if result["tls"] else "without TLS"
    out.print(f"Connected {tls} in {result['connect_ms']:.0f} ms to PostgreSQL {result['version']}.")
    for server in result["servers"]:
        out.print(f"{server['address']}: {server['role'] or server['message']}")


def _failed_test(result: Json) -> CommandError:
    details = (result["sql"],) if result["sql"] else ()
    return CommandError(f"{result['code']}: {result['message']}", result["cure"] or "", details)


@app.command()
def tables(name: Name, search: str | None = None, as_json: AsJson = False) -> None:
    """The database's tables with sizes and keys."""
    api = connect()
    database = api.find("/databases", "database", name)
    items = list(api.items(f"/databases/{database['id']}/tables", search=search))
    if as_json:
        print_json(items)
        return
    print_table(
        ["TABLE", "KIND", ">ROWS", ">SIZE", "KEY", "REMARK"],
        [
            [
                f"{item['schema']}.{item['table']}", item["kind"], number(item["rows_estimated"]), size(item["bytes"]),
                ", ".join(item["key_columns"]) or "–", " ".join(item["unsupported"] + item["warnings"]),
            ]
            for item in items
        ],
    )  # fmt: skip


@app.command()
def remove(name: Name, yes: Yes = False) -> None:
    """Remove a database. The database itself does not change. Asks for confirmation on a terminal."""
    api = connect()
    database = api.find("/databases", "database", name)
    confirm(f"Remove {database['name']}, with its stored password?", yes)
    api.delete(f"/databases/{database['id']}")
    done(f"Removed {database['name']}.", database)


def show_checks(result: Json, names: dict[str, str]) -> None:
    """One line for each check, its cure below; fails when a check did. `names` are the databases', by id: each of
    several destinations is named."""
    for check in result["checks"]:
        where = f"{names[check['database_id']]}: " if check["database_id"] else ""
        out.print(line(SIGNS[check["status"]], f" {check['side']:<11} {where}{check['title']}: {check['detail']}"))
        for item in check["items"]:
            out.print(line(f"    - {item}"))
        if check["cure"]:
            out.print(f"    cure: {check['cure']}")
        if check["sql"]:
            out.print(f"    at the {check['side']} {check['sql_at']}:")
        for statement in (check["sql"] or "").splitlines():
            out.print(f"    {statement}")
        if check["consent"] and not check["accepted"]:
            out.print(f"    or accept it: --accept {check['consent']}")
    if not result["ready"]:
        raise CommandError("Not ready.", "Do what the failed checks say, and accept what needs consent.")
