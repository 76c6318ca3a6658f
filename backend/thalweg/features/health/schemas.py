"""Whether this process can do its work."""

from typing import Literal

from pydantic import Field

from thalweg.kernel.models import Resource

ReadinessStatus = Literal["ready", "degraded", "unavailable"]
CollectorState = Literal["ok", "late", "absent", "unknown"]
HistoryState = Literal["ok", "failing", "unknown"]
Reach = Literal["ok", "unreachable"]


class Healthz(Resource):
    status: Literal["ok"]
    version: str


class Readiness(Resource):
    status: ReadinessStatus
    store: Reach
    redis: Reach
    collector: CollectorState = Field(
        description="late: it runs, but has recorded nothing of an engine for 15 s or longer."
    )
    collector_round_age_seconds: float | None = Field(
        description="How long ago the collector last recorded what it gathers, at the engine that waits longest. Null: "
        "unknown, as without Redis."
    )
    history: HistoryState = Field(
        description="Whether the store accepts samples; failing if its disk is full, for example."
    )
    reasons: list[str] = Field(description="Everything that is wrong, in words. Empty: nothing is.")
