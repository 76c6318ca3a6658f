"""The command line's REST client: finds address and token, turns problems into one clear error with its cure."""

import json
import os
import ssl
import uuid
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from thalweg.kernel.words import ended

DEFAULT_URL = "http://127.0.0.1:8642"
Json = dict[str, Any]


@dataclass
class CommandError(Exception):
    """Shown as `error:`, `cure:` and details; ends the command with `exit_code`."""

    message: str
    cure: str = ""
    details: tuple[str, ...] = ()
    exit_code: int = 1
    code: str = ""
    """The code of the API's problem."""


EXIT_REFUSED = 1
EXIT_NOT_LOGGED_IN = 3
EXIT_UNREACHABLE = 4


def config_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "thalweg" / "config.json"


def load_config() -> Json:
    """The environment wins over the file that `thalweg login` writes."""
    file = config_file()
    try:
        config: Json = json.loads(file.read_text()) if file.exists() else {}
    except ValueError as error:
        raise CommandError(f"{file} is not valid JSON.", "Log in again: thalweg login") from error
    url = os.environ.get("THALWEG_URL") or os.environ.get("THALWEG_API_URL")
    if url:
        config["url"] = url
    token_file = os.environ.get("THALWEG_TOKEN_FILE")
    if os.environ.get("THALWEG_TOKEN"):
        config["token"] = os.environ["THALWEG_TOKEN"]
    elif token_file:
        try:
            config["token"] = Path(token_file).read_text().strip()
        except OSError as error:
            raise CommandError(f"{token_file}: {error.strerror}.", "Correct THALWEG_TOKEN_FILE.") from error
    return config


def save_config(config: Json) -> None:
    file = config_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as output:
        json.dump(config, output, indent=2)


class Api:
    """One command's connection. Loopback addresses are never sent through a proxy."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=self.url + "/api/v1", timeout=60, verify=_trusted(),
            trust_env=httpx.URL(url).host not in ("127.0.0.1", "localhost"),
            headers={"Authorization": f"Bearer {token}"} if token else {},
        )  # fmt: skip

    def get(self, path: str, **query: Any) -> Json:
        return self._call("GET", path, params={name: value for name, value in query.items() if value is not None})

    def text(self, path: str, **query: Any) -> str:
        """An answer that is a file, or JSON as it came."""
        return self._ask("GET", path, params=query).text

    def pieces(self, path: str, **query: Any) -> Generator[bytes]:
        """An answer that is a file of any length, as it comes."""
        begun = False
        try:
            with self._http.stream("GET", path, params=query) as response:
                if not response.is_success:
                    response.read()
                    raise _problem(response)
                for piece in response.iter_bytes():
                    begun = True
                    yield piece
        except httpx.HTTPError as error:
            if not begun:
                raise unreachable(self.url, error) from error
            raise CommandError(
                f"The answer broke off: {ended(str(error))} What has come is not all of it.", "Run the command again.",
                exit_code=EXIT_UNREACHABLE,
            ) from error  # fmt: skip

    def post(self, path: str, body: Json | None = None, headers: dict[str, str] | None = None) -> Json:
        return self._call("POST", path, json=body if body is not None else {}, headers=headers)

    def create(self, path: str, body: Json) -> Json:
        return self.post(path, body, {"Idempotency-Key": str(uuid.uuid4())})

    def patch(self, path: str, body: Json, etag: str) -> Json:
        return self._call("PATCH", path, json=body, headers={"If-Match": etag})

    def put(self, path: str, body: Json, etag: str | None = None) -> Json:
        return self._call("PUT", path, json=body, headers={"If-Match": etag} if etag else None)

    def delete(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> Json:
        return self._call("DELETE", path, params=query, headers=headers)

    def items(self, path: str, **query: Any) -> Iterator[Json]:
        """Every item of a list, part by part."""
        cursor = None
        while True:
            page = self.get(path, cursor=cursor, **query)
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def find(self, path: str, what: str, name: str) -> Json:
        """By name or id."""
        known = list(self.items(path))
        found = [item for item in known if name in (item["name"], item["id"])]
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(f"{item['name']} ({item['id']})" for item in found)
            raise CommandError(f"“{name}” can be several: {several}.", "Give the id of the one that is meant.")
        names = ", ".join(item["name"] for item in known) or "none"
        raise CommandError(f"There is no {what} “{name}”.", f"There are: {names}.")

    def events(self) -> Generator[tuple[str, Json], None, None]:
        """Server-sent events as (name, data), until the connection ends. A keepalive has neither."""
        with self._http.stream("GET", "/events", timeout=httpx.Timeout(60, read=60)) as response:
            if not response.is_success:
                response.read()
                raise _problem(response)
            name = ""
            for line in response.iter_lines():
                field, _, value = line.partition(": ")
                if line.startswith(":"):
                    yield "", {}
                elif field == "event":
                    name = value
                elif field == "data" and name:
                    yield name, json.loads(value)

    def _call(self, method: str, path: str, **options: Any) -> Json:
        response = self._ask(method, path, **options)
        body: Json = response.json() if response.content else {}
        return body

    def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            response = self._http.request(method, path, **options)
        except httpx.InvalidURL as error:
            raise CommandError(f"{self.url} is not an address.", "Correct THALWEG_URL.") from error
        except httpx.HTTPError as error:
            raise unreachable(self.url, error) from error
        if response.is_success:
            return response
        raise _problem(response)


def _trusted() -> ssl.SSLContext | bool:
    """The trusted authorities: the system's, or those of THALWEG_CA_FILE."""
    file = os.environ.get("THALWEG_CA_FILE")
    if not file:
        return True
    try:
        return ssl.create_default_context(cafile=file)
    except (OSError, ssl.SSLError) as error:
        raise CommandError(
            f"THALWEG_CA_FILE: {file} holds no certificates that can be read.", "Name a file of PEM certificates."
        ) from error


