"""The advisor's results, in the shape of Streams' tables DBA_STREAMS_TP_*. Unknown is null, never zero."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field, computed_field

from thalweg.kernel.models import Resource
from thalweg.live.schemas import ComponentType


class Unit(StrEnum):
    MESSAGES_PER_SECOND = "MESSAGES PER SECOND"
    TRANSACTIONS_PER_SECOND = "TRANSACTIONS PER SECOND"
    BYTES_PER_SECOND = "BYTES PER SECOND"
    PER_SECOND = "PER SECOND"
    SECONDS = "SECONDS"
    PERCENT = "PERCENT"
    BYTES = "BYTES"
    MESSAGES = "NUMBER OF MESSAGES"
    NUMBER = "NUMBER"


class AdvisorDatabase(Resource):
    """A row of DATABASE: a database that a path touches."""

    global_name: str = Field(description="The registered database's name.")
    role: str = Field(description="SOURCE or DESTINATION.")
    address: str = Field(description="host:port/dbname")
    version: str | None = Field(description="PostgreSQL's, as of the last connection test.")
    last_queried: datetime | None = Field(description="When this run read its catalogues. Null: it did not, or failed.")


class AdvisorComponent(Resource):
    """A row of COMPONENT. Paths that share a component share its id."""

    component_id: str = Field(
        description="Unique over all paths, and the same in every run: `<stream id>:<component>`."
    )
    component_name: str
    component_db: str = Field(description="The database that it works beside.")
    component_type: ComponentType
    engine: str | None = Field(description="Name of the engine that it runs in.")
    stream_id: str
    state: str | None = Field(description="The momentary state in the last sample.")
    parts: list[str] = Field(description="Ids of its threads in live samples, such as reader, coordinator, server-1.")


class AdvisorLink(Resource):
    """A row of COMPONENT_LINK: from one component of a path to the next."""

    path_id: str
    position: int = Field(description="From 1, in the direction of the flow.")
    source_component_id: str
    source_component_name: str
    source_component_db: str
    source_component_type: ComponentType
    destination_component_id: str
    destination_component_name: str
    destination_component_db: str
    destination_component_type: ComponentType
    back_pressured: bool | None = Field(description="The source component is held back by the destination component.")
    messages_per_second: float | None


class ComponentStatistic(Resource):
    """A row of COMPONENT_STAT. Rows without sub-component are the whole component's; without thread, the mean of its
    threads: percentages are normalised per thread."""

    component_id: str
    component_name: str
    component_db: str
    component_type: ComponentType
    sub_component_type: str | None
    thread: int | None = Field(description="Number of the applier: the SESSION_ID of Streams.")
    statistic_time: datetime
    statistic_name: str = Field(examples=["MESSAGE APPLY RATE", "IDLE", "EVENT: EXECUTE"])
    statistic_value: float | None
    statistic_unit: Unit


class PathStatistic(Resource):
    """A row of PATH_STAT."""

    path_id: str
    statistic_time: datetime
    statistic_name: str
    statistic_value: float | None
    statistic_unit: Unit


class Verdict(StrEnum):
    """The limit of a path. Only BOTTLENECK names a component."""

    BOTTLENECK = "BOTTLENECK"
    NONE = "NO BOTTLENECK"
    PARKING = "PARKING"
    SOURCE_IDLE = "SOURCE IDLE"
    SOURCE_DOWN = "SOURCE DOWN"
    DESTINATION_DOWN = "DESTINATION DOWN"
    LINK_DOWN = "LINK DOWN"
    ENGINE_DOWN = "ENGINE DOWN"
    ENGINE_TROUBLE = "ENGINE TROUBLE"
    STOPPED = "STOPPED"
    PAUSED = "PAUSED"
    ABORTED = "ABORTED"
    COPYING = "COPYING"
    STARTING = "STARTING"
    WAITING = "WAITING"
    HELD_UP = "HELD UP"
    UNKNOWN = "UNKNOWN"


class PathBottleneck(Resource):
    """A row of PATH_BOTTLENECK: one for each path and run."""

    path_id: str
    bottleneck_identified: bool
    component_id: str | None
    component_name: str | None
    component_db: str | None
    component_type: ComponentType | None
    sub_component_type: str | None
    top_thread: int | None = Field(description="The busiest thread, where there are several: TOP_SESSION_ID.")
    action_name: str | None = Field(description="The busiest thread: its id in live samples.")
    top_event: str | None = Field(description="The event that takes most of its time, if that is over the threshold.")
    top_event_percent: float | None
    idle_percent: float | None
    flow_control_percent: float | None
    advisor_run_reason: str | None = Field(description="Null when a bottleneck was found, else why there is none.")
    verdict: Verdict
    explanation: str = Field(description="In one or two sentences.")


class AdvisorPath(Resource):
    """A path: from one capture to one apply."""

    path_id: str = Field(description="`<stream id>`, or `<stream id>:<destination>` where a stream fans out.")
    stream_id: str
    stream_name: str
    destination_id: Annotated[str, BeforeValidator(lambda known: known or "")] = Field(
        description="Empty in runs from before every path had one: their streams had one destination."
    )
    source_db: str
    destination_db: str
    component_ids: list[str] = Field(description="In the direction of the flow.")
    combined: bool = Field(description="Capture and apply are combined: nothing is propagated.")

    @computed_field(description="“stream → destination”: how it is called everywhere.")  # type: ignore[prop-decorator]
    @property
    def path_name(self) -> str:
        return f"{self.stream_name} → {self.destination_db}"


class Thresholds(Resource):
    """In percent. A component is a bottleneck only if idle and flow control do not exceed their thresholds."""

    idle: float = 50.0
    flow_control: float = 50.0
    event: float = 15.0


class Analysis(Resource):
    """The six tables, and the paths that they are about."""

    begin_at: datetime | None = Field(description="Null when there was no sample with a rate.")
    end_at: datetime | None
    samples: int = Field(description="Samples with rates that were analysed, of the path that has most.")
    thresholds: Thresholds
    paths: list[AdvisorPath]
    databases: list[AdvisorDatabase]
    components: list[AdvisorComponent]
    component_links: list[AdvisorLink]
    component_statistics: list[ComponentStatistic]
    path_statistics: list[PathStatistic]
    path_bottlenecks: list[PathBottleneck]
