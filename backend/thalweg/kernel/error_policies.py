"""Policies for transactions that fail permanently, by their errors: the parameter error_policies. The limits
are the engine's (engine/contract/control-api.md)."""

from enum import StrEnum
from typing import Annotated, Any, Required

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from typing_extensions import TypedDict

from thalweg.kernel.models import FieldProblem, TableIdentifier

POLICIES_MAX = 100
CODES = ("apply_conflict", "apply_failed", "initial_copy_inconsistent")
"""Those that a transaction's data can cause."""


ErrorName = Annotated[str, StringConstraints(pattern=rf"^([0-9A-Z]{{2}}|[0-9A-Z]{{5}}|{'|'.join(CODES)})$")]


class PolicyAction(StrEnum):
    STOP = "stop"
    PARK = "park"
    SKIP = "skip"
    RETRY = "retry"


class ErrorPolicy(TypedDict, total=False):
    """The fate of a transaction that fails permanently with such an error."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    error: Annotated[
        ErrorName,
        Field(
            description="An SQLSTATE, the first two characters of one (its class), or one of the codes "
            f"{', '.join(CODES)}. Omitted: any error.",
            examples=["23505"],
        ),
    ]
    schema: Annotated[TableIdentifier, Field(description="With `table`.", examples=["public"])]
    table: Annotated[
        TableIdentifier,
        Field(
            description="The table whose change failed, by its exact name in the stream. Omitted: any.",
            examples=["orders"],
        ),
    ]
    action: Required[Annotated[PolicyAction, Field(strict=False)]]
    times: Annotated[
        int, Field(ge=1, le=100, description="How often `retry` tries again before `after_retries` comes.")
    ]
    delay_seconds: Annotated[int, Field(ge=0, le=3600, description="Seconds to wait before each retry.")]
    after_retries: Annotated[
        PolicyAction,
        Field(strict=False, description="`stop`, `park` or `skip`, for when the last retry fails, too."),
    ]


_POLICIES: TypeAdapter[list[ErrorPolicy]] = TypeAdapter(Annotated[list[ErrorPolicy], Field(max_length=POLICIES_MAX)])
OF_RETRY = ("times", "delay_seconds", "after_retries")
EXPECTED_ERROR = (
    "It is none of these: an SQLSTATE in upper case, such as 23505; the class of one, such as 23; or one of the codes "
    f"{', '.join(CODES)}."
)
CURE = (
    'Write for example [{"error": "23505", "action": "park"}, {"action": "retry", "times": 5, "delay_seconds": 10, '
    '"after_retries": "park"}].'
)


def wrong_policies(value: Any, at: str) -> list[FieldProblem]:
    """Faults of the parameter's value, each with its place below `at`."""
    try:
        policies = _POLICIES.validate_python(value)
    except ValidationError as error:
        return [
            _problem(at + "".join(f"/{part}" for part in found["loc"])[:200], _in_words(found))
            for found in error.errors(include_url=False, include_input=False)[:POLICIES_MAX]
        ]
    return [
        _problem(f"{at}/{number}/{member}", message)
        for number, policy in enumerate(policies)
        for member, message in _contradictions(policy)
    ]


def _in_words(found: ErrorDetails) -> str:
    """An error's name is described by what it may be, not by the pattern that it does not match."""
    of_error = found["type"] == "string_pattern_mismatch" and found["loc"][-1] == "error"
    return EXPECTED_ERROR if of_error else found["msg"]


def _problem(pointer: str, message: str) -> FieldProblem:
    return FieldProblem(pointer=pointer, code="invalid_parameter", message=message, cure=CURE)


def _contradictions(policy: ErrorPolicy) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if "table" in policy and "schema" not in policy:
        found.append(("schema", "Name the schema and the table together."))
    if "schema" in policy and "table" not in policy:
        found.append(("table", "Name one of the schema's tables."))
    retries = policy["action"] == PolicyAction.RETRY
    for member in OF_RETRY:
        if retries and member not in policy:
            found.append((member, "A retry needs times, delay_seconds and after_retries."))
        elif not retries and member in policy:
            found.append((member, "Only the action retry has it."))
    if retries and policy.get("after_retries") == PolicyAction.RETRY:
        found.append(("after_retries", "It must be stop, park or skip."))
    return found
