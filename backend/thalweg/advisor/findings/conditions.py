"""Findings about paths that do not work at all, or have nothing to do."""

from collections.abc import Iterator

from thalweg.advisor.finding import Cure, Finding
from thalweg.advisor.findings.catalogue import CATALOGUE
from thalweg.advisor.findings.clues import Clues, action, fact
from thalweg.advisor.findings.codes import FindingCode
from thalweg.advisor.schemas import Verdict
from thalweg.inspection.failure import ConnectionFailure

CODES: dict[Verdict, FindingCode] = {
    Verdict.DESTINATION_DOWN: FindingCode.DESTINATION_DOWN,
    Verdict.SOURCE_DOWN: FindingCode.SOURCE_DOWN,
    Verdict.LINK_DOWN: FindingCode.LINK_DOWN,
    Verdict.ENGINE_DOWN: FindingCode.ENGINE_DOWN,
    Verdict.ENGINE_TROUBLE: FindingCode.ENGINE_TROUBLE,
    Verdict.ABORTED: FindingCode.ABORTED,
    Verdict.PARKING: FindingCode.PARKING,
}


def conditions(clues: Clues) -> Iterator[Finding]:
    verdict, explanation = clues.view.bottleneck.verdict, clues.view.bottleneck.explanation
    if verdict in CODES:
        facts = clues.facts
        read = facts.source if verdict is Verdict.SOURCE_DOWN else facts.destination
        failure = read.failure if read is not None else None
        database = clues.view.path.path.destination_db
        if verdict is Verdict.SOURCE_DOWN:
            database = clues.view.path.path.source_db
        evidence = [fact("STATUS", clues.view.path.path.stream_name, explanation)]
        if failure is not None:
            evidence.append(fact("CONNECTION", database, failure.message))
        yield clues.finding(CODES[verdict], explanation, evidence, [_cure(clues, verdict, failure)])
    elif verdict is Verdict.SOURCE_IDLE:
        rest = " Nothing needs to be done." if _nothing_parked(clues) else ""
        yield clues.finding(
            FindingCode.SOURCE_IDLE, explanation + rest,
            [fact("CAPTURE RATE", "capture", 0.0, "MESSAGES PER SECOND")], [], is_cause=False,
        )  # fmt: skip


def _nothing_parked(clues: Clues) -> bool:
    """Known to be so."""
    own_samples = clues.view.path.own_samples
    return bool(own_samples) and own_samples[-1].error_queue_transactions == 0


def _cure(clues: Clues, verdict: Verdict, failure: ConnectionFailure | None) -> Cure:
    if failure is not None and verdict in (Verdict.DESTINATION_DOWN, Verdict.SOURCE_DOWN):
        return action(f"{failure.cure} The stream resumes by itself from where it stopped.", failure.sql)
    cure = clues.view.path.condition.error_cure if verdict in (Verdict.ABORTED, Verdict.ENGINE_TROUBLE) else None
    return action(cure or CATALOGUE[CODES[verdict]].cure)
