"""Findings about paths that do not work at all, or have nothing to do."""

from collections.abc import Iterator

from thalweg.advisor.finding import Cure, Finding, FindingSeverity
from thalweg.advisor.findings.clues import Clues, action, fact
from thalweg.advisor.findings.codes import FindingCode
from thalweg.advisor.schemas import Verdict
from thalweg.inspection.failure import ConnectionFailure

TITLES: dict[Verdict, tuple[FindingCode, str]] = {
    Verdict.DESTINATION_DOWN: ("destination_down", "The destination accepts no changes"),
    Verdict.SOURCE_DOWN: ("source_down", "The source delivers no changes"),
    Verdict.LINK_DOWN: ("link_down", "The two engines cannot reach each other"),
    Verdict.ENGINE_DOWN: ("engine_down", "An engine does not answer"),
    Verdict.ENGINE_TROUBLE: ("engine_trouble", "The problem is in the engine; the databases are fine"),
    Verdict.ABORTED: ("aborted", "The stream has stopped with an error"),
    Verdict.PARKING: ("parking", "Nothing arrives: transactions are parked in the error queue"),
}
CURES = {
    Verdict.DESTINATION_DOWN: "Bring the destination back; the stream resumes by itself from where it stopped.",
    Verdict.SOURCE_DOWN: "Bring the source back; the stream resumes by itself from where it stopped.",
    Verdict.LINK_DOWN: "Check the network between the engines, and that the receiving one runs.",
    Verdict.ENGINE_DOWN: "Start thalwegd on its host, and check that the control plane reaches its address.",
    Verdict.ENGINE_TROUBLE: "Look at the engine's log and at its host: disk, memory, limits.",
    Verdict.ABORTED: "Remove the error's cause, then retry the stream.",
    Verdict.PARKING: "Open the error queue, remove what keeps its first transactions from being applied, then execute "
    "them again: the ones behind them follow.",
}


def conditions(clues: Clues) -> Iterator[Finding]:
    verdict, explanation = clues.view.bottleneck.verdict, clues.view.bottleneck.explanation
    if verdict in TITLES:
        code, title = TITLES[verdict]
        facts = clues.facts
        read = facts.source if verdict is Verdict.SOURCE_DOWN else facts.destination
        failure = read.failure if read is not None else None
        database = clues.view.path.path.destination_db
        if verdict is Verdict.SOURCE_DOWN:
            database = clues.view.path.path.source_db
        evidence = [fact("STATUS", clues.view.path.path.stream_name, explanation)]
        if failure is not None:
            evidence.append(fact("CONNECTION", database, failure.message))
        yield clues.finding(
            code, title, explanation, evidence, [_cure(clues, verdict, failure)], severity=FindingSeverity.CRITICAL
        )  # fmt: skip
    elif verdict is Verdict.SOURCE_IDLE:
        rest = " Nothing needs to be done." if _nothing_parked(clues) else ""
        yield clues.finding(
            "source_idle", "The source is idle", explanation + rest,
            [fact("CAPTURE RATE", "capture", 0.0, "MESSAGES PER SECOND")], [], severity=FindingSeverity.INFORMATION,
            is_cause=False,
        )  # fmt: skip


def _nothing_parked(clues: Clues) -> bool:
    """Known to be so."""
    own_samples = clues.view.path.own_samples
    return bool(own_samples) and own_samples[-1].error_queue_transactions == 0


def _cure(clues: Clues, verdict: Verdict, failure: ConnectionFailure | None) -> Cure:
    if failure is not None and verdict in (Verdict.DESTINATION_DOWN, Verdict.SOURCE_DOWN):
        return action(f"{failure.cure} The stream resumes by itself from where it stopped.", failure.sql)
    cure = clues.view.path.condition.error_cure if verdict in (Verdict.ABORTED, Verdict.ENGINE_TROUBLE) else None
    return action(cure or CURES[verdict])
