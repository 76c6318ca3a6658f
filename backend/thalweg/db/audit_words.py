"""Every action of the audit log in words. An action without an entry here does not pass the tests."""

from typing import Any

from thalweg.kernel.lifecycle import ExecutionOutcome

SENTENCES = {
    "access_policy_update": "Access policy changed",
    "advisor_cures_apply": "Cure applied",
    "advisor_cures_undo": "Cure undone",
    "advisor_policy_update": "Advisor's policy changed",
    "advisor_runs_create": "Advisor run taken",
    "advisor_runs_delete": "Advisor run deleted",
    "advisor_runs_update": "Advisor run changed",
    "advisor_schedules_create": "Advisor schedule created",
    "advisor_schedules_delete": "Advisor schedule deleted",
    "advisor_schedules_update": "Advisor schedule changed",
    "alert_channels_create": "Alert channel created",
    "alert_channels_delete": "Alert channel deleted",
    "alert_channels_test": "Alert channel tested",
    "alert_channels_update": "Alert channel changed",
    "alert_deliveries_retry": "Alert sent again",
    "alert_rules_delete": "Alert rule set back to its defaults",
    "alert_rules_update": "Alert rule changed",
    "alert_silences_create": "Alerts silenced",
    "alert_silences_delete": "Silence ended",
    "alerts_acknowledge": "Alert acknowledged",
    "alerts_unacknowledge": "Acknowledgement withdrawn",
    "audit_changes": "Changes of discarded transaction {error} exported",
    "databases_create": "Database registered",
    "databases_delete": "Database removed",
    "databases_test": "Connection tested",
    "databases_test_unsaved": "Connection tested before it was saved",
    "databases_update": "Database's connection changed",
    "destinations_add": "Destination {destination} added",
    "destinations_drop": "Destination {destination} dropped",
    "destinations_in_effect": "In effect from {position} at {destination}{since}",
    "destinations_retry": "Destination {destination} retried",
    "destinations_start": "Destination {destination} resumed",
    "destinations_stop": "Destination {destination} paused",
    "destinations_update": "Parameters or rules of destination {destination} changed",
    "engines_delete": "Engine removed",
    "engines_drop_stream": "Unknown stream dropped from the engine",
    "engines_enrol": "Engine enrolled",
    "engines_renew_token": "Engine's control token renewed",
    "engines_update": "Engine changed",
    "enrolments_create": "Enrolment token made",
    "lab_begin": "Lab's action begun",
    "lab_end": "Lab's action ended",
    "searches_create": "Changes of {searched} searched in the log",
    "searches_export": "Changes that a search had found exported",
    "searches_get": "Changes that another user's search had found looked at",
    "searches_undo": "SQL made that undoes changes that a search had found",
    "session_code_wanted": "Password right, second factor asked for",
    "session_create": "Logged in",
    "session_delete": "Logged out",
    "session_refused": "Login refused",
    "slots_drop": "Replication slot dropped",
    "stream_conflicts_export": "Conflict log exported",
    "stream_conflicts_get": "Rows of conflict {conflict} looked at",
    "stream_errors_delete": "Parked transaction {error} discarded{kept}",
    "stream_errors_dry_run": "Parked transaction {error} tried{as_role} and rolled back{outcome}",
    "stream_errors_edit": "Change {change} of parked transaction {error} given other values",
    "stream_errors_execute": "Parked transaction {error} executed again{as_role}{executed}",
    "stream_errors_execute_all": "All parked transactions executed again{as_role}{executed}",
    "stream_errors_execute_cause": "Parked transactions with one cause ({code}) executed again{as_role}{executed}",
    "stream_errors_get": "Rows of parked transaction {error} looked at",
    "stream_errors_leave_out": "Change {change} of parked transaction {error} left out",
    "stream_errors_restore": "Change {change} of parked transaction {error} taken back as it came",
    "stream_errors_superseded": "{transactions} parked transactions discarded: {table} was copied again at {copied_at}",
    "stream_markers_create": "Marker placed",
    "stream_tables_accept": "Changed state of {table} accepted",
    "stream_tables_copy": "Copy of {table} repeated",
    "streams_create": "Created",
    "streams_delete": "Deletion asked for",
    "streams_retry": "Tried again",
    "streams_start": "Started",
    "streams_stop": "Stopped",
    "streams_test_rules": "Rules tried on {rows} rows of {table}",
    "streams_update": "Changed",
    "tokens_create": "API token created",
    "tokens_revoke": "API token revoked",
    "users_change_password": "Password changed",
    "users_change_password_refused": "Change of the password refused",
    "users_confirm_second_factor": "Second factor turned on",
    "users_create": "User created",
    "users_delete": "User deleted",
    "users_prepare_second_factor": "Second factor prepared",
    "users_remove_second_factor": "Second factor turned off",
    "users_renew_recovery_codes": "Recovery codes renewed",
    "users_reset_second_factor": "Second factor taken away",
    "users_second_factor_refused": "Second factor's change refused",
    "users_update": "User changed",
    "users_use_recovery_code": "Recovery code used",
}
OF_STREAM = {"rules": "Tables changed", "parameters": "Parameters changed", "name": "Renamed"}
"""The changed part of a stream, in words."""


