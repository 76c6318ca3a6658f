"""The rules that are on from the start: what each means, what to do, and its thresholds with their ranges."""

from dataclasses import dataclass
from enum import StrEnum


class RuleId(StrEnum):
    NO_PROGRESS = "no_progress"
    LATENCY = "latency"
    SPILL_DISK = "spill_disk"
    SPILL_LIMIT = "spill_limit"
    WAL_RETENTION = "wal_retention"
    SLOT_INACTIVE = "slot_inactive"
    SLOT_IDLE = "slot_idle"
    SLOT_LOST = "slot_lost"
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

    id: RuleId
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

RULES: dict[RuleId, Rule] = {
    rule.id: rule
    for rule in (
        Rule(
            RuleId.NO_PROGRESS, "No progress while WAL grows",
            "The source writes WAL, and the stream has not got any further: its destination falls behind.",
            "Look at the component that does not move on the stream's page: a lock at the destination, a destination "
            "or an engine that is away, or a transaction that waits. The source keeps its WAL meanwhile.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 60, 10,
            (Threshold("wal_bytes", "WAL written meanwhile, at least", "bytes", MIB, 1, 1 << 50),),
        ),
        Rule(
            RuleId.LATENCY, "Latency above its threshold",
            "Changes reach the destination later than they should: the slowest hundredth of the transactions needs "
            "longer than the threshold.",
            "See on the stream's page which component is busy all the time: that is the bottleneck.",
            SubjectType.STREAM, AlertSeverity.WARNING, 60, 60,
            (Threshold("latency_seconds", "Latency p99, above", "seconds", 30, 0.001, 86400),),
        ),
        Rule(
            RuleId.SPILL_DISK, "The disk for spilled changes fills up",
            "The disk on which the engine keeps what does not fit into memory is nearly full. It leaves 256 MiB to "
            "others; when no more is free, it holds its sources back.",
            "Free space on the engine's disk, or speed up the destination whose backlog grows.",
            SubjectType.ENGINE, AlertSeverity.CRITICAL, 30, 60,
            (Threshold("free_percent", "Free space, below", "percent", 10, 0, 100), TIME_TO_FULL),
        ),
        Rule(
            RuleId.SPILL_LIMIT, "The stream's spill nears its limit",
            "The changes that the stream has on the engine's disk come near the limit that its parameters set. At the "
            "limit the stream holds its source back.",
            "Raise queue_spill_limit_mb or spill_limit_mb if the disk has room, or speed up the destination.",
            SubjectType.STREAM, AlertSeverity.WARNING, 30, 60,
            (Threshold("used_percent", "Used of the limit, above", "percent", 80, 0, 100), TIME_TO_FULL),
            "parameters",
        ),
        Rule(
            RuleId.WAL_RETENTION, "The source keeps much WAL",
            "The stream's replication slot holds back WAL at the source. It fills the source's disk, or the source "
            "drops the slot when max_slot_wal_keep_size is reached: then the stream needs a new copy.",
            "Let the stream catch up: start it, remove what holds it up, or delete it if it is not needed any more.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 30, 60,
            (Threshold("retained_bytes", "WAL kept, above", "bytes", 10 * GIB, 1, 1 << 60), TIME_TO_FULL),
        ),
        Rule(
            RuleId.SLOT_INACTIVE, "The slot is not in use",
            "The stream is switched on, but nobody reads from its replication slot: no changes are captured and the "
            "source keeps all its WAL.",
            "Check that the engine runs and reaches the source; the stream's page says why it is not connected.",
            SubjectType.STREAM, AlertSeverity.WARNING, 60, 10,
        ),
        Rule(
            RuleId.SLOT_IDLE, "The slot will be given up as idle",
            "Nobody reads from the stream's replication slot, and the source gives up slots that nobody has read from "
            "for idle_replication_slot_timeout: then the stream needs a new copy.",
            "Start the stream, or mend what keeps it from reading; or set idle_replication_slot_timeout at the source "
            "to 0 and reload it. Delete the stream if it is not needed any more.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 30, 10,
            (Threshold("seconds_left", "Time left, below", "seconds", 3600, 0, 30 * 86400),),
        ),
        Rule(
            RuleId.SLOT_LOST, "The slot is lost",
            "The stream's replication slot is gone, or the source has given it up: it removed WAL that the slot still "
            "needed, or nobody read from it for idle_replication_slot_timeout. The changes since cannot be captured "
            "any more.",
            "Delete the stream and create it again: it needs a new initial copy. Before that, do at the source what "
            "the alert's message says, so that it does not come again.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 0, 5,
        ),
        Rule(
            RuleId.COMPONENT_ABORTED, "A component has stopped with an error",
            "What has stopped, a stream or one of its destinations, does not go on until somebody acts: the error does "
            "not heal by itself.",
            "Do what the error says, on the stream's page. What has become of a table has its cure there as a button; "
            "after anything else press Retry.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 0, 5,
        ),
        Rule(
            RuleId.TABLE_TROUBLE, "A table is not what it was at the source",
            "It was dropped, replaced, taken out of the publication, or its partitions changed in ways that no WAL "
            "tells: the destination's table misses changes. The stream's other tables go on.",
            "Open the stream's tables: the table's alert has the cure as a button.",
            SubjectType.STREAM, AlertSeverity.CRITICAL, 0, 5, tab="tables",
        ),
        Rule(
            RuleId.ERROR_QUEUE, "The error queue is not empty",
            "Transactions could not be applied and are parked at the destination, whole; those that depend on them "
            "wait behind them. The destination differs from the source by them.",
            "Open the error queue, remove the cause (often a row that is in the way), then execute them again or "
            "discard them.",
            SubjectType.STREAM, AlertSeverity.WARNING, 0, 5,
            (Threshold("transactions", "Parked transactions, above", "transactions", 0, 0, 1e9),),
            "errors",
        ),
        Rule(
            RuleId.ENGINE_SILENT, "An engine does not answer",
            "The control plane cannot see the engine. Its streams may go on running: only their picture is missing. Or "
            "the engine is down, and none of them runs.",
            "Look whether thalwegd runs on its host, what its log says, and whether the network lets the control plane "
            "through.",
            SubjectType.ENGINE, AlertSeverity.CRITICAL, 0, 5,
            (Threshold("silent_seconds", "Without an answer for, above", "seconds", 30, 0, 86400),),
        ),
        Rule(
            RuleId.CERTIFICATE_EXPIRING, "A certificate expires",
            "Engines trust each other, and the control plane them, by certificates. With an expired one they refuse to "
            "connect. Engines' identities are renewed by themselves at a third of their life: one that was not shows "
            "that the renewal fails.",
            "For an engine's identity: see the engine's message on the engines page. For a certificate of your own: "
            "give thalwegd a new one with --tls-cert and --tls-key.",
            SubjectType.ENGINE, AlertSeverity.WARNING, 0, 0,
            (Threshold("days", "Expires within", "days", 14, 0, 365),),
        ),
        Rule(
            RuleId.TOKEN_EXPIRING, "An API token expires",
            "Whatever uses the token is locked out when it has expired.",
            "Create a new token in the settings, give it to its user, then revoke the old one.",
            SubjectType.TOKEN, AlertSeverity.WARNING, 0, 0,
            (Threshold("days", "Expires within", "days", 7, 0, 365),),
        ),
        Rule(
            RuleId.HISTORY_UNWRITTEN, "History cannot be written",
            "The control plane's store takes no samples: its disk is full, or it refuses for another reason. Streams "
            "go on. Engines keep their last minutes themselves, and history gets these once the store takes them; "
            "older ones are lost.",
            "Free space on the store's disk; its log, and the collector's, name the reason.",
            SubjectType.STORE, AlertSeverity.CRITICAL, 0, 5,
            (Threshold("failing_seconds", "Without a write for, above", "seconds", 15, 0, 86400),),
        ),
    )
}  # fmt: skip
