"""Why appliers are slow: the findings about a path that its destination limits."""

from collections.abc import Iterator

from psycopg import sql

from thalweg.advisor.finding import Cure, Evidence, Finding, NewIndex
from thalweg.advisor.findings.clues import OWNER, SUPERUSER, Clues, action, fact
from thalweg.advisor.findings.codes import FindingCode
from thalweg.advisor.load import rate_of
from thalweg.advisor.stages import Stage
from thalweg.inspection.performance import Activity, DestinationFacts, Name
from thalweg.inspection.sessions import Blocker
from thalweg.kernel.words import capitalised
from thalweg.live.schemas import ComponentType

FLUSHES = (
    "IO:WALSync", "IO:WALWrite", "IO:WALInit", "IO:WalSync", "IO:WalWrite", "IO:WalInit", "LWLock:WALWrite",
    "LWLock:WALBufMapping",
)  # fmt: skip
STANDBY = ("IPC:SyncRep",)
STANDBY_PERCENT = 50.0
"""Progress is recorded at most five times a second, and a standby that is near confirms it at once."""
READS = ("IO:DataFileRead",)
DEPENDENCY_PERCENT = 25.0
SMALL_TABLE_ROWS = 1000
GROUPS_SMALL = 1000
ALL_AT_WORK_IDLE = 20.0
"""Percent. More appliers are of use only where those that are there have hardly any rest."""
ROUND_TRIP_MS = 2.0
"""Appliers do not notice a faster network: several work at once, and each sends much at a time."""
ON_THE_WAY_PERCENT = 50.0
INDEX_STEM_BYTES = 63 - len("_thalweg_key")


def quoted(name: tuple[str, ...]) -> str:
    return sql.Identifier(*name).as_string()


def cut(name: str) -> str:
    """Shortens a name, so that an index's name made of it has at most 63 bytes, like every identifier."""
    return name.encode()[:INDEX_STEM_BYTES].decode(errors="ignore")


def applying(clues: Clues) -> Iterator[Finding]:
    """Findings of the sub-component APPLY SERVER. The first one that explains its time is the cause; the others
    accompany it."""
    yield from _standby(clues)
    stage = clues.limiting
    if stage is None or stage.sub_component != "APPLY SERVER" or stage.mean is None:
        yield from _just_locked(clues)
        return
    network = list(_network(clues, stage))
    ahead = [*_locks(clues, stage), *_missing_indexes(clues, stage), *_triggers(clues, stage)]
    if network:
        # The few sessions that are at work may well wait for a disk: that says nothing of the time that is lost.
        ahead, reads = [*network, *_beside(ahead)], []
    else:
        ahead, reads = [*ahead, *_flushes(clues, stage)], list(_reads(clues, stage))
    explained = any(finding.is_cause for finding in ahead)
    causes = [
        *ahead, *_dependencies(clues, stage, explained), *_commit_order(clues, stage), *_small_groups(clues, stage),
        *reads, *_data_layer(clues, stage),
    ]  # fmt: skip
    yield from causes
    if not any(finding.is_cause for finding in causes):
        yield from _parallelism(clues, stage)


def _beside(findings: list[Finding]) -> list[Finding]:
    return [finding.model_copy(update={"is_cause": False}) for finding in findings]


def _own(stage: Stage, event: str) -> float:
    """Percent of the time of the appliers that do not wait for another. Those that do wait for what that one does."""
    assert stage.mean is not None  # noqa: S101
    events = stage.mean.events
    waiting = events.get("DEPENDENCY", 0.0)
    return 0.0 if waiting >= 100 else 100 * events.get(event, 0.0) / (100 - waiting)


def _own_share(clues: Clues, stage: Stage, event: str, activity: str) -> Evidence:
    """The same as Clues.share, with the figure that was compared with the threshold."""
    return clues.share(stage, event, activity).model_copy(update={"value": round(_own(stage, event), 1)})


def _working(stage: Stage, share: float) -> float:
    """Percent of the stage's working time, for a share of its sessions' or threads' time."""
    assert stage.mean is not None  # noqa: S101
    work = 100 - stage.mean.idle
    return 0.0 if work <= 0 else min(99.0, 100 * share / work)


