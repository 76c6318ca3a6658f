"""Bodies of an operator's actions on tables."""

from pydantic import Field

from thalweg.features.streams.error_queue_schemas import Reason
from thalweg.kernel.rules import TableRef


class TableCopy(TableRef):
    reason: Reason | None = Field(
        default=None,
        description="Why the table is copied again. The audit log keeps it: parked transactions may be discarded.",
    )