def unreachable(url: str, error: Exception) -> CommandError:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return CommandError(
            f"{url} shows a certificate that is not trusted: {ended(str(error))}",
            "Let THALWEG_CA_FILE name the certificate (PEM) that signed it; THALWEG_URL must name a host in it.",
            exit_code=EXIT_UNREACHABLE,
        )
    return CommandError(
        f"{url} does not answer: {ended(str(error))}", "Start it with `make up`, or set THALWEG_URL.",
        exit_code=EXIT_UNREACHABLE,
    )  # fmt: skip


def _problem(response: httpx.Response) -> CommandError:
    try:
        problem = response.json()
        details = (problem.get("sql") or "").splitlines()
        parts = problem.get("errors") or []
        for part in parts:
            if not _is_said(part, problem["detail"], alone=len(parts) == 1):
                details.append(f"{part['pointer']} {part['message']}".strip())
            details += [f"  cure: {part['cure']}"] if part.get("cure") not in (None, "", problem.get("cure")) else []
            details += [f"  {line}" for line in (part.get("sql") or "").splitlines()]
        message, cure, code = f"{problem['title']}. {problem['detail']}", problem.get("cure") or "", problem["code"]
    except (ValueError, KeyError, TypeError):
        return CommandError(f"The answer was status {response.status_code}.", "Check the address: is it Thalweg's?")
    if response.status_code == httpx.codes.UNAUTHORIZED:
        return CommandError(message, "Log in: thalweg login, or set THALWEG_TOKEN.", (), EXIT_NOT_LOGGED_IN, code)
    return CommandError(message, cure, tuple(details), EXIT_REFUSED, code)


def _is_said(part: Json, detail: str, *, alone: bool) -> bool:
    """Whether the detail says the part's message and, where there are several parts, its place."""
    return part["message"] in detail and (alone or part["pointer"] in detail)


def connect() -> Api:
    config = load_config()
    if not config.get("token"):
        raise CommandError("You are not logged in.", "Run: thalweg login", exit_code=EXIT_NOT_LOGGED_IN)
    return Api(config.get("url", DEFAULT_URL), config["token"])