def _just_locked(clues: Clues) -> Iterator[Finding]:
    """A lock that was taken seconds ago limits nothing yet over the whole span, and stops the path all the same."""
    stage = clues.view.stage(ComponentType.APPLY, "APPLY SERVER") if clues.view.stands_now else None
    if stage is not None:
        yield from _locks(clues, stage)


def _locks(clues: Clues, stage: Stage) -> Iterator[Finding]:
    facts = clues.facts.destination
    if facts is None or not facts.waits.blockers:
        return
    share = facts.waits.share("Lock:")
    if share <= clues.event_threshold:
        return
    blockers = sorted(facts.waits.blockers.values(), key=lambda blocker: blocker.pid)
    database = clues.view.path.path.destination_db
    yield clues.finding(
        FindingCode.APPLY_LOCK_CONTENTION,
        f"{capitalised(blockers[0].description)}: in {share:.0f} % of the looks at working appliers they waited for "
        "its lock.",
        [
            *(fact("BLOCKED BY", database, blocker.description) for blocker in blockers),
            _seen(facts, "Lock:", clues.event_threshold),
            clues.share(stage, "EXECUTE", "execute"),
        ],
        [
            clues.at_destination(
                "End the session that holds the lock, or let it commit; then make its application commit sooner, or "
                "work on other rows than the stream does.",
                "\n".join(f"SELECT pg_terminate_backend({blocker.pid});" for blocker in blockers),
                "the same user as the session's, or a superuser",
            )
        ],
        title=_holders_in_words(blockers), stage=stage, share=share,
    )  # fmt: skip


def _holders_in_words(blockers: list[Blocker]) -> str:
    if len(blockers) == 1:
        return f"{blockers[0].called.capitalize()} holds a lock that the appliers need"
    return f"{len(blockers)} sessions hold locks that the appliers need, among them {blockers[0].called}"


def _on_the_way(clues: Clues, stage: Stage) -> float:
    """Percent of the time that appliers wait for the destination in which no session there works for them."""
    assert stage.mean is not None  # noqa: S101
    facts = clues.facts.destination
    waiting = len(stage.threads) * (stage.mean.events.get("EXECUTE", 0.0) + stage.mean.events.get("COMMIT", 0.0)) / 100
    if facts is None or facts.waits.looks == 0 or waiting == 0 or (facts.waits.round_trip_ms or 0.0) < ROUND_TRIP_MS:
        return 0.0
    return max(0.0, 100 * (1 - facts.waits.sessions / facts.waits.looks / waiting))


def _network(clues: Clues, stage: Stage) -> Iterator[Finding]:
    """An applier waits for the network if no process at the destination works on its answer."""
    facts = clues.facts.destination
    trip = (facts.waits.round_trip_ms or 0.0) if facts is not None else 0.0
    away, waits = _on_the_way(clues, stage), _own(stage, "EXECUTE") + _own(stage, "COMMIT")
    if facts is None or away <= ON_THE_WAY_PERCENT or waits <= clues.event_threshold:
        return
    database = clues.view.path.path.destination_db
    now, maximum = clues.number("parallelism"), clues.facts.parameters["parallelism"].maximum or 64
    more = min(maximum, 2 * now)
    cures = [
        *_group_cures(clues),
        action(
            "Shorten the path: let an engine near the destination apply, and this one send to it. Between two "
            "engines, distance costs no round trips. Or find out what makes the network slow."
        ),
    ]
    if more > now and stage.mean is not None and stage.mean.idle <= ALL_AT_WORK_IDLE:
        text = "Until then, use more appliers, so that more of them wait at the same time."
        cures.append(clues.parameters(text, parallelism=more))
    yield clues.finding(
        FindingCode.APPLY_NETWORK,
        f"A round trip takes {trip:.1f} ms. In {away:.0f} % of the time that the appliers wait for the "
        "destination, no session there works for them: requests and answers are on the network.",
        [
            fact("ROUND TRIP", f"control plane to {database}", round(trip / 1000, 4), "SECONDS", ROUND_TRIP_MS / 1000),
            fact("ON THE WAY", "of the appliers' waits", round(away, 1), "PERCENT", ON_THE_WAY_PERCENT),
            _own_share(clues, stage, "EXECUTE", "execute"), _own_share(clues, stage, "COMMIT", "commit"),
        ],
        cures, title=f"The network to {database} is slow: appliers wait for its answers", stage=stage,
        share=_working(stage, away * waits / 100),
    )  # fmt: skip


