"""The rules and what users have set about them: everywhere and for single streams."""

from thalweg.alerting.catalogue import RULES, AlertRuleId, AlertSeverity, Rule
from thalweg.alerting.policy import Override, RuleSettings, effective
from thalweg.db.audit import record
from thalweg.db.models import AlertRuleRow, StreamRow
from thalweg.features.alerts import repository
from thalweg.features.alerts.schemas import (
    AlertRule,
    AlertRules,
    AlertRuleSettings,
    AlertRuleValues,
    AlertStreamRule,
    AlertThreshold,
)
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.etags import check_if_match, etag_of
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import Problem, not_found
from thalweg.kernel.words import amount

UNSET = 0
"""The version of settings that nobody has made yet."""


def _values(settings: RuleSettings) -> AlertRuleValues:
    return AlertRuleValues(
        enabled=settings.enabled, severity=settings.severity, hold_seconds=settings.hold_seconds,
        thresholds=settings.thresholds,
    )  # fmt: skip


def _override(row: AlertRuleRow | None) -> Override | None:
    if row is None:
        return None
    severity = AlertSeverity(row.severity) if row.severity else None
    return Override(row.enabled, severity, row.hold_seconds, row.thresholds)


def _settings(row: AlertRuleRow | None) -> AlertRuleSettings:
    if row is None:
        return AlertRuleSettings()
    return AlertRuleSettings(
        enabled=row.enabled, severity=AlertSeverity(row.severity) if row.severity else None,
        hold_seconds=row.hold_seconds, thresholds=row.thresholds,
    )  # fmt: skip


def _resource(rule: Rule, rows: list[AlertRuleRow], names: dict[str, str]) -> AlertRule:
    everywhere = next((row for row in rows if row.stream_id is None), None)
    wide = _override(everywhere)
    streams = [
        AlertStreamRule(
            stream_id=row.stream_id, stream_name=names[row.stream_id], settings=_settings(row),
            effective=_values(effective(rule.id, wide, _override(row))),
        )
        for row in rows
        if row.stream_id is not None and row.stream_id in names
    ]  # fmt: skip
    return AlertRule(
        id=rule.id, title=rule.title, meaning=rule.meaning, action=rule.action, subject=rule.subject,
        per_stream=rule.per_stream,
        thresholds=[AlertThreshold.model_validate(threshold) for threshold in rule.thresholds],
        default=_values(effective(rule.id)), settings=_settings(everywhere),
        effective=_values(effective(rule.id, wide)),
        streams=sorted(streams, key=lambda stream: stream.stream_name),
        etag=etag_of(everywhere.version if everywhere else UNSET),
    )  # fmt: skip


async def list_rules(context: Context) -> AlertRules:
    rows = await repository.rule_rows(context.session)
    names = await repository.stream_names(context.session, {row.stream_id for row in rows if row.stream_id})
    return AlertRules(
        rules=[_resource(rule, [row for row in rows if row.rule == rule.id], names) for rule in RULES.values()]
    )


async def _one(context: Context, rule: AlertRuleId) -> AlertRule:
    return next(shown for shown in (await list_rules(context)).rules if shown.id is rule)


async def update_rule(context: Context, rule: AlertRuleId, body: AlertRuleSettings, if_match: str | None) -> AlertRule:
    """Sets it everywhere; the settings as a whole."""
    _check(RULES[rule], body)
    row = await repository.rule_row(context.session, rule, None)
    check_if_match(if_match, row.version if row else UNSET)
    before = _settings(row)
    await _write(context, rule, None, row, body)
    _audit(context, "alert_rules_update", RULES[rule], "", before, body)
    return await _one(context, rule)


async def update_stream_rule(context: Context, rule: AlertRuleId, stream_id: str, body: AlertRuleSettings) -> AlertRule:
    _check(RULES[rule], body)
    stream = await _stream_of(context, RULES[rule], stream_id)
    row = await repository.rule_row(context.session, rule, stream_id)
    before = _settings(row)
    await _write(context, rule, stream_id, row, body)
    _audit(context, "alert_rules_update", RULES[rule], stream.name, before, body)
    return await _one(context, rule)


async def delete_stream_rule(context: Context, rule: AlertRuleId, stream_id: str) -> None:
    stream = await _stream_of(context, RULES[rule], stream_id)
    row = await repository.rule_row(context.session, rule, stream_id)
    if row is None:
        raise not_found("setting of this rule for the stream", stream_id)
    before = _settings(row)
    await context.session.delete(row)
    _audit(context, "alert_rules_delete", RULES[rule], stream.name, before, None)


async def _stream_of(context: Context, rule: Rule, stream_id: str) -> StreamRow:
    stream = await context.session.get(StreamRow, stream_id)
    if stream is None:
        raise not_found("stream", stream_id)
    if not rule.per_stream:
        raise Problem(
            "conflict", f"“{rule.title}” is not about streams.", "Set the rule for everything: PUT /alerts/rules/RULE."
        )
    return stream


async def _write(
    context: Context, rule: AlertRuleId, stream_id: str | None, row: AlertRuleRow | None, body: AlertRuleSettings
) -> None:
    if row is None:
        row = AlertRuleRow(rule=rule, stream_id=stream_id, version=UNSET)
        context.session.add(row)
    row.enabled, row.severity, row.hold_seconds = body.enabled, body.severity, body.hold_seconds
    row.thresholds = body.thresholds
    row.version += 1
    row.updated_at = now()
    await context.session.flush()


def _check(rule: Rule, body: AlertRuleSettings) -> None:
    """Raises invalid_request that names every wrong threshold."""
    known = {threshold.name: threshold for threshold in rule.thresholds}
    errors = []
    for name, value in body.thresholds.items():
        threshold = known.get(name)
        if threshold is None:
            message = "The rule has no such threshold."
        elif not threshold.minimum <= value <= threshold.maximum:
            least, most = (amount(bound, threshold.unit) for bound in (threshold.minimum, threshold.maximum))
            message = f"From {least} to {most}."
        else:
            continue
        errors.append(
            FieldProblem(pointer=f"/thresholds/{name[:100]}", code="invalid_threshold", message=message,
                         cure="GET /api/v1/alerts/rules says which there are, with their ranges.")
        )  # fmt: skip
    if errors:
        raise Problem("invalid_request", "A threshold is not valid.", errors[0].cure, errors=errors)


def _audit(
    context: Context, action: str, rule: Rule, stream: str, before: AlertRuleSettings, after: AlertRuleSettings | None
) -> None:
    name = f"{rule.title} ({stream})" if stream else rule.title
    record(
        context, action, ("alert_rule", rule.id, name), before.model_dump(mode="json"),
        after.model_dump(mode="json") if after is not None else None,
    )  # fmt: skip
