"""Builds an engine's desired document from the store, at one consistent moment."""

import json
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from thalweg.db.models import AbandonedStreamRow, DatabaseRow, DestinationRow, EngineRow, StreamRow
from thalweg.db.streams import runs_on, whole_streams
from thalweg.engine_client.documents import FORMER_ID, NOT_REPORTED
from thalweg.engine_client.identity import identity_name
from thalweg.engine_client.mining_limits import limits_in, without_limits
from thalweg.inspection.target import stored_target
from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.kernel.context import Resources
from thalweg.kernel.lifecycle import DesiredStatus, Stage
from thalweg.kernel.row_rules import ScopedRules
from thalweg.kernel.rules_by_table import RulesByTable
from thalweg.kernel.secret_box import SecretBox
from thalweg.kernel.transformations import needs_key

FORMAT = 1
Definition = dict[str, Any]


async def desired_document(session: AsyncSession, engine_id: str, resources: Resources) -> Definition | None:
    """None when the engine is gone. Holds passwords: never log it. The session must be fresh."""
    await session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
    engine = await session.get(EngineRow, engine_id)
    if engine is None:
        return None
    secrets, networks = resources.secrets, resources.settings.database_networks
    streams: dict[str, Definition] = {}
    for row in await session.scalars(whole_streams().where(runs_on(engine_id)).order_by(StreamRow.id)):
        if row.capture_engine_id != engine_id:
            for receiver in row.receivers:
                if receiver.engine_id == engine_id:
                    streams[row.id] = receiving_definition(row, receiver, secrets)
        elif not row.capture_is_gone:
            streams[row.id] = capturing_definition(row, secrets)
    # An engine that was given up and came back has them on its disk still: only DROPPED makes it forget them.
    abandoned = select(AbandonedStreamRow).where(AbandonedStreamRow.engine_id == engine_id)
    for lost in await session.scalars(abandoned.order_by(AbandonedStreamRow.id)):
        streams[lost.id] = _with_list(json.loads(secrets.open(lost.definition_sealed)))
    document = {"format": FORMAT, "revision": engine.desired_revision, "streams": list(streams.values())}
    document |= _unknown(engine, streams)
    return {**document, "database_networks": list(networks.text)} if networks.text else document


def _with_list(lost: Definition) -> Definition:
    """One that was sealed before every stream had a list of destinations, as engines take it now."""
    if "destinations" in lost:
        named = [
            {**destination, "id": "only" if destination["id"] == FORMER_ID else destination["id"]}
            for destination in lost["destinations"]
        ]
        return {**lost, "destinations": [{"backlog": True, **destination} for destination in named]}
    rest = {name: value for name, value in lost.items() if name not in ("destination", "send_to")}
    if "receive_from" in rest:
        rest["receive_from"] = {"engine": rest["receive_from"]["engine"]}
    only = {"id": "only", "status": DesiredStatus.ENABLED, "force": False, "backlog": False}
    if "send_to" in lost:
        return {**rest, "destinations": [{**only, "name": lost["send_to"]["engine"], "send_to": lost["send_to"]}]}
    return {**rest, "destinations": [{**only, **lost["destination"]}]}


def _unknown(engine: EngineRow, streams: dict[str, Definition]) -> Definition:
    """The engine has their definitions. Without these lists it would refuse the document for leaving them out."""
    unknown = [stream["id"] for stream in engine.unknown_streams if stream["id"] not in streams]
    lists = {
        "kept": [name for name in unknown if name not in engine.streams_to_drop],
        "dropped": [name for name in unknown if name in engine.streams_to_drop],
    }
    return {name: ids for name, ids in lists.items() if ids}


def capturing_definition(row: StreamRow, secrets: SecretBox) -> Definition:
    """The capturing engine's part of a stream. Holds passwords."""
    return {
        **_common(row, secrets),
        **_mining(row),
        "status": row.desired_status,
        "force": row.force,
        "destinations": [_destination(row, destination, secrets) for destination in row.destinations],
    }


