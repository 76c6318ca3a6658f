"""Charts of the past. Unknown values are null, never zero."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from thalweg.alerting.catalogue import AlertSeverity
from thalweg.history.tiers import Resolution
from thalweg.kernel.lifecycle import OutageState
from thalweg.kernel.models import Resource
from thalweg.live.schemas import Sample


class HistorySeries(Resource):
    statistic: str = Field(description="Its name, such as components.server-1.time_percent.busy.")
    unit: str = Field(description="Empty when it has none.")
    values: list[float | None] = Field(description="The mean over each step; one for each point.")
    highs: list[float | None] = Field(description="The highest within each step.")


OutageOf = Literal["stream", "destination", "engine"]


class Outage(Resource):
    """A time in which the stream, one of its several destinations or one of its engines did not work."""

    of: OutageOf
    id: str = Field(description="The id of the stream, destination or engine.")
    name: str
    state: OutageState
    reason: str = Field(description="The first cause, in words.")
    became: str | None = Field(
        description="The present cause, or the last one, in words. Null: it is still the first, or the first again."
    )
    became_at: datetime | None = Field(description="Since when that is the cause.")
    since: datetime
    until: datetime | None = Field(description="Null: it has not ended.")


class StreamHistory(Resource):
    stream_id: str
    since: datetime = Field(description="The start of the first step.")
    until: datetime = Field(description="The end of the last step.")
    resolution: Resolution = Field(description="The resolution that the points are made from.")
    step_seconds: int
    times: list[int] = Field(description="The start of each step, in seconds since 1970 UTC: one for each point.")
    series: list[HistorySeries]
    outages: list[Outage] = Field(description="Outages that overlap the range, oldest first; at most 200.")


class StreamEvent(Resource):
    """Something that happened to a stream, without the data that it was about."""

    id: str = Field(description="Stable: it tells the event from all others.")
    at: datetime
    until: datetime | None = Field(description="When an alert was resolved. Null: it is open, or no alert.")
    kind: Literal["restart", "change", "alert"] = Field(
        description="restart: the stream, one of its destinations or one of its engines was started or stopped."
    )
    sentence: str = Field(examples=["Stopped"])
    actor_name: str | None = Field(description="The user who did it. Null: nobody did.")
    severity: AlertSeverity | None = Field(description="The severity of an alert. Null: no alert.")


class HistorySamples(Resource):
    stream_id: str
    resolution: Resolution
    samples: list[Sample] = Field(
        description="The samples as they were recorded, oldest first; those of a minute or an hour contain its mean."
    )


class StatisticName(Resource):
    name: str = Field(description="Send it as `statistic`.")
    component: str | None = Field(description="The component's id, null when it is of the whole stream.")
    unit: str


class HistoryStatistics(Resource):
    stream_id: str
    sampled_at: datetime | None = Field(
        description="When the sample was taken that they are read from; null when there is none."
    )
    statistics: list[StatisticName]


class HistoryTier(Resource):
    resolution: Resolution
    kept_seconds: int
    partition_seconds: int = Field(description="The span that is dropped at a time.")
    oldest: datetime | None = Field(description="The start of the oldest partition.")
    bytes: int = Field(description="On the store's disk, indexes included.")


class History(Resource):
    tiers: list[HistoryTier]