def _seen(facts: DestinationFacts, prefix: str, threshold: float) -> Evidence:
    share = round(facts.waits.share(prefix), 1)
    return fact(f"WAIT {prefix.rstrip(':')}", "working sessions", share, "PERCENT", threshold)


def _missing_indexes(clues: Clues, stage: Stage) -> Iterator[Finding]:
    facts = clues.facts.destination
    if facts is None or _own(stage, "EXECUTE") <= clues.event_threshold:
        return
    found = [(name, facts.after[name]) for name in facts.keyless if name in facts.after]
    changed = [(name, table) for name, table in found if table.updates + table.deletes > 0 and table.seq_scan > 0]
    for name, table in changed:
        if name not in facts.indexed or _read(facts, name) > 0:
            yield _missing_index(clues, stage, facts, name, table)


def _read(facts: DestinationFacts, name: Name) -> int:
    """Rows read by sequential scans that have ended while the destination was looked at."""
    before = facts.before.get(name)
    return facts.after[name].seq_tup_read - (before.seq_tup_read if before else 0)


def _rows_read(shown: str, read: int, table: Activity) -> Evidence:
    """A scan that lasts longer than the look is counted later: then all that have ended before are told."""
    if read > 0:
        return fact("ROWS READ BY SEQUENTIAL SCANS", shown, float(read), "ROWS WHILE LOOKED AT")
    return fact("ROWS READ BY SEQUENTIAL SCANS", shown, float(table.seq_tup_read), "ROWS SINCE COUNTING BEGAN")


def _missing_index(clues: Clues, stage: Stage, facts: DestinationFacts, name: Name, table: Activity) -> Finding:
    shown, keys, is_key = ".".join(name), *_searched(clues, name)
    index = NewIndex(schema_name=name[0], table=name[1], name=f"{cut(name[1])}_thalweg_key")
    columns = ", ".join(sql.Identifier(column).as_string() for column in keys)
    kind = "UNIQUE INDEX" if is_key else "INDEX"
    statement = f"CREATE {kind} CONCURRENTLY {quoted((index.name,))} ON {quoted(name)} ({columns});"
    read = _read(facts, name)
    cure = (
        clues.at_destination(
            f"Create an index on {'the key' if is_key else columns} of {shown}; writers are not blocked meanwhile.",
            statement,
            OWNER,
            index,
        )
        if keys
        else action(f"Give {shown} a primary key or a unique index at the destination.")
    )
    return clues.finding(
        FindingCode.APPLY_MISSING_INDEX,
        f"Each update and delete reads the whole table of about {table.rows} rows to find its row.",
        [
            _own_share(clues, stage, "EXECUTE", "execute"),
            _rows_read(shown, read, table),
            fact("SEQUENTIAL SCANS", shown, float(table.seq_scan), "NUMBER"),
            fact("ROWS", shown, float(table.rows), "NUMBER", SMALL_TABLE_ROWS),
        ],
        [cure], title=f"{shown} has no index for its key at the destination", stage=stage,
        is_cause=table.rows >= SMALL_TABLE_ROWS or read > 0,
        share=_working(stage, _own(stage, "EXECUTE")), subject=shown,
    )  # fmt: skip


def _searched(clues: Clues, name: Name) -> tuple[list[str], bool]:
    """The source's key, and True; where that has none, a column whose values differ so far, and False: an index that
    forbids equal ones would refuse what the source allows."""
    source, destination = clues.facts.source, clues.facts.destination
    keys = source.keys.get(name, []) if source is not None else []
    return (keys, True) if keys else (destination.candidates.get(name, []) if destination is not None else [], False)


