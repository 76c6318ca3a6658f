"""The facts that findings read, and the functions that write evidence down."""

from dataclasses import dataclass
from datetime import datetime

from thalweg.advisor.analysis import PathView
from thalweg.advisor.finding import Cure, CureKind, Evidence, Finding, FindingSeverity, NewIndex, ParameterChange
from thalweg.advisor.findings.catalogue import CATALOGUE
from thalweg.advisor.findings.codes import FindingCode
from thalweg.advisor.load import Load
from thalweg.advisor.stages import Stage
from thalweg.inspection.performance import DestinationFacts, SourceFacts
from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.live.schemas import Sample

GAIN_MAX = 900.0
MOVES_AGAIN = "Changes are applied again: nothing moves now."
"""A share of nothing is no gain."""
# The roles that may run a cure's SQL.
SUPERUSER, OWNER = "a superuser", "the table's owner or a superuser"
Value = bool | int | str


@dataclass(frozen=True)
class Parameter:
    """A parameter of the stream: its present value, and its entry in the engine's contract."""

    value: Value
    default: Value
    live: bool
    maximum: int | None
    of_destination: bool = True
    """Each of several destinations may have a value of its own."""


@dataclass(frozen=True)
class StreamFacts:
    """Facts of a stream beside its samples. None: the database was not read."""

    source_id: str
    destination_id: str
    parameters: dict[str, Parameter]
    tables: list[tuple[str, str]]
    conditions: int = 0
    """The number of conditions in the rules that its capture evaluates."""
    source: SourceFacts | None = None
    destination: DestinationFacts | None = None
    capture_kind: CaptureKind = CaptureKind.LOGICAL
    archive: str | None = None
    """The name of the archive of the source's WAL that log mining may read."""


