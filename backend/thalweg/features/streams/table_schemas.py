"""Bodies of an operator's actions on tables."""

from pydantic import Field

from thalweg.features.streams.error_queue_schemas import REASON_LENGTH_MAX, REASON_LENGTH_MIN
from thalweg.kernel.models import NO_CONTROL_CHARACTERS
from thalweg.kernel.rules import TableRef


class TableCopy(TableRef):
    reason: str | None = Field(
        default=None,
        min_length=REASON_LENGTH_MIN,
        max_length=REASON_LENGTH_MAX,
        pattern=NO_CONTROL_CHARACTERS,
        description="Why the table is copied again. The audit log keeps it: parked transactions may be discarded.",
    )
