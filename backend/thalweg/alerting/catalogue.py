"""The rules that are on from the start: what each means, what to do, and its thresholds with their ranges."""

from dataclasses import dataclass
from enum import StrEnum


class AlertRuleId(StrEnum):
    NO_PROGRESS = "no_progress"
    LATENCY = "latency"
    SPILL_DISK = "spill_disk"
    SPILL_LIMIT = "spill_limit"
    STAGING_LIMIT = "staging_limit"
    ARCHIVE_LAG = "archive_lag"
    BACKLOG_FULL = "backlog_full"
    WAL_RETENTION = "wal_retention"
    SLOT_INACTIVE = "slot_inactive"
    SLOT_IDLE = "slot_idle"
    SLOT_LOST = "slot_lost"
    DATABASE_UNREACHABLE = "database_unreachable"
    COMPONENT_ABORTED = "component_aborted"
    TABLE_TROUBLE = "table_trouble"
    ERROR_QUEUE = "error_queue"
    ENGINE_SILENT = "engine_silent"
    CERTIFICATE_EXPIRING = "certificate_expiring"
    TOKEN_EXPIRING = "token_expiring"  # noqa: S105
    HISTORY_UNWRITTEN = "history_unwritten"


class AlertSeverity(StrEnum):
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return list(AlertSeverity).index(self)


class SubjectType(StrEnum):
    """The subject of an alert."""

    STREAM = "stream"
    ENGINE = "engine"
    AUTHORITY = "authority"
    TOKEN = "token"  # noqa: S105
    STORE = "store"


@dataclass(frozen=True)
class Threshold:
    """A number that a user may set. `unit` is bytes, seconds, percent, days or transactions."""

    name: str
    label: str
    unit: str
    default: float
    minimum: float
    maximum: float


@dataclass(frozen=True)
class Rule:
    """`hold_seconds`: how long the condition must hold before the alert fires. `resolve_seconds`: how long it must be
    over before the alert is resolved."""

    id: AlertRuleId
    title: str
    meaning: str
    action: str
    subject: SubjectType
    severity: AlertSeverity
    hold_seconds: float
    resolve_seconds: float
    thresholds: tuple[Threshold, ...] = ()
    tab: str = ""
    """The tab of the stream's page that shows more."""

    def threshold(self, name: str) -> Threshold:
        return next(threshold for threshold in self.thresholds if threshold.name == name)

    @property
    def per_stream(self) -> bool:
        return self.subject is SubjectType.STREAM


GIB = float(1 << 30)
MIB = float(1 << 20)
TIME_TO_FULL = Threshold("seconds_to_full", "Time to full, below", "seconds", 3600, 0, 30 * 86400)

