"""Stream parameters: defined by the engine's contract, checked here before the engine sees them."""

import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from thalweg.engine_client.mining_limits import MINING_LIMITS
from thalweg.features.streams.schemas import ParameterType, StreamParameter
from thalweg.kernel.conflict_detection import wrong_detection
from thalweg.kernel.conflict_handlers import HANDLERS, with_expressions, wrong_handlers
from thalweg.kernel.error_policies import wrong_policies
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.principal import Principal, Role
from thalweg.kernel.problems import Problem
from thalweg.kernel.statement_handlers import STATEMENTS, wrong_statements

Values = Mapping[str, Any]
"""By their names: those that were set, as requests and the store have them."""
WRONG_LISTS: dict[ParameterType, Callable[[Any, str], list[FieldProblem]]] = {
    ParameterType.ERROR_POLICIES: wrong_policies,
    ParameterType.CONFLICT_HANDLERS: wrong_handlers,
    ParameterType.CONFLICT_DETECTION: wrong_detection,
    ParameterType.STATEMENT_HANDLERS: wrong_statements,
}
"""The faults of each kind of list. Its entries may name a table of the stream by `schema` and `table`."""


@lru_cache(maxsize=4)
def load_parameters(contract_directory: Path) -> dict[str, StreamParameter]:
    """By name, in the contract's order; the limits of mining last."""
    document = json.loads((contract_directory / "parameters.json").read_text())
    blank = {"minimum": None, "maximum": None, "values": None, "unit": None}
    return {
        item["name"]: StreamParameter.model_validate(
            {**blank, **item, "per_destination": item["scope"] == "DESTINATION"}
        )
        for item in [*document["parameters"], *MINING_LIMITS]
    }


def needs_restart(definitions: dict[str, StreamParameter], before: Values, after: Values) -> bool:
    """Whether what is in force changes in a parameter that is not live. Both are those that were set."""
    old, new = effective(definitions, before), effective(definitions, after)
    return any(old[name] != new[name] for name, definition in definitions.items() if not definition.live)


def check_destination_parameters(definitions: dict[str, StreamParameter], values: Values, at: str) -> None:
    """Checks the parameters of one destination; `at` points to it in the request. Raises invalid_request."""
    check_parameters(definitions, values, at)
    shared = [name for name in values if not definitions[name].per_destination]
    if shared:
        message, cure = f"{', '.join(shared)}: the destinations share one.", "Set it for the stream."
        raise Problem(
            "invalid_request", message, cure,
            errors=[
                FieldProblem(pointer=f"{at}/parameters/{name}", code="invalid_parameter", message=message, cure=cure)
                for name in shared
            ],
        )  # fmt: skip


def check_rights(principal: Principal, before: Values, after: Values, at: str = "") -> None:
    """Destinations execute SQL in parameters with the rights of their users, so that it is for administrators. Others
    may leave handlers with expressions of `before` as they are. Both are all values that were set, those of the stream
    with the destination's in their place. They may be wrong still: reading them takes time, so rights come first.
    Raises permission_denied."""
    if principal.role.covers(Role.ADMIN):
        return
    if after.get(STATEMENTS, []) != before.get(STATEMENTS, []):
        name, what = STATEMENTS, "change"
    elif with_expressions(after.get(HANDLERS)) - with_expressions(before.get(HANDLERS)):
        name, what = HANDLERS, "write expressions of"
    else:
        return
    message = (
        f"Only administrators may {what} {name}: the destination executes them with all rights of the stream's user "
        f"there. You are {principal.role}."
    )
    cure = "Ask an admin to set it, or use an API token that has that role."
    error = FieldProblem(pointer=f"{at}/parameters/{name}", code="permission_denied", message=message, cure=cure)
    raise Problem("permission_denied", message, cure, errors=[error])


def check_parameters(definitions: dict[str, StreamParameter], values: Values, at: str = "") -> None:
    """Raises invalid_request that names every wrong one."""
    errors = []
    for name, value in values.items():
        definition = definitions.get(name)
        if definition is not None and definition.type in WRONG_LISTS:
            errors += WRONG_LISTS[definition.type](value, f"{at}/parameters/{name}")
            continue
        message = _unknown(definitions, name) if definition is None else _wrong(definition, value)
        if message is not None:
            errors.append(
                FieldProblem(
                    pointer=f"{at}/parameters/{name[:100]}", code="invalid_parameter", message=message,
                    cure="`thalweg streams parameters` (GET /api/v1/stream-parameters) lists them with their ranges.",
                )
            )  # fmt: skip
    if errors:
        raise Problem(
            "invalid_request",
            f"{len(errors)} of the parameters are not valid.",
            errors[0].cure,
            errors=errors,
        )


def _unknown(definitions: dict[str, StreamParameter], name: str) -> str:
    near = get_close_matches(name, definitions)
    return "There is no such parameter." + (f" Similar ones: {', '.join(near)}." if near else "")


def _wrong(definition: StreamParameter, value: Any) -> str | None:
    if definition.type is ParameterType.BOOLEAN:
        return None if isinstance(value, bool) else "It must be true or false."
    if definition.type is ParameterType.ENUM:
        allowed = definition.values or []
        return None if value in allowed else f"It must be one of {', '.join(allowed)}."
    if definition.type is ParameterType.TEXT:
        fits = isinstance(value, str) and len(value) <= (definition.maximum or 0) and value.isprintable()
        return None if fits else f"It must be a text of at most {definition.maximum} printable characters."
    if isinstance(value, bool) or not isinstance(value, int):
        return "It must be a whole number."
    low, high = definition.minimum, definition.maximum
    if (low is not None and value < low) or (high is not None and value > high):
        return f"It must be from {low} to {high} {definition.unit or ''}".rstrip() + "."
    return None


def with_table(
    definitions: dict[str, StreamParameter], values: Values, own: tuple[str, str], by: tuple[str, str] | None
) -> dict[str, Any]:
    """The values where the table `own` has the name `by` in all lists, or is in none of them any more. Statements and
    expressions stay as they are."""
    lists = {name for name, definition in definitions.items() if definition.type in WRONG_LISTS}
    return {name: _with_table(value, own, by) if name in lists else value for name, value in values.items()}


def _with_table(entries: list[dict[str, Any]], own: tuple[str, str], by: tuple[str, str] | None) -> list[Any]:
    """The table keeps its own entries: those that were written for the name before it had it concerned no table."""
    if not any(_table_of(entry) == own for entry in entries):
        return entries
    others = [entry for entry in entries if _table_of(entry) not in (own, by)]
    if by is None:
        return others
    schema, table = by
    return [
        {**entry, "schema": schema, "table": table} if _table_of(entry) == own else entry
        for entry in entries
        if _table_of(entry) != by
    ]


def _table_of(entry: dict[str, Any]) -> tuple[Any, Any]:
    return entry.get("schema"), entry.get("table")


def effective(definitions: dict[str, StreamParameter], values: Values) -> dict[str, Any]:
    return {name: values.get(name, definition.default) for name, definition in definitions.items()}
