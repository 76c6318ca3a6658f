"""Searches in the log of a source: the engines that mine it search, and nothing of what they find is kept here."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

from thalweg.db.audit import record
from thalweg.db.models import DatabaseRow
from thalweg.engine_client.client import EngineFailure
from thalweg.engine_client.search_documents import EngineSearch, FoundChange, FoundChanges, KeptLog
from thalweg.features.changes import repository
from thalweg.features.changes.engines import (
    MINE,
    NONE_MINES,
    Miner,
    found_at,
    kept_by,
    miner_for,
    miners_of,
    refusal,
)
from thalweg.features.changes.known_tables import check_known
from thalweg.features.changes.schemas import (
    Change,
    KeptStream,
    Search,
    SearchCreate,
    Searches,
    SearchResult,
    UnsearchableStream,
)
from thalweg.features.changes.undo import undo_of
from thalweg.kernel.context import Context
from thalweg.kernel.lifecycle import SearchState
from thalweg.kernel.pagination import LIMIT_MAX

NONE_ANSWERS = "No engine that mines this database's WAL can search now."
PAUSES_SECONDS = (0.1, 0.2, 0.4, 0.8)
"""Between looks at a search that runs; the last one is repeated."""


async def list_searches(context: Context, database_id: str) -> Searches:
    _, miners = await miners_of(context, database_id)
    answers = await kept_by(miners)
    kept = [(miner, answer) for miner, answer in answers if isinstance(answer, KeptLog)]
    return Searches(
        streams=[
            KeptStream(
                stream_id=miner.stream_id, stream_name=miner.stream_name, **answer.model_dump(exclude={"searches"})
            )
            for miner, answer in kept
        ],
        unavailable=[_unavailable(miner, answer) for miner, answer in answers if isinstance(answer, EngineFailure)],
        reason=None if kept else f"{NONE_MINES} {MINE}" if not miners else NONE_ANSWERS,
        searches=[_search(miner, search) for miner, answer in kept for search in answer.searches],
    )


async def begin(
    context: Context, database_id: str, wanted: SearchCreate, prefix: str = ""
) -> tuple[DatabaseRow, Search]:
    """Waits for engines only: the caller records it."""
    database, miners = await miners_of(context, database_id)
    table = (wanted.table.schema_name, wanted.table.table) if wanted.table else None
    if table is not None and wanted.stream_id is None and miners:
        await check_known(context, database, miners, table, prefix)
    miner = await miner_for(miners, wanted.stream_id, table)
    try:
        begun = await miner.client.begin_search(miner.stream_id, _body(wanted))
    except EngineFailure as failure:
        raise refusal(failure, prefix) from failure
    return database, _search(miner, begun)


def record_begun(context: Context, database: DatabaseRow, search: Search, wanted: SearchCreate) -> None:
    """Without values of rows: they name people."""
    table = wanted.table.model_dump(by_alias=True) if wanted.table else {}
    facts = {
        "search_id": search.id, "stream_id": search.stream_id, **table, "key_columns": sorted(wanted.key or {}),
        "xid": wanted.xid, "from": wanted.from_, "to": wanted.to, "from_time": _text(wanted.from_time),
        "to_time": _text(wanted.to_time),
    }  # fmt: skip
    facts = {name: value for name, value in facts.items() if value not in (None, [])}
    record(context, "searches_create", ("database", database.id, database.name), after=facts)


async def find(context: Context, database_id: str, wanted: SearchCreate, wait: float) -> SearchResult:
    """Begins a search and waits until it ends, so many seconds at most."""
    until = time.monotonic() + wait
    database, search = await begin(context, database_id, wanted, "/query")
    record_begun(context, database, search, wanted)
    _, miners = await miners_of(context, database_id)
    own = [miner for miner in miners if miner.stream_id == search.stream_id]
    pauses = iter(PAUSES_SECONDS)
    while True:
        miner, result = await found_at(own, search.id, 0, min(wanted.limit, LIMIT_MAX), whole=False)
        left = until - time.monotonic()
        if result.state is not SearchState.RUNNING or left <= 0:
            return _result(miner, result)
        await asyncio.sleep(min(next(pauses, PAUSES_SECONDS[-1]), left))


async def get(
    context: Context, database_id: str, search_id: str, after: int, limit: int, *, whole: bool
) -> SearchResult:
    """Another user's reading is recorded: the audit log has those whom rows were shown."""
    begun = await repository.has_begun(context.session, context.principal.user_id, database_id, search_id)
    database, miners = await miners_of(context, database_id)
    miner, result = await found_at(miners, search_id, after, limit, whole=whole)
    if result.changes and not begun:
        facts = {"search_id": search_id, "stream_id": miner.stream_id}
        record(context, "searches_get", ("database", database.id, database.name), after=facts)
    return _result(miner, result)


async def end(context: Context, database_id: str, search_id: str) -> None:
    _, miners = await miners_of(context, database_id)
    miner, _ = await found_at(miners, search_id, 0, 1, whole=False)
    try:
        await miner.client.end_search(miner.stream_id, search_id)
    except EngineFailure as failure:
        raise refusal(failure) from failure


def _body(wanted: SearchCreate) -> dict[str, Any]:
    body = wanted.model_dump(mode="json", by_alias=True, exclude={"stream_id"}, exclude_none=True)
    # NULL is a value of a key.
    key = {} if wanted.key is None else {"key": wanted.key}
    times = {name: _text(moment) for name in ("from_time", "to_time") if (moment := getattr(wanted, name))}
    return body | key | times


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _search(miner: Miner, search: EngineSearch) -> Search:
    return Search.model_validate({**search.model_dump(by_alias=True), "stream_id": miner.stream_id})


def _result(miner: Miner, result: FoundChanges) -> SearchResult:
    return SearchResult.model_validate(
        {
            **result.model_dump(by_alias=True), "stream_id": miner.stream_id,
            "changes": [_change(change) for change in result.changes],
        }
    )  # fmt: skip


def _change(change: FoundChange) -> Change:
    undo = undo_of(change)
    return Change.model_validate({**change.model_dump(by_alias=True), "undo": undo.sql, "undo_note": undo.note})


def _unavailable(miner: Miner, failure: EngineFailure) -> UnsearchableStream:
    problem = refusal(failure)
    return UnsearchableStream(
        stream_id=miner.stream_id, stream_name=miner.stream_name, code=problem.code, message=problem.detail,
        cure=problem.cure or None,
    )  # fmt: skip