def sentence_of(action: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    """Without its actor and its target. `before` and `after` are those of the entry."""
    facts = {**(before or {}), **(after or {})}
    sentence = SENTENCES.get(action, action.replace("_", " ").capitalize())
    if action == "streams_update":
        changed = [words for key, words in OF_STREAM.items() if (before or {}).get(key) != (after or {}).get(key)]
        sentence = ", ".join([*changed[:1], *(words.lower() for words in changed[1:])]) or sentence
    sentence = " ".join(
        sentence.format(
            destination=facts.get("database") or facts.get("id") or facts.get("destination_id") or "",
            error=facts.get("error_id") or facts.get("id") or "",
            conflict=facts.get("conflict_id"),
            table=f"{facts.get('schema')}.{facts.get('table')}",
            searched=f"{facts.get('schema')}.{facts['table']}" if facts.get("table") else "any table",
            code=facts.get("sqlstate") or facts.get("code") or facts.get("cause"),
            change=facts.get("change"),
            transactions=facts.get("transactions"),
            rows=facts.get("rows"),
            position=facts.get("from"),
            since=f", since {facts['since'][:19].replace('T', ' ')} UTC" if facts.get("since") else "",
            copied_at=facts.get("copied_at"),
            as_role=f" as {facts['role']}" if facts.get("role") else "",
            outcome=_outcome(facts),
            kept=_kept(facts) if facts.get("refused") is None else "",
            executed=_executed(facts) if action.startswith("stream_errors_execute") else "",
        ).split()
    )
    refused = facts.get("refused")
    if refused is None:
        return sentence if facts.get("finished", True) else f"{sentence}: the end is not known"
    failed = action.startswith("stream_errors_execute") and refused.startswith("apply_")
    return f"{sentence}: failed again ({refused})" if failed else f"{sentence}: refused"


def _kept(facts: dict[str, Any]) -> str:
    """The part of a discarded transaction that the audit log keeps; nothing where that is the whole. Entries from
    before the log kept changes by themselves do not tell."""
    parts = []
    kept, total = facts.get("changes_kept"), facts.get("changes_total")
    because = f" ({facts['partly_because'].rstrip('.')})" if facts.get("partly_because") else ""
    if kept is not None and total is not None and kept < total:
        parts.append(f"{kept:,} of {total:,} changes kept{because}")
    elif because and not kept:
        parts.append(f"no changes kept{because}")
    if facts.get("rows_not_read"):
        parts.append(
            f"{facts['rows_not_read']:,} of them without the destination's row"
            if parts
            else f"{facts['rows_not_read']:,} of its changes kept without the destination's row"
        )
    if facts.get("values_cut"):
        parts.append(f"{facts['values_cut']:,} of its values cut")
    return "".join(f", {part}" for part in parts)


def _outcome(facts: dict[str, Any]) -> str:
    """The outcome of a dry run. Older entries, and those of a refused run, have none."""
    if facts.get("succeeds") is None:
        return ""
    if facts["succeeds"]:
        return ": it would be applied"
    return f": it would fail ({facts.get('sqlstate') or facts.get('code')})"


def _executed(facts: dict[str, Any]) -> str:
    """The outcome of an execution that failed after a part of it, or took longer than its request. Others have none:
    what was done within the request was either refused or done whole."""
    state = ExecutionOutcome(facts["state"]) if "state" in facts else None
    if state == ExecutionOutcome.UNKNOWN:
        return ": the outcome is not known"
    if not facts.get("executed"):
        words = {ExecutionOutcome.RUNNING: ", in progress", ExecutionOutcome.FAILED: ": failed"}
        return words.get(state, "") if state is not None else ""
    if state == ExecutionOutcome.DONE and not facts.get("failed_again"):
        return f": {facts['executed']} applied"
    failed = facts.get("failed_again") or 1
    if facts.get("error_id") is None:
        return f": {facts['executed']} applied, {failed} failed"
    beside = facts["executed"] - 1
    return f": applied{f', with {beside} behind it' if beside else ''}; {failed} behind it failed"
