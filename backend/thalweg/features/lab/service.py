"""The lab: what is wanted is written down here; the collector carries it out and ends it in time (workers/lab)."""

from datetime import datetime, timedelta

from sqlalchemy import text

from thalweg.db.audit import record
from thalweg.db.models import LabActionRow, StreamRow
from thalweg.features.lab import repository
from thalweg.features.lab.causes import CAUSES, DELAY_MS_MAX, SECONDS, Cause, CauseName
from thalweg.features.lab.repository import LOAD, Demo
from thalweg.features.lab.schemas import (
    RATE_MAX,
    Lab,
    LabCause,
    LabCauseStart,
    LabDelay,
    LabLoad,
    LabLoadUpdate,
    LabState,
    LabStream,
)  # fmt: skip
from thalweg.kernel.clock import now
from thalweg.kernel.context import Context
from thalweg.kernel.lifecycle import StreamPhase
from thalweg.kernel.problems import Problem

NO_DEMO = (
    "This installation has no demo, and the lab acts on the demo's two databases only.",
    "On a trial machine, “make up” brings the demo with it.",
)
NO_STREAM = (
    "There is no stream from the demo's source into its destination.",
    "“make demo” makes it again.",
)


async def get_lab(context: Context) -> Lab:
    demo = await repository.demo(context.session, context.resources.settings)
    if demo is None:
        why, cure = _missing(context)
        return Lab(available=False, why=why, cure=cure, stream=None, load=None, causes=[])
    rows, at = await repository.actions(context.session), now()
    return Lab(
        available=True, why=None, cure=None,
        stream=LabStream(
            id=demo.stream.id, name=demo.stream.name, source=demo.source.name, destination=demo.destination.name
        ),
        load=_load(rows.get(LOAD), context.resources.settings.lab_rate, at),
        causes=[_cause(name, cause, rows.get(name), demo.stream, at) for name, cause in CAUSES.items()],
    )  # fmt: skip


def _missing(context: Context) -> tuple[str, str]:
    return NO_DEMO if context.resources.settings.lab_source is None else NO_STREAM


def state_of(row: LabActionRow | None, at: datetime) -> LabState:
    if row is None:
        return LabState.OFF
    if row.ended or row.until <= at:
        return LabState.ENDING
    if row.in_effect_at is None:
        return LabState.STARTING
    return LabState.GONE if row.gone else LabState.ON


def _load(row: LabActionRow | None, usual: int, at: datetime) -> LabLoad:
    state = state_of(row, at)
    wanted = None if row is None or state is LabState.ENDING else row.rate
    return LabLoad(
        state=state, rate=usual if wanted is None else wanted, usual_rate=usual, rate_max=RATE_MAX, **_facts(row)
    )


def _cause(name: CauseName, cause: Cause, row: LabActionRow | None, stream: StreamRow, at: datetime) -> LabCause:
    wanted = row.delay_ms if row is not None else None
    return LabCause(
        name=name, title=cause.title, effect=cause.effect, sql="\n".join(cause.beginning(wanted)),
        end_sql="\n".join(cause.end), refused=_refused(cause, stream), delay=_delay(cause, wanted),
        state=state_of(row, at), **_facts(row),
    )  # fmt: skip


def _delay(cause: Cause, wanted: int | None) -> LabDelay | None:
    if cause.delay_ms is None:
        return None
    return LabDelay(ms=cause.delay_ms if wanted is None else wanted, usual_ms=cause.delay_ms, ms_max=DELAY_MS_MAX)


def _facts(row: LabActionRow | None) -> dict[str, object]:
    if row is None:
        return {"begun_by": None, "in_effect_at": None, "until": None, "failure": None}
    return {
        "begun_by": row.begun_by, "in_effect_at": row.in_effect_at, "until": row.until, "failure": row.failure
    }  # fmt: skip


