"""Base classes and constrained types that every schema of the API is made of."""

from enum import StrEnum
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

NO_CONTROL_CHARACTERS = r"^[^\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]*$"
"""Also none that nobody sees, or that turn the direction of what follows."""

Name = Annotated[
    str, StringConstraints(min_length=1, max_length=100, strip_whitespace=True, pattern=NO_CONTROL_CHARACTERS)
]
Text = Annotated[str, StringConstraints(max_length=1000, pattern=NO_CONTROL_CHARACTERS)]
Secret = Annotated[str, StringConstraints(max_length=1000, pattern=NO_CONTROL_CHARACTERS)]
TableIdentifier = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[^\x00]+$")]
"""The exact name of a schema or a table in PostgreSQL."""
ID_PATTERN = r"^[a-z0-9]{8,32}$"
Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
DESTINATION_PATTERN = r"^[a-z0-9]{1,16}$"
DestinationId = Annotated[str, StringConstraints(pattern=DESTINATION_PATTERN)]


UNKNOWN_FIELDS_MAX = 10


class Resource(BaseModel):
    """The base of all answers. Every field is always present; null means unknown or not applicable."""

    model_config = ConfigDict(
        populate_by_name=True, from_attributes=True, json_schema_serialization_defaults_required=True
    )


class Body(BaseModel):
    """The base of all requests. Unknown fields are refused, so that a typing error is not silently ignored. Numbers and
    booleans are strict: `false` is not the number 0, nor "5" the number 5, as the schema says."""

    model_config = ConfigDict(populate_by_name=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, value: Any) -> Any:
        """One failure for all of them: each of a hundred thousand would be written down."""
        if isinstance(value, dict) and len(value) > len(cls.model_fields) + UNKNOWN_FIELDS_MAX:
            raise PydanticCustomError("too_many_fields", "It has many fields that are not known here.")
        return value


Item = TypeVar("Item")


class Page(Resource, Generic[Item]):
    """A part of a list. Send `next_cursor` as `cursor` to get the following part; null means the end."""

    items: list[Item]
    next_cursor: str | None

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """DatabasePage for Page[Database]: a name that every language can have."""
        return f"{params[0].__name__}Page"


class FieldProblem(Resource):
    """One part of a request that is wrong, or one check that failed."""

    pointer: str = Field(description="JSON pointer into the request, or empty when none applies.")
    code: str
    message: str
    cure: str | None = None
    sql: str | None = None


class CheckStatus(StrEnum):
    OK = "ok"
    WARNING = "warning"
    CONSENT = "consent"
    FAILED = "failed"


class CheckSide(StrEnum):
    SOURCE = "source"
    DESTINATION = "destination"


class Check(Resource):
    id: str = Field(description="Stable: wal_level, replication_slots, table_keys, ...")
    side: CheckSide
    database_id: str | None = Field(
        default=None, description="The one of several destinations that was checked. Null: the source, or the only one."
    )
    title: str
    status: CheckStatus = Field(description="consent: nothing is created until somebody accepts what it says.")
    detail: str
    items: list[str] = Field(default_factory=list, description="The subjects of the detail, one by one.")
    cure: str | None
    sql: str | None = Field(description="The cure as SQL, ready to run by a user with the necessary rights.")
    sql_at: str | None = Field(
        default=None,
        description="The database to run `sql` in, at this side: its name in Thalweg, and its address. Null without "
        "`sql`.",
        examples=["shop (db.example.com:5432/shop)"],
    )
    consent: str | None = Field(
        default=None,
        description="Send this in `accept` to accept it: the check's id and a digest of its text, so that "
        "nothing else is accepted. Null where there is nothing to accept.",
    )
    accepted: bool = Field(default=False, description="The request's `accept` contains this consent.")


class ProblemDetails(Resource):
    """RFC 9457. `type` and `code` are stable; `cure` says what to do, `sql` is the cure as SQL if there is one."""

    type: str = Field(examples=["urn:thalweg:problem:not_found"])
    title: str
    status: int
    detail: str
    instance: str
    code: str
    cure: str | None = None
    sql: str | None = None
    errors: list[FieldProblem] = []
    checks: list[Check] = Field(
        default_factory=list,
        description="For preflight_failed: the checks that stand in the way, as a preflight returns them, with their "
        "consents.",
    )
