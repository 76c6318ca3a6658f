"""The lab as the API shows it."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StrictInt

from thalweg.features.lab.causes import DELAY_MS, DELAY_MS_MAX, CauseName
from thalweg.kernel.models import Body, Resource

RATE_MAX = 2000


class LabState(StrEnum):
    """STARTING and ENDING: the collector is working on it. GONE: it was cured at the database, but has not ended
    yet."""

    OFF = "off"
    STARTING = "starting"
    ON = "on"
    GONE = "gone"
    ENDING = "ending"


class LabAction(Resource):
    state: LabState
    begun_by: str | None = Field(description="Null while it is off.")
    in_effect_at: datetime | None
    until: datetime | None = Field(description="When it ends by itself. Null while it is off.")
    failure: str | None = Field(description="Why the last attempt to begin or to end it failed; it is retried.")


class LabLoad(LabAction):
    rate: int = Field(description="The requested rate, in transactions per second. The machine may manage fewer.")
    usual_rate: int = Field(description="The usual rate, restored at the end.")
    rate_max: int


class LabDelay(Resource):
    """In milliseconds, each way: a round trip takes twice as long."""

    ms: int = Field(description="The requested delay, or the last one; otherwise the usual one.")
    usual_ms: int
    ms_max: int


class LabCause(LabAction):
    name: CauseName
    title: str
    effect: str = Field(description="Its effect, in a sentence.")
    sql: str = Field(description="The SQL that begins it at the destination.")
    end_sql: str = Field(description="The SQL that ends it there.")
    refused: str | None = Field(description="Why it cannot begin now. Null if it can.")
    delay: LabDelay | None = Field(description="The delay of the slow network. Null for the other causes.")


class LabStream(Resource):
    id: str
    name: str
    source: str = Field(description="The database's name.")
    destination: str


class Lab(Resource):
    """The demo's load, and the causes that can slow its stream down."""

    available: bool
    why: str | None = Field(description="Why it is not available. Null if it is.")
    cure: str | None
    stream: LabStream | None
    load: LabLoad | None
    causes: list[LabCause] = Field(description="Empty if the lab is not available. At most one is on.")


class LabCauseStart(Body):
    delay_ms: Annotated[StrictInt, Field(ge=1, le=DELAY_MS_MAX)] | None = Field(
        default=None, description=f"The delay of the slow network, each way; {DELAY_MS} if omitted."
    )


class LabLoadUpdate(Body):
    rate: Annotated[StrictInt, Field(ge=0, le=RATE_MAX, description="Transactions a second.")]
