"""From what was found to what the API shows, and from a run's row to its resource."""

from datetime import datetime
from typing import Any

from thalweg.advisor.analysis import PathView
from thalweg.advisor.finding import Finding, FindingSeverity
from thalweg.advisor.schemas import Analysis
from thalweg.db.models import AdvisorRunRow
from thalweg.features.advisor.schemas import PathSeries, Run, RunPath, RunSummary
from thalweg.kernel.etags import etag_of
from thalweg.live.health import is_fresh

STATISTICS = {
    "messages_per_second": "MESSAGE RATE", "transactions_per_second": "TRANSACTION RATE",
    "latency_p50_seconds": "LATENCY P50", "latency_p99_seconds": "LATENCY P99",
    "latency_at_least_seconds": "LATENCY AT LEAST", "lag_bytes": "REPLICATION LAG",
}  # fmt: skip


def path_lines(analysis: Analysis, findings: list[Finding], at: datetime | None = None) -> list[RunPath]:
    """Without figures where the last sample is not fresh `at` that time: there is no other place for their age. None:
    of the past."""
    values = {
        (row.path_id, row.statistic_name): row.statistic_value
        for row in analysis.path_statistics
        if at is None or is_fresh(row.statistic_time, at)
    }
    bottlenecks = {row.path_id: row for row in analysis.path_bottlenecks}
    lines = []
    for path in analysis.paths:
        bottleneck = bottlenecks[path.path_id]
        # A finding that merely accompanies the bottleneck does not explain it.
        top = next((finding for finding in findings if finding.path_id == path.path_id and finding.is_cause), None)
        lines.append(
            RunPath(
                path_id=path.path_id, stream_id=path.stream_id, stream_name=path.stream_name,
                source_db=path.source_db, destination_db=path.destination_db, verdict=bottleneck.verdict,
                bottleneck_identified=bottleneck.bottleneck_identified, component_id=bottleneck.component_id,
                component_type=bottleneck.component_type, sub_component_type=bottleneck.sub_component_type,
                top_event=bottleneck.top_event, explanation=bottleneck.explanation,
                top_finding=top.title if top else None, top_finding_code=top.code if top else None,
                **{name: values.get((path.path_id, statistic)) for name, statistic in STATISTICS.items()},
            )
        )  # fmt: skip
    return lines


def series_of(views: list[PathView]) -> list[PathSeries]:
    return [
        PathSeries(
            path_id=view.path.path.path_id, at=[sample.at for sample in view.path.stream.samples],
            messages_per_second=[own.lcrs_per_second if own else None for own in own_samples],
            latency_p99_ms=[own.latency.p99_ms if own and not own.latency.at_least else None for own in own_samples],
            latency_at_least_ms=[own.latency.p99_ms if own and own.latency.at_least else None for own in own_samples],
            lag_bytes=[own.lag.bytes if own else None for own in own_samples],
        )
        for view in views
        for own_samples in [[view.path.own(sample) for sample in view.path.stream.samples]]
    ]  # fmt: skip


def summary_document(analysis: Analysis, findings: list[Finding], at: datetime | None) -> dict[str, Any]:
    """The summary of a run for lists. `at` is as for `path_lines`."""
    severities = {finding.severity for finding in findings}
    worst = next((severity for severity in FindingSeverity if severity in severities), None)
    paths = path_lines(analysis, findings, at)
    return {
        "begin_at": analysis.begin_at.isoformat() if analysis.begin_at else None,
        "end_at": analysis.end_at.isoformat() if analysis.end_at else None,
        "samples": analysis.samples, "findings": len(findings), "worst": worst,
        "paths": [path.model_dump(mode="json") for path in paths],
    }  # fmt: skip


def _fields(row: AdvisorRunRow) -> dict[str, Any]:
    return {
        "id": row.id, "at": row.at, "reason": row.reason, "detail": row.detail, "requested_by": row.requested_by,
        "name": row.name, "note": row.note, "kept": row.kept, "etag": etag_of(row.version), "scope": row.scope,
        **row.summary,
    }  # fmt: skip


def summary_of(row: AdvisorRunRow) -> RunSummary:
    return RunSummary.model_validate(_fields(row))


def run_of(row: AdvisorRunRow) -> Run:
    """The row must have its document loaded."""
    return Run.model_validate({**_fields(row), **row.document})