RULES: dict[AlertRuleId, Rule] = {
    rule.id: rule
    for rule in (
        Rule(
            AlertRuleId.NO_PROGRESS, "No progress while WAL grows",
            "The source writes WAL, but a destination of the stream makes no progress: it is falling behind.",
            "On the stream's page, find the component that does not move. The cause may be a lock at the destination, "
            "a destination or an engine that is away, or a waiting transaction. Meanwhile the changes wait in the "
            "destination's backlog on the engine's disk; without one, or once it is full, in the source's WAL.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 60, 10,
            (Threshold("wal_bytes", "WAL written meanwhile, at least", "bytes", MIB, 1, 1 << 50),),
        ),
        Rule(
            AlertRuleId.LATENCY, "Latency above its threshold",
            "Changes reach the destination late: the slowest 1 % of the transactions take longer than the threshold.",
            "On the stream's page, see whether a database or an engine is away. If none is, find the component that "
            "is busy all the time: it is the bottleneck.",
            SubjectType.STREAM, AlertSeverity.WARNING, 60, 60,
            (Threshold("latency_seconds", "Latency p99, above", "seconds", 30, 0.001, 86400),),
        ),
        Rule(
            AlertRuleId.SPILL_DISK, "The disk for spilled changes fills up",
            "The disk where the engine keeps changes that do not fit into memory is nearly full. The engine leaves "
            "256 MiB free for others; once only that is left, it holds its sources back.",
            "Free space on the engine's disk, or speed up the destination whose backlog grows; if it is paused, resume "
            "it.",
            SubjectType.ENGINE, AlertSeverity.CRITICAL, 30, 60,
            (Threshold("free_percent", "Free space, below", "percent", 10, 0, 100), TIME_TO_FULL),
        ),
        Rule(
            AlertRuleId.SPILL_LIMIT, "The stream's spill nears its limit",
            "The stream's changes on the engine's disk are close to the limit that its parameters set. At the limit "
            "the stream holds its source back.",
            "Raise queue_spill_limit_mb or spill_limit_mb if the disk has room, or speed up the destination; if it is "
            "paused, resume it.",
            SubjectType.STREAM, AlertSeverity.WARNING, 30, 60,
            (Threshold("used_percent", "Used of the limit, above", "percent", 80, 0, 100), TIME_TO_FULL),
            "parameters",
        ),
        Rule(
            AlertRuleId.STAGING_LIMIT, "The staged WAL nears its limit",
            "The source's WAL that the stream keeps on the engine's disk, to mine it there, is close to "
            "staging_limit_mb. At the limit nothing more is received, and the source keeps what follows. With an "
            "archive, the staged WAL that the archive has goes first, and the stream goes on.",
            "End the oldest transaction that is open at the source, if the alert's message names one, before the limit "
            "is reached. Speed up the destination that is behind; if it is paused, resume it. Or raise "
            "staging_limit_mb if the engine's disk has room: behind a transaction that has filled it, nothing else "
            "helps.",
            SubjectType.STREAM, AlertSeverity.WARNING, 30, 60,
            (Threshold("used_percent", "Used of the limit, above", "percent", 80, 0, 100), TIME_TO_FULL),
            "parameters",
        ),
        Rule(
            AlertRuleId.ARCHIVE_LAG, "The archive of the WAL lags",
            "The stream mines the source's WAL and reads it from the archive, because the source cannot be read or no "
            "longer has it. The archive does not have the next segment: nothing more reaches any destination.",
            "Check what archives the source's WAL: pg_stat_archiver at the source names the last failure. Check, too, "
            "that the engine's user can read the archive. A quiet source archives a segment only when it is full: set "
            "archive_timeout there. The stream continues by itself once the archive has the segment or the source "
            "can be read.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 0, 10,
            (Threshold("waiting_seconds", "Waited for the next segment, above", "seconds", 300, 0, 30 * 86400),),
        ),
        Rule(
            AlertRuleId.BACKLOG_FULL, "A full backlog holds the stream up",
            "The backlog of a destination that applies nothing has reached its limit. Capture waits for room: nothing "
            "more reaches any destination of the stream, and the source keeps its WAL.",
            "Resume the destination, or remove what keeps it from applying. Or raise its queue_spill_limit_mb if the "
            "engine's disk has room. If the destination is lost, drop it: the others then continue.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 0, 5,
        ),
        Rule(
            AlertRuleId.WAL_RETENTION, "The source keeps a lot of WAL",
            "The stream's replication slot holds back WAL at the source. It fills the source's disk, or the source "
            "drops the slot when max_slot_wal_keep_size is reached: then the stream needs a new copy.",
            "Let the stream catch up: start it, resume its paused destinations, remove what holds it up, or delete it "
            "if it is no longer needed.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 30, 60,
            (Threshold("retained_bytes", "WAL kept, above", "bytes", 10 * GIB, 1, 1 << 60), TIME_TO_FULL),
        ),
        Rule(
            AlertRuleId.SLOT_INACTIVE, "The slot is not in use",
            "The stream is switched on, but its replication slot has no reader: no changes are captured and the "
            "source keeps all its WAL.",
            "Check that the engine runs and reaches the source; the stream's page says why it is not connected.",
            SubjectType.STREAM, AlertSeverity.WARNING, 60, 10,
        ),
        Rule(
            AlertRuleId.SLOT_IDLE, "The slot will be invalidated as idle",
            "The stream's replication slot has no reader. The source invalidates slots that have not been read for "
            "idle_replication_slot_timeout; the stream then needs a new copy.",
            "Start the stream, resume its paused destinations, or remove what keeps it from reading; or set "
            "idle_replication_slot_timeout to 0 at the source and reload its configuration. Delete the stream if it is "
            "no longer needed.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 30, 10,
            (Threshold("seconds_left", "Time left, below", "seconds", 3600, 0, 30 * 86400),),
        ),
        Rule(
            AlertRuleId.SLOT_LOST, "The slot is lost",
            "The stream's replication slot is gone, or the source has invalidated it: it removed WAL that the slot "
            "still needed, or the slot was not read for idle_replication_slot_timeout. The changes since then can no "
            "longer be captured.",
            "First do at the source what the alert's message says, so that it does not happen again. Then delete the "
            "stream and create it again, with a copy into emptied tables. A stream with log mining and an archive "
            "of the WAL continues by itself.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 0, 5,
        ),
        Rule(
            AlertRuleId.DATABASE_UNREACHABLE, "A database cannot be reached",
            "The engine cannot connect to a source or a destination of the stream. Nothing is captured there, or "
            "nothing applied; the engine tries again by itself.",
            "Check that the database's server runs, and that the network lets the engine through. The stream resumes "
            "by itself from where it stopped.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 10, 5,
        ),
        Rule(
            AlertRuleId.COMPONENT_ABORTED, "A component has stopped with an error",
            "The stream, or one of its destinations, stays stopped until its error is cured: the error does not go "
            "away by itself.",
            "Follow the error's cure on the stream's page. For a changed table the cure is a button there; after any "
            "other cure press Retry.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 0, 5,
        ),
        Rule(
            AlertRuleId.TABLE_TROUBLE, "A table has changed at the source",
            "It was dropped, replaced or taken out of the publication, or its partitions changed in ways that WAL "
            "does not show, so the destination's table misses changes. Or it has lost its replica identity, so the "
            "source refuses updates and deletes of it. The stream's other tables keep replicating.",
            "Do what the alert's message says, or open the stream's tables, where the cure is a button or SQL.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 0, 5, tab="tables",
        ),
        Rule(
            AlertRuleId.ERROR_QUEUE, "The error queue is not empty",
            "Transactions could not be applied and are parked at the destination, whole; those that depend on them "
            "wait behind them. The destination lacks their changes.",
            "Open the error queue, remove the cause (often a row that is in the way), then execute them again or "
            "discard them.",
            SubjectType.STREAM, AlertSeverity.WARNING, 0, 5,
            (Threshold("transactions", "Parked transactions, above", "transactions", 0, 0, 1e9),),
            "errors",
        ),
        Rule(
            AlertRuleId.ENGINE_SILENT, "An engine does not answer",
            "The control plane cannot see the engine. Either its streams still run and only their figures are "
            "missing, or the engine is down and none of them runs.",
            "Check that thalwegd runs on its host, what its log says, and that the network lets the control plane "
            "through.",
            SubjectType.ENGINE, AlertSeverity.CRITICAL, 0, 5,
            (Threshold("silent_seconds", "Without an answer for, above", "seconds", 30, 0, 86400),),
        ),
        Rule(
            AlertRuleId.CERTIFICATE_EXPIRING, "A certificate expires",
            "Engines and the control plane trust one another by certificates, and refuse to connect with expired "
            "ones. Engines' identities are renewed automatically at a third of their life: one that was not shows "
            "that the renewal fails.",
            "For an engine's identity: see the engine's message on the engines page. For a certificate of your own: "
            "give thalwegd a new one with --tls-cert and --tls-key.",
            SubjectType.ENGINE, AlertSeverity.WARNING, 0, 0,
            (Threshold("days", "Expires within", "days", 14, 0, 365),),
        ),
        Rule(
            AlertRuleId.TOKEN_EXPIRING, "An API token expires",
            "Clients that use the token are locked out once it has expired.",
            "Create a new token in the settings, give it to its user, then revoke the old one.",
            SubjectType.TOKEN, AlertSeverity.WARNING, 0, 0,
            (Threshold("days", "Expires within", "days", 7, 0, 365),),
        ),
        Rule(
            AlertRuleId.HISTORY_UNWRITTEN, "History cannot be written",
            "The control plane's store accepts no samples: its disk is full, or it refuses them for another reason. "
            "Replication does not depend on it. Engines keep their last minutes, and history receives those once "
            "the store accepts samples again; older ones are lost.",
            "Free space on the store's disk; its log, and the collector's, name the reason.",
            SubjectType.STORE, AlertSeverity.CRITICAL, 0, 5,
            (Threshold("failing_seconds", "Without a write for, above", "seconds", 15, 0, 86400),),
        ),
    )
}  # fmt: skip
