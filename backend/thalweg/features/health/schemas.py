"""Whether this process can do its work."""

from typing import Literal

from thalweg.kernel.models import Resource


class Healthz(Resource):
    status: Literal["ok"]
    version: str


class Readiness(Resource):
    status: Literal["ready", "degraded", "unavailable"]
    store: Literal["ok", "unreachable"]
    redis: Literal["ok", "unreachable"]
    collector: Literal["ok", "absent", "unknown"]
