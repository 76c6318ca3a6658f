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
    collector: Literal["ok", "absent", "unknown"]
    history: Literal["ok", "failing", "unknown"] = Field(
        description="Whether the store takes samples; failing where its disk is full, for example."
    )
