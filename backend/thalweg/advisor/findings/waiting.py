"""Findings about paths that are held up: by sessions at a server, or by a destination's full backlog."""

from collections.abc import Iterator

from thalweg.advisor.finding import Cure, Evidence, Finding
from thalweg.advisor.findings.clues import Clues, action, fact
from thalweg.advisor.findings.codes import FindingCode
from thalweg.advisor.schemas import Verdict
from thalweg.advisor.streams import ServerWait
from thalweg.engine_client.error_codes import ErrorSide
from thalweg.kernel.lifecycle import ObservedStatus
from thalweg.kernel.words import ended
from thalweg.live.going_on import makes_room
from thalweg.live.schemas import DestinationSample

ENDED_BY = "the same user as the session's, or a superuser"


def waiting(clues: Clues) -> Iterator[Finding]:
    verdict = clues.view.bottleneck.verdict
    if verdict is Verdict.WAITING:
        for number, wait in enumerate(clues.view.path.condition.waits):
            yield _behind_sessions(clues, wait, number)
    elif verdict is Verdict.HELD_UP:
        for destination in clues.view.path.full_backlogs:
            yield _behind_backlog(clues, destination)


def _behind_sessions(clues: Clues, wait: ServerWait, number: int) -> Finding:
    who = f"Session{wait.blockers[0].called.removeprefix('session')}" if wait.blockers else "A prepared transaction"
    at = f"the {wait.side.value} {wait.database}"
    evidence = [fact("BLOCKED BY", wait.database, blocker.description) for blocker in wait.blockers]
    if wait.prepared:
        evidence.append(fact("BLOCKED BY", wait.database, "a prepared transaction"))
    evidence.append(fact("WAITS", at, wait.statement))
    return clues.finding(
        FindingCode.START_BLOCKED, ended(wait.words), evidence, list(_ends(clues, wait)),
        title=f"{who} at {at} keeps the path from starting", subject=f"{wait.side.value}.{number}",
    )  # fmt: skip


def _ends(clues: Clues, wait: ServerWait) -> Iterator[Cure]:
    if wait.blockers:
        there = clues.at_source if wait.side is ErrorSide.SOURCE else clues.at_destination
        yield there(
            "Let the session commit, or end it: the path then starts by itself.",
            "\n".join(f"SELECT pg_terminate_backend({blocker.pid});" for blocker in wait.blockers), ENDED_BY,
        )  # fmt: skip
    if wait.prepared:
        yield action(
            "Commit or roll back the prepared transaction, with COMMIT PREPARED or ROLLBACK PREPARED and its gid: the "
            "path then starts by itself.",
            "SELECT gid, prepared, owner, database FROM pg_prepared_xacts ORDER BY prepared;",
        )


def _behind_backlog(clues: Clues, destination: DestinationSample) -> Finding:
    path = clues.view.path
    name, backlog = path.name_of(destination.destination_id), destination.backlog
    condition = path.stream.destination_conditions.get(destination.destination_id)
    first = makes_room(
        [name], paused=condition is not None and condition.paused,
        failed=condition is not None and condition.status == ObservedStatus.ABORTED,
    )  # fmt: skip
    evidence: list[Evidence] = []
    if backlog is not None:
        evidence.append(fact("BACKLOG", name, float(backlog.bytes), "BYTES", float(backlog.limit_bytes)))
    code = FindingCode.FULL_BACKLOG if path.is_own(destination) else FindingCode.FULL_BACKLOG_ELSEWHERE
    return clues.finding(
        code, clues.view.bottleneck.explanation, evidence,
        [
            action(
                f"{first}, raise its queue_spill_limit_mb, or drop {name} from the stream. The path then continues by "
                "itself."
            )
        ],
        title=f"The full backlog of {name} holds the path up", subject=destination.destination_id,
    )  # fmt: skip