@dataclass(frozen=True)
class Clues:
    view: PathView
    facts: StreamFacts
    event_threshold: float

    @property
    def limiting(self) -> Stage | None:
        """The stage that the bottleneck names."""
        row = self.view.bottleneck
        if not row.bottleneck_identified:
            return None
        return next(
            stage
            for stage in self.view.stages
            if stage.component.component_id == row.component_id and stage.sub_component == row.sub_component_type
        )

    @property
    def samples(self) -> list[Sample]:
        return self.view.path.samples

    def value(self, name: str) -> Value | None:
        parameter = self.facts.parameters.get(name)
        return None if parameter is None else parameter.value

    def number(self, name: str) -> int:
        value = self.value(name)
        return value if isinstance(value, int) else 0

    # --- evidence

    def share(self, stage: Stage, event: str, activity: str) -> Evidence:
        """The share of a stage's time that an activity takes, with the chart of its busiest thread."""
        busiest = stage.busiest
        thread = busiest.load if busiest else stage.loads[0]
        value = stage.mean.events.get(event, 0.0) if stage.mean else None
        return Evidence(
            statistic=f"EVENT: {event}", subject=stage.title, value=None if value is None else round(value, 1),
            unit="PERCENT", threshold=self.event_threshold,
            since=since(self.samples, thread.last.id, activity, self.event_threshold),
            series=f"{thread.last.id}.time_percent.{activity}",
        )  # fmt: skip

    def rate(self, load: Load, counter: str, statistic: str, unit: str) -> Evidence:
        value = load.rates.get(counter)
        return Evidence(
            statistic=statistic, subject=load.last.id, value=None if value is None else round(value, 1), unit=unit,
            threshold=None, since=None, series=f"{load.last.id}.counter_rates.{counter}",
        )  # fmt: skip

    # --- findings

    def finding(
        self, code: FindingCode, explanation: str, evidence: list[Evidence], cures: list[Cure], *,
        title: str | None = None, severity: FindingSeverity | None = None, is_cause: bool = True,
        stage: Stage | None = None, share: float | None = None, subject: str = "",
    ) -> Finding:  # fmt: skip
        """`title` and `severity`: None for those of the catalogue. `share`: how much of the limiting stage's working
        time goes with the cause, in percent."""
        kind = CATALOGUE[code]
        assert severity is None or severity in kind.severities  # noqa: S101
        path, gain = self.view.path.path, self._gain(share)
        expected_gain = None
        if gain is not None and (self.view.stands_still or self.view.stands_now):
            expected_gain = MOVES_AGAIN
        elif gain is not None:
            expected_gain = f"Up to {gain:.0f} % more LCRs a second, until the next stage becomes the limit."
        return Finding(
            id=":".join(part for part in (path.path_id, code, subject) if part), rank=0, path_id=path.path_id,
            stream_id=path.stream_id, component_id=stage.component.component_id if stage else None, code=code,
            severity=severity or kind.severities[0], is_cause=is_cause, title=title or kind.title,
            explanation=explanation, evidence=evidence,
            expected_gain=expected_gain, gain_percent=None if gain is None else round(gain, 1), cures=cures,
        )  # fmt: skip

    def _gain(self, share: float | None) -> float | None:
        """Without the cause the stage would be done in the rest of its time; the next busiest stage limits then."""
        stage = self.limiting
        if share is None or stage is None or stage.mean is None:
            return None
        rest = max(1.0, 100 - share)
        gain = 100 * (100 - rest) / rest
        others = [
            100 - other.mean.idle - other.mean.flow_control
            for other in self.view.stages
            if other is not stage and other.mean is not None
        ]
        work = 100 - stage.mean.idle
        busiest = max(others, default=0.0)
        if busiest > 0:
            gain = min(gain, max(0.0, 100 * (work - busiest) / busiest))
        return min(GAIN_MAX, gain)

    # --- cures

    def parameters(self, text: str, **proposed: Value) -> Cure:
        changes = [
            ParameterChange(name=name, current=self.facts.parameters[name].value, proposed=value)
            for name, value in proposed.items()
        ]
        return Cure(
            kind=CureKind.PARAMETER, text=text, parameters=changes, sql=None, database=None, database_id=None,
            restart_needed=any(not self.facts.parameters[name].live for name in proposed),
            destination_id=self.view.path.path.destination_id
            if all(self.facts.parameters[name].of_destination for name in proposed)
            else None,
        )  # fmt: skip

    def at_destination(self, text: str, sql: str, run_as: str, index: NewIndex | None = None) -> Cure:
        cure = self._sql(text, sql, run_as, self.view.path.path.destination_db, self.facts.destination_id)
        return cure.model_copy(update={"index": index})

    def at_source(self, text: str, sql: str, run_as: str) -> Cure:
        return self._sql(text, sql, run_as, self.view.path.path.source_db, self.facts.source_id)

    @staticmethod
    def _sql(text: str, sql: str, run_as: str, database: str, database_id: str) -> Cure:
        return Cure(
            kind=CureKind.SQL, text=text, parameters=[], sql=sql, database=database, database_id=database_id,
            run_as=run_as, restart_needed=False,
        )  # fmt: skip


def fact(
    statistic: str, subject: str, value: str | float | None, unit: str = "", threshold: float | None = None
) -> Evidence:
    """Evidence from a database's catalogue."""
    return Evidence(
        statistic=statistic, subject=subject, value=value, unit=unit, threshold=threshold, since=None, series=None
    )


def action(text: str, sql: str | None = None) -> Cure:
    """A cure that only a person can carry out."""
    return Cure(
        kind=CureKind.ACTION, text=text, parameters=[], sql=sql, database=None, database_id=None, restart_needed=False
    )


def since(samples: list[Sample], thread: str, activity: str, threshold: float) -> datetime | None:
    """The first of the last samples in a row in which the thread's activity was over the threshold."""
    found: datetime | None = None
    for sample in reversed(samples):
        part = next((part for part in sample.components if part.id == thread), None)
        if part is None or part.time_percent is None or getattr(part.time_percent, activity) <= threshold:
            break
        found = sample.at
    return found
