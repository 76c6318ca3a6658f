"""The set-up's calls of the public REST API, with nothing but the standard library.

The API token comes from the file that THALWEG_TOKEN_FILE names, the address from THALWEG_API_URL.

usage: rest.py token-works
       rest.py database NAME HOST PORT DBNAME USER        reads the password from standard input; tests the connection
       rest.py move-database HOST PORT DBNAME USER NEW-HOST NEW-PORT      the same; each that is registered there
       rest.py stream NAME SOURCE SCHEMA DESTINATION...
       rest.py has-stream NAME                            fails when there is none
       rest.py wait-replicating NAME SECONDS
"""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class RefusedError(Exception):
    """The API's problem details, as one text."""


class Api:
    def __init__(self) -> None:
        self.url = os.environ["THALWEG_API_URL"].rstrip("/")
        token = Path(os.environ["THALWEG_TOKEN_FILE"]).read_text().strip()
        self.headers = {"Authorization": f"Bearer {token}"}
        self.opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),  # never through a proxy
            urllib.request.HTTPSHandler(context=_trusting_our_own()),
        )

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        given = {**self.headers, **(headers or {})}
        request = urllib.request.Request(f"{self.url}/api/v1{path}", method=method, headers=given)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with self.opener.open(request, timeout=60) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            raise RefusedError(_problem(error)) from None
        return json.loads(content) if content else None

    def all(self, path: str) -> Iterator[Any]:
        cursor = ""
        while True:
            page = self.call("GET", f"{path}?limit=100{cursor}")
            yield from page["items"]
            if not page["next_cursor"]:
                return
            cursor = f"&cursor={page['next_cursor']}"

    def find(self, path: str, name: str) -> Any:
        """The item of a list that has this name, or None."""
        return next((item for item in self.all(path) if item["name"] == name), None)


def _trusting_our_own() -> ssl.SSLContext:
    """This host's own API shows the certificate that the settings name, whatever names it is for."""
    context = ssl.create_default_context(cafile=os.environ.get("THALWEG_TLS_CERTIFICATE_FILE") or None)
    context.check_hostname = "THALWEG_TLS_CERTIFICATE_FILE" not in os.environ
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _problem(error: urllib.error.HTTPError) -> str:
    text = error.read().decode(errors="replace")
    try:
        problem = json.loads(text)
        lines = [f"{problem['title']}: {problem['detail']}", f"cure: {problem['cure']}"]
        lines += [f"  {part['pointer']} {part['message']} cure: {part['cure']}" for part in problem["errors"]]
    except (ValueError, KeyError, TypeError):
        lines = [f"status {error.code}: {text[:500]}"]
    return "\n".join(lines)


def token_works() -> None:
    Api().call("GET", "/session")


def database(name: str, host: str, port: str, dbname: str, user: str) -> None:
    api = Api()
    found = api.find("/databases", name)
    if not found:
        found = api.call("POST", "/databases", {
            "name": name, "host": host, "port": int(port), "dbname": dbname, "user": user,
            "password": sys.stdin.readline().rstrip("\n"), "sslmode": "prefer"})
    # As the console and the command line do: what nobody has tested would be listed so.
    if found["tested_at"] is None:
        api.call("POST", f"/databases/{found['id']}/test")


def move_database(host: str, port: str, dbname: str, user: str, new_host: str, new_port: str) -> None:
    api, password = Api(), sys.stdin.readline().rstrip("\n")
    for found in api.all("/databases"):
        if (found["host"], found["port"], found["dbname"], found["user"]) != (host, int(port), dbname, user):
            continue
        # Another address needs the password again: who may only rename must not send it elsewhere.
        api.call("PATCH", f"/databases/{found['id']}", {"host": new_host, "port": int(new_port), "password": password},
                 {"If-Match": found["etag"]})
        api.call("POST", f"/databases/{found['id']}/test")
        print(f"note: {found['name']} is reached at {new_host}:{new_port} now; its streams go on from where they were")


def stream(name: str, source: str, schema: str, *destinations: str) -> None:
    api = Api()
    if api.find("/streams", name):
        print("note: already there")
        return
    api.call("POST", "/streams", {"name": name, "source_id": api.find("/databases", source)["id"],
                                  "destinations": [{"database_id": api.find("/databases", database)["id"]}
                                                   for database in destinations],
                                  "rules": {"include": [{"schema": schema, "table": "*"}]},
                                  "accept": ["left_out"]})  # pgbench's fillfactor of 100, which is the default


def has_stream(name: str) -> None:
    """Says nothing: the script that asks knows what it means."""
    if not Api().find("/streams", name):
        sys.exit(1)


def wait_replicating(name: str, seconds: str) -> None:
    api = Api()
    end = time.monotonic() + float(seconds)
    found: dict[str, Any] = {}
    while time.monotonic() < end:
        found = api.find("/streams", name)
        if found["desired_status"] != "ENABLED":
            print("note: it is stopped; start it in the console")
            return
        if found["phase"] == "REPLICATING":
            return
        if found["status"] == "ABORTED":
            break
        time.sleep(0.5)
    raise RefusedError(f"stream '{name}' is {found['status']}, {found['phase']}: "
                  f"{json.dumps(found.get('error') or found.get('health'))}")


COMMANDS = {"token-works": token_works, "database": database, "move-database": move_database,
            "stream": stream, "has-stream": has_stream,
            "wait-replicating": wait_replicating}

if __name__ == "__main__":
    try:
        COMMANDS[sys.argv[1]](*sys.argv[2:])
    except RefusedError as refused:
        sys.exit(f"{refused}")
    except urllib.error.URLError as error:
        sys.exit(f"{os.environ['THALWEG_API_URL']}: {error.reason}")
