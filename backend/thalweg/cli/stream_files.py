"""Streams in files: the body of the request that creates one, in which databases and engines may have names."""

import json
from typing import Any

import typer
import yaml  # type: ignore[import-untyped]

from thalweg.cli.client import Api, CommandError, Json
from thalweg.cli.placement import check_one_engine
from thalweg.kernel.words import ended

CURE = "Write the body of POST /streams, as the review step of the console's wizard shows it."
DATABASE = "/databases", "database"
ENGINE = "/engines", "engine"
OF_STREAM = {"source": DATABASE, "capture_engine": ENGINE}
OF_DESTINATION = {"database": DATABASE, "engine": ENGINE}
"""The members that a name may have in a file; in the request they end with _id, and take an id alone."""


def stream_in(file: typer.FileText) -> Json:
    try:
        body: Any = yaml.safe_load(file)
        json.dumps(body, allow_nan=False)  # YAML has values that JSON does not: dates, cycles, .nan
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise CommandError(f"{file.name} cannot be read as a request: {ended(str(error))}", CURE) from error
    if not isinstance(body, dict) or "name" not in body:
        raise CommandError(f"{file.name} describes no stream.", CURE)
    return body


def with_ids(api: Api, body: Json) -> Json:
    """With the ids of the databases and engines that it names. The API judges members of another form."""
    resolved = _resolved(api, body, OF_STREAM, "")
    destinations = resolved.get("destinations")
    if isinstance(destinations, list):
        resolved["destinations"] = [
            _resolved(api, each, OF_DESTINATION, f"destinations[{number}].") if isinstance(each, dict) else each
            for number, each in enumerate(destinations)
        ]
        applies = [each.get("engine_id") for each in resolved["destinations"] if isinstance(each, dict)]
        check_one_engine(api, resolved.get("capture_engine_id"), applies, "capture_engine: NAME in the file")
    return resolved


def _resolved(api: Api, body: Json, members: dict[str, tuple[str, str]], place: str) -> Json:
    resolved = {name: value for name, value in body.items() if name not in members}
    for member, (path, what) in members.items():
        given = [name for name in (member, f"{member}_id") if body.get(name) is not None]
        if len(given) > 1:
            raise CommandError(f"The file has both {place}{member} and {place}{member}_id.", "Give one of them.")
        if given and isinstance(value := body[given[0]], str):
            try:
                resolved[f"{member}_id"] = api.find(path, what, value)["id"]
            except CommandError as error:
                raise CommandError(f"{place}{given[0]}: {error.message}", error.cure) from error
        elif given:
            resolved[f"{member}_id"] = body[given[0]]
    return resolved
