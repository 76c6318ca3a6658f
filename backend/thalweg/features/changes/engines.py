"""The engines that can search a source's log, and their refusals in words."""

import asyncio
import re
from dataclasses import dataclass

import httpx

from thalweg.db.models import DatabaseRow
from thalweg.engine_client.access import client_of, problem_of
from thalweg.engine_client.client import EngineClient, EngineFailure
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.engine_client.search_documents import FoundChanges, KeptLog
from thalweg.features.changes import repository
from thalweg.kernel.context import Context
from thalweg.kernel.lsn import lsn_of
from thalweg.kernel.models import FieldProblem
from thalweg.kernel.problems import Problem, not_found

POINTED = re.compile(r"(/\S*): (.+)", re.DOTALL)
NONE_MINES = "No stream of this database mines its WAL, so no engine keeps any of it."
MINE = (
    "Create a stream with log mining from this database, or change a stream's capture: thalweg streams capture STREAM "
    "wal."
)
TOO_OLD = "The engine's version cannot search."


@dataclass(frozen=True)
class Miner:
    """A stream that mines the source's WAL, with its capturing engine."""

    stream_id: str
    stream_name: str
    tables: frozenset[tuple[str, str]]
    client: EngineClient


async def miners_of(context: Context, database_id: str) -> tuple[DatabaseRow, list[Miner]]:
    """All that is asked of the store: its transaction ends with it."""
    database = await context.session.get(DatabaseRow, database_id)
    if database is None:
        raise not_found("database", database_id)
    resources = context.resources
    miners = [
        Miner(
            row.id, row.name, frozenset((table["schema"], table["table"]) for table in row.tables),
            client_of(row.capture_engine, resources.http, resources.secrets, resources.settings.engine_timeout),
        )
        for row in await repository.mining_streams(context.session, database_id)
    ]  # fmt: skip
    await context.release()
    return database, miners


async def kept_by(miners: list[Miner]) -> list[tuple[Miner, KeptLog | EngineFailure]]:
    async def ask(miner: Miner) -> KeptLog | EngineFailure:
        try:
            return await miner.client.kept_log(miner.stream_id)
        except EngineFailure as failure:
            return failure

    return list(zip(miners, await asyncio.gather(*map(ask, miners)), strict=True))


async def miner_for(miners: list[Miner], stream_id: str | None, table: tuple[str, str] | None) -> Miner:
    """The named stream, or of those that have the table the one that keeps WAL from furthest back. Where none has it,
    it may have been in one when it was changed."""
    if not miners:
        raise Problem("search_refused", NONE_MINES, MINE)
    if stream_id is not None:
        named = [miner for miner in miners if miner.stream_id == stream_id]
        if not named:
            raise _unknown_stream(stream_id)
        return named[0]
    having = [miner for miner in miners if table in miner.tables] or miners
    if len(having) == 1:
        return having[0]
    answers = await kept_by(having)
    kept = [(lsn_of(answer.kept_from), miner) for miner, answer in answers if isinstance(answer, KeptLog)]
    if not kept:
        first = next(answer for _, answer in answers if isinstance(answer, EngineFailure))
        raise refusal(first) from first
    return min(kept, key=lambda candidate: candidate[0])[1]


async def found_at(
    miners: list[Miner], search_id: str, after: int, limit: int, *, whole: bool
) -> tuple[Miner, FoundChanges]:
    """The search with the stream that has it. Where none has it, the failure of an engine says why."""

    async def ask(miner: Miner) -> FoundChanges | EngineFailure:
        try:
            return await miner.client.search(miner.stream_id, search_id, after, limit, whole=whole)
        except EngineFailure as failure:
            return failure

    answers = await asyncio.gather(*map(ask, miners))
    for miner, answer in zip(miners, answers, strict=True):
        if not isinstance(answer, EngineFailure):
            return miner, answer
    failures = [
        answer for answer in answers if isinstance(answer, EngineFailure) and answer.status != httpx.codes.NOT_FOUND
    ]
    if failures:
        raise refusal(failures[0]) from failures[0]
    raise unknown_search(search_id)


def unknown_search(search_id: str) -> Problem:
    return Problem(
        "not_found", f"No engine of this database knows the search {search_id}.",
        "Search again: engines forget a search ten minutes after its end, and when they start again.",
    )  # fmt: skip


def refusal(failure: EngineFailure, prefix: str = "") -> Problem:
    """`prefix`: before the JSON pointers of what is wrong in the request."""
    match failure.code:
        case ErrorCode.SEARCH_REFUSED:
            return Problem("search_refused", failure.message, failure.cure)
        case ErrorCode.SEARCH_BUSY:
            return Problem("search_busy", failure.message, failure.cure)
        case ErrorCode.INVALID_REQUEST:
            found = POINTED.fullmatch(failure.message)
            pointer, message = (found[1], found[2]) if found is not None else ("", failure.message)
            error = FieldProblem(pointer=prefix + pointer, code="invalid", message=message)
            return Problem("invalid_request", failure.message, "Correct what `errors` lists.", errors=[error])
        case ErrorCode.NOT_FOUND:
            return Problem("search_refused", TOO_OLD, "Upgrade the engine.")
    return problem_of(failure)


def _unknown_stream(stream_id: str) -> Problem:
    message = "It is no stream with log mining from this database."
    return Problem(
        "invalid_request", f"/stream_id: {message}", "The list of searches names the streams that can be searched.",
        errors=[FieldProblem(pointer="/stream_id", code="unknown", message=message)],
    )  # fmt: skip
