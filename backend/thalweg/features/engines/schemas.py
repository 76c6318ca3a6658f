"""Engines and their enrolment as the API shows them."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from thalweg.kernel.models import Body, Name, Resource, Secret

EngineUrl = Annotated[
    str, StringConstraints(max_length=255, pattern=r"^https?://[A-Za-z0-9._\[\]:-]+$", strip_whitespace=True)
]


class EngineState(StrEnum):
    UNKNOWN = "UNKNOWN"
    ONLINE = "ONLINE"
    UNREACHABLE = "UNREACHABLE"
    REFUSED = "REFUSED"


class Engine(Resource):
    id: str
    name: str
    url: str
    state: EngineState = Field(description="REFUSED: it answers, but not to our token or our API version.")
    message: str | None = Field(description="Why it is not ONLINE.")
    version: str | None
    hostname: str | None
    pid: int | None
    started_at: datetime | None
    last_seen_at: datetime | None
    resident_bytes: int | None
    cpu_percent: float | None = Field(description="Of one core, over the last interval.")
    desired_revision: int
    acknowledged_revision: int | None = Field(description="What the engine has on its disk.")
    streams: list[str]
    created_at: datetime


class EnrolmentCreate(Body):
    expires_in_minutes: Annotated[int, Field(ge=1, le=1440)] = 60


class Enrolment(Resource):
    id: str
    token: str = Field(description="For one enrolment. Shown this once: only its hash is stored.")
    expires_at: datetime


class EngineEnrol(Body):
    token: Secret
    name: Name
    url: EngineUrl
    control_token: Annotated[str, StringConstraints(min_length=16, max_length=1000)]
