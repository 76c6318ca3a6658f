"""Other ways to say where a database is: a libpq URI, or a service of the file that the administrator allows."""

from configparser import ConfigParser, Error
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from thalweg.kernel.pem import PEM_FIELDS

PORT = "5432"
"""The one of a host without a port of its own."""
FIELDS = ("host", "port", "dbname", "user", "password", "sslmode", "service")


def fields_of_uri(uri: str) -> dict[str, Any]:
    """The fields of a database, as libpq reads the address. Raises ValueError, whose message holds nothing of it."""
    if not uri.startswith(("postgresql://", "postgres://")):
        raise ValueError("A connection URI begins with postgresql://, such as postgresql://user@host:5432/database.")
    try:
        found = conninfo_to_dict(uri)
    except psycopg.Error:  # its message quotes the URI, password included
        raise ValueError(
            "Not a connection URI: postgresql://user:password@host:5432/database?sslmode=require."
        ) from None
    return fields_of({name: str(value) for name, value in found.items()})


def options_of_uri(uri: str) -> list[str]:
    """Those names in its query that libpq knows: any other text may be part of a password that was not escaped. They
    are read without libpq, which calls a URI whose option has an = in its value no URI at all."""
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    _, _, query = uri.partition("?")
    names = [unquote(part.partition("=")[0]) for part in query.split("&")]
    return [name for name in names if name in known]


def fields_of(found: dict[str, str]) -> dict[str, Any]:
    """From libpq's keywords. Keywords without a field of their own go into `options`, whose names are checked there."""
    files = [name for name in PEM_FIELDS if name in found]
    if files:
        raise ValueError(f"{', '.join(files)} names a file: give the contents (PEM) in the field of that name instead.")
    fields: dict[str, Any] = {name: found.pop(name) for name in FIELDS if found.get(name)}
    hosts = fields.get("host", "").split(",")
    ports = [port or PORT for port in fields.pop("port", PORT).split(",")]
    if len(ports) == 1 or len(set(ports)) == 1:
        fields["port"] = _port(ports[0])
    elif len(ports) == len(hosts):
        fields["host"] = ",".join(f"{_bracketed(host)}:{_port(port)}" for host, port in zip(hosts, ports, strict=True))
        fields["port"] = _port(ports[0])
    else:
        raise ValueError("Give one port, or one for each host.")
    return {**fields, "options": found} if found else fields


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _port(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("A port is a number from 1 to 65535.")
    return int(text)


def fields_of_service(path: Path | None, name: str) -> dict[str, Any]:
    """Raises ValueError: no file is allowed, or it has no such service."""
    if path is None:
        raise ValueError(
            "Services need a service file that the administrator allows (THALWEG_DATABASE_SERVICE_FILE): give host, "
            "dbname and user instead."
        )
    file = ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    try:
        file.read_string(path.read_text())
    except (OSError, UnicodeError, Error) as error:
        raise ValueError("The administrator's service file cannot be read.") from error
    if not file.has_section(name):
        raise ValueError(f"The service file has no service {name}.")
    return fields_of({key: value.strip() for key, value in file.items(name) if value.strip()})