def _triggers(clues: Clues, stage: Stage) -> Iterator[Finding]:
    facts = clues.facts.destination
    if facts is None or _own(stage, "EXECUTE") <= clues.event_threshold:
        return
    own = facts.waits.events and facts.waits.own_blockers > 0
    for trigger in facts.triggers:
        shown = ".".join(trigger.table)
        table = facts.after.get(trigger.table)
        used = table is not None and table.inserts + table.updates + table.deletes > 0
        name = sql.Identifier(trigger.name).as_string()
        evidence = [
            _own_share(clues, stage, "EXECUTE", "execute"),
            fact("TRIGGER", shown, f"{trigger.name} calls {trigger.function}()"),
        ]
        if facts.waits.top is not None:
            evidence.append(fact("TOP WAIT", "working sessions", f"{facts.waits.top[0]} {facts.waits.top[1]:.0f} %"))
        if own:
            evidence.append(fact("WAITS FOR EACH OTHER", "working sessions", float(facts.waits.own_blockers), "LOOKS"))
        yield clues.finding(
            FindingCode.APPLY_TRIGGER,
            f"{trigger.name} on {shown} is enabled for replicas and runs within each of the appliers' statements.",
            evidence,
            [
                clues.at_destination(
                    "Let the trigger fire for local changes only, as triggers do by default. Its work must then be "
                    "replicated from the source, or be done later in sets.",
                    f"ALTER TABLE {quoted(trigger.table)} ENABLE TRIGGER {name};", OWNER,
                )
            ],
            title=f"A trigger fires for every change that is applied to {shown}", stage=stage,
            share=_working(stage, _own(stage, "EXECUTE")), is_cause=used,
            subject=f"{shown}.{trigger.name}",
        )  # fmt: skip


def _flushes(clues: Clues, stage: Stage) -> Iterator[Finding]:
    facts = clues.facts.destination
    # Commits also take time where nothing waits for a disk, as those of one row each do: the server knows which it is.
    flushing = facts.waits.share(*FLUSHES) if facts else _own(stage, "COMMIT")
    if flushing <= clues.event_threshold:
        return
    evidence = [_own_share(clues, stage, "COMMIT", "commit")]
    if facts is not None:
        evidence.append(fact("WAIT FOR WAL", "working sessions", round(flushing, 1), "PERCENT", clues.event_threshold))
        evidence += [fact(name, "destination", value) for name, value in _flush_settings(facts).items()]
        evidence += [fact(f"pg_stat_wal.{name}", "destination", value) for name, value in facts.wal.items()]
        evidence += _io(facts, "wal writes", "wal write_ms", "wal fsyncs", "wal fsync_ms", "relation fsyncs")
    yield clues.finding(
        FindingCode.APPLY_SLOW_FLUSH,
        "Appliers wait until the destination's WAL is written, although they commit asynchronously.", evidence,
        [
            *_group_cures(clues),
            clues.at_destination(
                "Put pg_wal on a faster disk; until then, more WAL buffers let commits gather.",
                "ALTER SYSTEM SET wal_buffers = '64MB';  -- takes effect with a restart of the server", SUPERUSER,
            ),
        ],
        stage=stage, share=_working(stage, flushing),
    )  # fmt: skip


def _io(facts: DestinationFacts, *names: str) -> list[Evidence]:
    """Evidence from pg_stat_io, from PostgreSQL 16 on."""
    return [fact(f"pg_stat_io: {name}", "destination", facts.io[name]) for name in names if name in facts.io]


def _flush_settings(facts: DestinationFacts) -> dict[str, str]:
    """Without synchronous_commit: appliers set their own."""
    return {name: facts.settings[name] for name in ("fsync", "wal_buffers") if facts.settings.get(name)}


