"""Engines and their enrolment as the API shows them."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, StrictInt, StringConstraints

from thalweg.kernel.lifecycle import EngineState, ObservedStatus, StreamPhase
from thalweg.kernel.models import Body, Name, Resource, Secret


def port_in_range(address: str) -> str:
    if not 1 <= int(address.rpartition(":")[2]) <= 65535:
        raise ValueError("The port must be from 1 to 65535.")
    return address


EngineUrl = Annotated[
    str, StringConstraints(max_length=255, pattern=r"^https?://[A-Za-z0-9._\[\]:-]+$", strip_whitespace=True)
]


PropagationAddress = Annotated[
    str,
    StringConstraints(
        max_length=261, strip_whitespace=True,
        pattern=r"^([A-Za-z0-9]([A-Za-z0-9.-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}$",
    ),
    AfterValidator(port_in_range),
]  # fmt: skip


class Identity(Resource):
    """The engine's identity towards other engines, certified by the control plane's own authority."""

    name: str = Field(description="The name in the certificate, which other engines expect.")
    fingerprint: str = Field(description="SHA-256 of the certificate, in hex.")
    not_after: datetime = Field(description="End of validity; renewed when less than a third of it is left.")
    listen: str | None = Field(description="host:port where it accepts propagations. Null: it was started without one.")


class UnknownStream(Resource):
    """A stream that the engine runs and the store does not know: the store was restored from a backup that is older
    than the stream."""

    id: str
    status: ObservedStatus
    phase: StreamPhase
    being_dropped: bool


class Engine(Resource):
    id: str
    name: str
    url: str
    state: EngineState = Field(description="REFUSED: it answers, but rejects our token or our API version.")
    message: str | None = Field(description="Why it is not ONLINE.")
    version: str | None
    hostname: str | None
    pid: int | None
    started_at: datetime | None
    last_seen_at: datetime | None
    resident_bytes: int | None
    cpu_percent: float | None = Field(description="Percent of one core, over the last interval.")
    desired_revision: int
    acknowledged_revision: int | None = Field(description="The revision that the engine has on its disk.")
    identity: Identity | None = Field(description="Null: none yet, or an engine of a version without propagation.")
    propagation_address: str | None = Field(
        description="host:port where other engines reach it. Null: no engine can, so no stream can apply here what "
        "another engine captures."
    )
    propagation_address_set: bool = Field(description="False: it is the address where the engine listens.")
    wal_archives: list[str] = Field(
        description="Archives of sources' WAL that its host offers, by their names: values for a mined stream's "
        "parameter wal_archive."
    )
    streams: list[str]
    unknown_streams: list[UnknownStream] = Field(
        description="They keep running until they are dropped with :drop-stream."
    )
    created_at: datetime
    etag: str = Field(description="Send as If-Match when updating.")


class EngineUpdate(Body):
    propagation_address: PropagationAddress | None = Field(
        description="host:port where other engines reach it; null: the address where it listens."
    )


class StreamDrop(Body):
    stream_id: str = Field(max_length=32, description="One of the engine's unknown_streams.")


class EnrolmentCreate(Body):
    expires_in_minutes: Annotated[StrictInt, Field(ge=1, le=1440)] = 60


class Enrolment(Resource):
    id: str
    token: str = Field(description="Valid for one enrolment. Shown only once: only its hash is stored.")
    expires_at: datetime


class EngineEnrol(Body):
    token: Secret
    name: Name
    url: EngineUrl
    control_token: Annotated[str, StringConstraints(min_length=16, max_length=1000, pattern=r"^[!-~]+$")] = Field(
        description="The content of the engine's --token-file: printable ASCII without spaces."
    )
