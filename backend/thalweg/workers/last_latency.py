"""The latency of an idle stream when something last crossed it."""

from datetime import datetime, timedelta

from thalweg.live.schemas import LastLatency, LatencySample, Sample

FORGET_AFTER = timedelta(hours=2)
"""Beyond the longest heartbeat interval, 1 hour."""


class LastLatencies:
    """Owner: the collector. Of streams, and of each of their destinations."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str | None], LastLatency] = {}

    def with_last_latency(self, sample: Sample) -> Sample:
        """The sample with what is known from the intervals before."""
        destinations = [
            destination.model_copy(
                update={"latency": self._with_last(sample, destination.destination_id, destination.latency)}
            )
            for destination in sample.destinations
        ]
        latency = self._with_last(sample, None, sample.latency)
        return sample.model_copy(update={"latency": latency, "destinations": destinations})

    def forget_before(self, at: datetime) -> None:
        self._last = {key: last for key, last in self._last.items() if at - last.at <= FORGET_AFTER}

    def _with_last(self, sample: Sample, destination_id: str | None, latency: LatencySample) -> LatencySample:
        key = (sample.stream_id, destination_id)
        if latency.p50_ms is not None and latency.p99_ms is not None:
            self._last[key] = LastLatency(p50_ms=latency.p50_ms, p99_ms=latency.p99_ms, at=sample.at)
        return latency.model_copy(update={"last": self._last.get(key)})