def _standby(clues: Clues) -> Iterator[Finding]:
    """Appliers commit asynchronously and wait for no standby. The session that records progress does."""
    facts = clues.facts.destination
    share = facts.waits.recording_share(*STANDBY) if facts is not None else 0.0
    if facts is None or share <= STANDBY_PERCENT:
        return
    seen = fact(
        "WAIT IPC:SyncRep", "session that records progress", round(share, 1), "PERCENT", STANDBY_PERCENT
    )  # fmt: skip
    names = facts.settings.get("synchronous_standby_names")
    yield clues.finding(
        FindingCode.APPLY_STANDBY,
        f"In {share:.0f} % of the looks, the session that records how far apply is waited for a standby. Appliers do "
        "not wait for it, but the source keeps its WAL until their progress is recorded.",
        [seen, *([fact("synchronous_standby_names", "destination", names)] if names else [])],
        [
            action(
                "Bring the destination's standby back, or find out what makes it slow: pg_stat_replication at the "
                "destination shows whether it is connected, and how far behind it is.",
                "SELECT application_name, state, sync_state, flush_lag FROM pg_stat_replication;",
            ),
            clues.at_destination(
                "Where that standby is gone for good, let commits wait for none.",
                "ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf();", SUPERUSER,
            ),
        ],
        is_cause=False, stage=clues.view.stage(ComponentType.APPLY, "APPLY SERVER"),
    )  # fmt: skip


def _group_cures(clues: Clues) -> list[Cure]:
    parameter = clues.facts.parameters.get("group_size")
    if parameter is None or not isinstance(parameter.default, int) or clues.number("group_size") >= parameter.default:
        return []
    text = "Let one commit at the destination take more of the source's transactions."
    return [clues.parameters(text, group_size=parameter.default)]


def _dependencies(clues: Clues, stage: Stage, explained: bool) -> Iterator[Finding]:
    """`explained`: something is known to slow down the one that the others wait for. Without a group that has become
    dependent there is no row that many transactions change."""
    assert stage.mean is not None  # noqa: S101
    share = stage.mean.events.get("DEPENDENCY", 0.0)
    if share <= DEPENDENCY_PERCENT:
        return
    coordinator = next((other for other in clues.view.stages if other.sub_component == "APPLY COORDINATOR"), None)
    evidence = [clues.share(stage, "DEPENDENCY", "dependency")]
    if coordinator is not None:
        if coordinator.loads[0].rates.get("dependent_groups") == 0:
            return
        evidence.append(clues.rate(coordinator.loads[0], "dependent_groups", "DEPENDENT GROUPS", "PER SECOND"))
    yield clues.finding(
        FindingCode.APPLY_DEPENDENCY_CHAIN,
        f"Appliers spend {share:.0f} % of their time waiting until a transaction that touches the same row has "
        "committed. More appliers do not help.",
        evidence,
        [
            *_group_cures(clues),
            action(
                "Split the hot row at the source: several counters instead of one, or fewer updates of it in "
                "larger transactions."
            ),
        ],
        stage=stage, share=_working(stage, share), is_cause=not explained,
    )  # fmt: skip


def _commit_order(clues: Clues, stage: Stage) -> Iterator[Finding]:
    assert stage.mean is not None  # noqa: S101
    share = stage.mean.events.get("COMMIT ORDER", 0.0)
    if share <= clues.event_threshold or clues.value("commit_serialization") != "full":
        return
    yield clues.finding(
        FindingCode.APPLY_COMMIT_ORDER,
        "commit_serialization is full: an executed transaction waits until everything before it has committed.",
        [clues.share(stage, "COMMIT ORDER", "commit_order"), fact("commit_serialization", "stream", "full")],
        [
            clues.parameters(
                "Let transactions that share no key commit in any order; those that do still keep theirs.",
                commit_serialization="dependent_transactions",
            )
        ],
        stage=stage, share=_working(stage, share),
    )  # fmt: skip


def _small_groups(clues: Clues, stage: Stage) -> Iterator[Finding]:
    size = clues.number("group_size")
    cures = _group_cures(clues)
    if size >= GROUPS_SMALL or not cures:
        return
    lcrs, groups = rate_of(stage.loads, "lcrs"), rate_of(stage.loads, "groups")
    evidence = [fact("group_size", "stream", float(size), "LCRS", GROUPS_SMALL)]
    if lcrs is not None and groups:
        evidence.append(fact("MESSAGES PER GROUP", "appliers", round(lcrs / groups, 1), "NUMBER"))
    yield clues.finding(
        FindingCode.APPLY_SMALL_GROUPS,
        "group_size keeps appliers from executing consecutive transactions together.", evidence, cures, stage=stage,
        is_cause=False,
    )  # fmt: skip


