"""Whether this process can do its work."""

from typing import Literal

from pydantic import Field

from thalweg.kernel.models import Resource


class Healthz(Resource):
    status: Literal["ok"]
    version: str


class Readiness(Resource):
    status: Literal["ready", "degraded", "unavailable"]
    store: Literal["ok", "unreachable"]
    redis: Literal["ok", "unreachable"]
    collector: Literal["ok", "late", "absent", "unknown"] = Field(
        description="late: it runs, but has recorded nothing of an engine for 15 s or longer."
    )
    collector_round_age_seconds: float | None = Field(
        description="How long ago the collector last recorded what it gathers, at the engine that waits longest. Null: "
        "unknown, as without Redis."
    )
    history: Literal["ok", "failing", "unknown"] = Field(
        description="Whether the store accepts samples; failing if its disk is full, for example."
    )
    reasons: list[str] = Field(description="Everything that is wrong, in words. Empty: nothing is.")