def receiving_definition(row: StreamRow, destination: DestinationRow, secrets: SecretBox) -> Definition:
    """The part of a destination's engine, when another engine captures. Holds passwords. The destination's desired
    status becomes the whole stream's there, because that engine has no other destination."""
    own = {
        "id": destination.id,
        "name": destination.database.name,
        "status": DesiredStatus.ENABLED,
        "force": False,
        "backlog": False,
    }
    return {
        **_common(row, secrets),
        "status": _receiving_status(row, destination),
        "force": row.force or destination.force,
        "parameters": without_limits({**row.parameters, **destination.parameters}),
        "destinations": [
            {
                **own,
                **_own_rules(row, destination),
                "conninfo": stored_target(destination.database, secrets).for_engine(),
            }
        ],
        "receive_from": {"engine": identity_name(row.capture_engine_id)},
    }


def _common(row: StreamRow, secrets: SecretBox) -> Definition:
    return {
        "id": row.id,
        "name": row.name,
        "source": source_definition(row.source, secrets),
        "tables": row.tables,
        **_mask_key(row, secrets),
        "parameters": without_limits(row.parameters),
    }


def _mining(row: StreamRow) -> Definition:
    """Only where it mines, or may do so until its kind has changed: earlier engines do not know these members."""
    if row.capture_kind == CaptureKind.WAL:
        return {"capture_kind": CaptureKind.WAL, **limits_in(row.parameters)}
    changes_kinds = (row.observed or {}).get("kind_change", NOT_REPORTED) != NOT_REPORTED
    return limits_in(row.parameters) if changes_kinds else {}


def _mask_key(row: StreamRow, secrets: SecretBox) -> Definition:
    """Only where a mask needs it: earlier engines do not know it."""
    if row.mask_key_sealed is None or not any(needs_key(table.get("transformations", [])) for table in row.tables):
        return {}
    return {"mask_key": secrets.open(row.mask_key_sealed)}


def source_definition(row: DatabaseRow, secrets: SecretBox) -> Definition:
    """Holds the password."""
    source = {"name": row.name, "conninfo": stored_target(row, secrets).for_engine()}
    return source | ({"read_from": "standby"} if row.read_from == "standby" else {})


def _destination(row: StreamRow, destination: DestinationRow, secrets: SecretBox) -> Definition:
    definition = {
        "id": destination.id, "name": destination.database.name, "status": destination.desired_status,
        "force": destination.force, "parameters": destination.parameters, "backlog": destination.backlog,
        **_own_rules(row, destination),
    }  # fmt: skip
    if destination.engine_id != row.capture_engine_id:
        return {**definition, "send_to": _peer(destination.engine)}
    return {**definition, "conninfo": stored_target(destination.database, secrets).for_engine()}


def _own_rules(row: StreamRow, destination: DestinationRow) -> Definition:
    """The capturing engine judges changes by them, and the one that applies filters its copy. Of every table of the
    stream that they concern, so that those of wider scopes are in force for a table that was added since."""
    by_table = RulesByTable(ScopedRules.model_validate(rules) for rules in destination.row_rules)
    names = [(table["schema"], table["table"]) for table in row.tables]
    rules = [
        {"schema": schema, "table": table, **by_table.for_engine(schema, table)}
        for schema, table in names
        if by_table.concerns(schema, table)
    ]
    return {"rules": rules} if rules else {}


def _receiving_status(row: StreamRow, destination: DestinationRow) -> str:
    """The capturing engine drops first: until then the one that receives only drains."""
    if DesiredStatus.DROPPED in (row.desired_status, destination.desired_status):
        return DesiredStatus.DROPPED if destination.stage == Stage.RELEASED else DesiredStatus.DISABLED
    stops = DesiredStatus.DISABLED in (row.desired_status, destination.desired_status)
    return DesiredStatus.DISABLED if stops else DesiredStatus.ENABLED


def _peer(engine: EngineRow) -> Definition:
    """An engine that lost its address keeps its streams: they say that nobody answers there, with port 1."""
    host, _, port = (engine.reached_at or "unknown.invalid:1").rpartition(":")
    return {"engine": identity_name(engine.id), "host": host.strip("[]"), "port": int(port)}