def _reads(clues: Clues, stage: Stage) -> Iterator[Finding]:
    facts = clues.facts.destination
    share = facts.waits.share(*READS) if facts else 0.0
    if facts is None or share <= clues.event_threshold:
        return
    yield clues.finding(
        FindingCode.APPLY_DISK_READS,
        "The tables and indexes that the stream changes do not fit into the destination's memory.",
        [
            _seen(facts, "IO:DataFileRead", clues.event_threshold),
            *_io(facts, "relation reads", "relation read_ms", "relation evictions", "relation writes"),
        ],
        [action("Give the destination more shared_buffers and memory, or a faster disk.")],
        stage=stage, share=_working(stage, share),
    )  # fmt: skip


def _data_layer(clues: Clues, stage: Stage) -> Iterator[Finding]:
    """Nothing where the destination is known to have no such extension: then there is nothing to switch on."""
    facts = clues.facts.destination
    is_missing = facts is not None and facts.failure is None and not facts.data_layer_installed
    if is_missing and facts is not None and not facts.data_layer_available:
        return
    create = clues.at_destination(
        "Create the extension, then restart the stream.", "CREATE EXTENSION thalweg_datalayer;", SUPERUSER
    )  # fmt: skip
    if clues.value("data_layer") is False:
        yield clues.finding(
            FindingCode.APPLY_DATA_LAYER_OFF,
            "The parameter data_layer is off: changes are written as SQL.", [fact("data_layer", "stream", "off")],
            [
                clues.parameters(
                    "Write through the extension thalweg_datalayer where it is installed.", data_layer=True
                ),
                *([create] if is_missing else []),
            ],
            is_cause=False, stage=stage,
        )  # fmt: skip
    elif is_missing:
        yield clues.finding(
            FindingCode.APPLY_DATA_LAYER_MISSING,
            "The server has it, the database does not: changes are written as SQL.",
            [fact("pg_available_extensions", clues.view.path.path.destination_db, "thalweg_datalayer")],
            [create],
            is_cause=False, stage=stage,
        )  # fmt: skip


def _parallelism(clues: Clues, stage: Stage) -> Iterator[Finding]:
    """Nothing obstructs the appliers: they are fully busy. If their work has no result, more of them would not help."""
    assert stage.mean is not None  # noqa: S101
    if clues.view.stands_still:
        yield _standstill(clues, stage)
        return
    now, maximum = clues.number("parallelism"), clues.facts.parameters["parallelism"].maximum or 64
    busiest = stage.busiest
    if stage.mean.events.get("DEPENDENCY", 0.0) > DEPENDENCY_PERCENT:
        return
    if busiest is None or stage.mean.idle > ALL_AT_WORK_IDLE or now >= maximum:
        return
    proposed = min(maximum, 2 * now)
    yield clues.finding(
        FindingCode.APPLY_PARALLELISM,
        f"All {now} execute at the destination most of the time, and wait for nothing else.",
        [clues.share(stage, "EXECUTE", "execute"), fact("parallelism", "stream", float(now), "APPLIERS")],
        [clues.parameters("Use more appliers, as long as the destination has processors to spare.",
                          parallelism=proposed)],
        stage=stage, share=50.0,
    )  # fmt: skip


def _standstill(clues: Clues, stage: Stage) -> Finding:
    return clues.finding(
        FindingCode.APPLY_STANDSTILL,
        "No change was applied in the whole span: each applier waits for a statement that has not returned.",
        [clues.share(stage, "EXECUTE", "execute"), fact("LCRS APPLIED", "appliers", 0.0, "PER SECOND")],
        [
            action(
                "Take a snapshot: it watches for a while what the appliers' sessions wait for. At the destination, "
                "pg_stat_activity shows these sessions, and pg_blocking_pids() the ones that block them.",
            )
        ],
        stage=stage,
    )  # fmt: skip