def _refused(cause: Cause, stream: StreamRow) -> str | None:
    replicated = {table["table"] for table in stream.tables if table["schema"] == "public"}
    missing = [table for table in cause.tables if table not in replicated]
    if missing:
        return (
            f"The stream does not replicate public.{missing[0]}: it was made by an older version. Delete it, then "
            "“make demo” makes one that does."
        )
    if stream.observed_phase != StreamPhase.REPLICATING:
        return "The stream does not replicate now: there is nothing to slow down."
    return None


# --- what is wanted


async def start_cause(context: Context, name: CauseName, body: LabCauseStart) -> Lab:
    """Ends another one that is on: the advisor is to name this one."""
    if body.delay_ms is not None and CAUSES[name].delay_ms is None:
        raise Problem(
            "lab_unavailable", f"“{CAUSES[name].title}” has no delay.", "Leave delay_ms out, or start “network”."
        )
    demo = await _demo(context)
    refused = _refused(CAUSES[name], demo.stream)
    if refused is not None:
        raise Problem("lab_unavailable", refused, "Look at the stream's own page.")
    rows = await _locked(context)
    for other in CauseName:
        if other is not name:
            _end(context, rows.get(other))
    delay = body.delay_ms or CAUSES[name].delay_ms
    _begin(context, rows.get(name), name, CAUSES[name].seconds, delay_ms=delay)
    return await _flushed(context)


async def stop_cause(context: Context, name: CauseName) -> Lab:
    await _demo(context)
    _end(context, (await _locked(context)).get(name))
    return await _flushed(context)


async def change_load(context: Context, body: LabLoadUpdate) -> Lab:
    """The usual rate ends what was wanted before."""
    await _demo(context)
    row = (await _locked(context)).get(LOAD)
    if body.rate == context.resources.settings.lab_rate:
        _end(context, row)
    else:
        _begin(context, row, LOAD, SECONDS, rate=body.rate)
    return await _flushed(context)


async def reset(context: Context) -> Lab:
    await _demo(context)
    for row in (await _locked(context)).values():
        _end(context, row)
    return await _flushed(context)


async def _demo(context: Context) -> Demo:
    demo = await repository.demo(context.session, context.resources.settings)
    if demo is None:
        why, cure = _missing(context)
        raise Problem("lab_unavailable", why, cure)
    return demo


async def _locked(context: Context) -> dict[str, LabActionRow]:
    """One request at a time: two that begin the same would both insert it. The collector, which locks the row that it
    writes, waits too, instead of this for it and it for this."""
    await context.session.execute(text("LOCK TABLE lab_actions IN EXCLUSIVE MODE"))
    return await repository.actions(context.session)


async def _flushed(context: Context) -> Lab:
    await context.session.flush()
    return await get_lab(context)


def _begin(
    context: Context, row: LabActionRow | None, action: str, seconds: int, *,
    rate: int | None = None, delay_ms: int | None = None,
) -> None:  # fmt: skip
    """Also of one that is on or ends: it begins anew, with the whole time."""
    at = now()
    if row is None:
        row = LabActionRow(action=action)
        context.session.add(row)
    row.rate, row.delay_ms, row.begun_at, row.begun_by = rate, delay_ms, at, context.principal.name
    row.until, row.ended, row.in_effect_at, row.gone, row.failure = (
        at + timedelta(seconds=seconds),
        False,
        None,
        False,
        None,
    )
    record(context, "lab_begin", target_of_action(action), after=_audited(row))


def _end(context: Context, row: LabActionRow | None) -> None:
    if row is None or state_of(row, now()) is LabState.ENDING:
        return
    row.ended, row.failure = True, None
    record(context, "lab_end", target_of_action(row.action), before=_audited(row))


def target_of_action(action: str) -> tuple[str, str, str]:
    return "lab", action, "load" if action == LOAD else CAUSES[CauseName(action)].title


def _audited(row: LabActionRow) -> dict[str, object]:
    amounts = {"rate": row.rate, "delay_ms": row.delay_ms}
    return {"until": row.until.isoformat(), **{name: value for name, value in amounts.items() if value is not None}}
