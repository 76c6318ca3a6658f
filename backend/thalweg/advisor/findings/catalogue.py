"""The catalogue of findings. The advisor takes titles, severities and general cures from it, and the reference
docs/reference/findings.md is written from it (backend/scripts/export_findings.py)."""

from dataclasses import dataclass
from enum import StrEnum

from thalweg.advisor.finding import FindingSeverity
from thalweg.advisor.findings.codes import FindingCode

CRITICAL, WARNING = FindingSeverity.CRITICAL, FindingSeverity.WARNING
ADVICE, INFORMATION = FindingSeverity.ADVICE, FindingSeverity.INFORMATION


class FindingPlace(StrEnum):
    """The part of a path that a finding is about."""

    STREAM = "stream"
    ENGINE = "engine"
    SOURCE = "source"
    CAPTURE = "capture"
    PROPAGATION = "propagation"
    APPLY = "apply"
    DESTINATION = "destination"


@dataclass(frozen=True)
class FindingKind:
    """`title` is a finding's own, unless that names a table, a session or a server. `cure` is the general one: a
    finding's cures have its figures and its SQL. `severities` begins with the one that is meant where a rule gives
    none. `guide` is a page below docs/, without its ending."""

    place: FindingPlace
    severities: tuple[FindingSeverity, ...]
    title: str
    meaning: str
    cure: str
    guide: str = "guides/advisor"


_RESUMES = "the stream resumes by itself from where it stopped."

CATALOGUE: dict[FindingCode, FindingKind] = {
    # --- the whole stream
    FindingCode.ABORTED: FindingKind(
        FindingPlace.STREAM, (CRITICAL,), "The stream has stopped with an error",
        "An error that no retry ends has stopped the stream or the destination.",
        "Remove the error's cause, then retry the stream.", "reference/errors",
    ),
    FindingCode.START_BLOCKED: FindingKind(
        FindingPlace.STREAM, (CRITICAL,), "A session keeps the path from starting",
        "The start waits at the source or the destination behind a session or a prepared transaction.",
        "Let the session commit, or end it; commit or roll back the prepared transaction. The path then starts by "
        "itself.",
    ),
    # --- engines
    FindingCode.ENGINE_DOWN: FindingKind(
        FindingPlace.ENGINE, (CRITICAL,), "An engine does not answer",
        "The control plane does not reach an engine of the path.",
        "Start thalwegd on its host, and check that the control plane reaches its address.", "guides/upkeep",
    ),
    FindingCode.ENGINE_TROUBLE: FindingKind(
        FindingPlace.ENGINE, (CRITICAL,), "The problem is in the engine; the databases are fine",
        "The engine cannot do its own work: a disk, a file or a limit at its host is in the way.",
        "Look at the engine's log and at its host: disk, memory, limits.", "guides/upkeep",
    ),
    # --- the source
    FindingCode.SOURCE_DOWN: FindingKind(
        FindingPlace.SOURCE, (CRITICAL,), "The source delivers no changes",
        "The source does not answer, or refuses the engine.", f"Bring the source back; {_RESUMES}",
    ),
    FindingCode.SOURCE_IDLE: FindingKind(
        FindingPlace.SOURCE, (INFORMATION,), "The source is idle", "There is nothing to replicate.",
        "No action is needed.",
    ),
    FindingCode.WAL_IMAGES: FindingKind(
        FindingPlace.SOURCE, (WARNING, INFORMATION), "Most of the source's WAL is images of pages",
        "Log mining reads WAL of which more than half is images of whole pages. It is a warning where capture limits "
        "the path.",
        "Let the source compress the images, and make checkpoints more rarely.", "guides/log-mining",
    ),
    FindingCode.ARCHIVE_LAGS: FindingKind(
        FindingPlace.SOURCE, (WARNING, CRITICAL), "The archive of the source's WAL lags",
        "Log mining waits for a segment that the archive lacks. It is critical where that holds the path up.",
        "Check what archives the source's WAL, and that the engine's user can read the archive.", "guides/log-mining",
    ),
    # --- capture
    FindingCode.CAPTURE_CPU: FindingKind(
        FindingPlace.CAPTURE, (WARNING,), "Capture is fully busy",
        "The one thread that turns the source's messages into LCRs, or mines its WAL, limits the path.",
        "Make the conditions of the rules cheap, or split the stream's tables over two streams.", "guides/rules",
    ),
    FindingCode.CAPTURE_DECODE: FindingKind(
        FindingPlace.CAPTURE, (WARNING,), "The source is slow in decoding its WAL",
        "Capture waits for the source, whose walsender decodes.",
        "Let the source decode in more memory if it spills, install the output plugin thalweg_output, or move other "
        "load off the source.",
    ),
    FindingCode.CAPTURE_NETWORK: FindingKind(
        FindingPlace.CAPTURE, (WARNING,), "The network from the source to the engine is slow",
        "The source's walsender waits until it may send more.",
        "Run the capturing engine beside the source, and propagate from there, compressed.", "guides/two-engines",
    ),
    FindingCode.CAPTURE_SHIPMENT: FindingKind(
        FindingPlace.CAPTURE, (WARNING,), "The source's WAL arrives slowly",
        "Log mining waits for WAL that the source has written and that has not arrived yet.",
        "Look for what slows the source's disk, the network to the engine, or the disk of the engine's host.",
        "guides/log-mining",
    ),
    FindingCode.STAGING_FULL: FindingKind(
        FindingPlace.CAPTURE, (WARNING, CRITICAL), "The staging of WAL is full",
        "Log mining receives nothing more before a part of the staged WAL can go. It is critical where that holds the "
        "path up.",
        "End the transaction that is open at the source, or resume or mend the destination, that keeps the WAL; or "
        "raise staging_limit_mb.", "guides/log-mining",
    ),
    # --- propagation
    FindingCode.LINK_DOWN: FindingKind(
        FindingPlace.PROPAGATION, (CRITICAL,), "The two engines cannot reach each other",
        "The sending engine has no connection to the receiving one.",
        "Check the network between the engines, and that the receiving one runs.", "guides/two-engines",
    ),
    FindingCode.NETWORK_LIMIT: FindingKind(
        FindingPlace.PROPAGATION, (WARNING,), "The network between the engines is the limit",
        "The sender waits for the network, which takes no more.",
        "Compress, give the two engines more bandwidth, or leave out tables and columns that are not needed.",
        "guides/two-engines",
    ),
    FindingCode.NETWORK_WINDOW: FindingKind(
        FindingPlace.PROPAGATION, (WARNING,), "The window is too small for this network",
        "All of propagation_window_mb is on the way, and the network would take more.",
        "Raise propagation_window_mb.", "guides/two-engines",
    ),
    FindingCode.SENDER_CPU: FindingKind(
        FindingPlace.PROPAGATION, (WARNING,), "The sender is fully busy",
        "The thread that sends to the other engine limits the path.",
        "Compress with less effort, give its host more processor time, or split the stream's tables over two streams.",
        "guides/two-engines",
    ),
    FindingCode.RECEIVER_CPU: FindingKind(
        FindingPlace.PROPAGATION, (WARNING,), "The receiver is fully busy",
        "The thread that receives from the other engine limits the path.",
        "Compress with less effort, give its host more processor time, or split the stream's tables over two streams.",
        "guides/two-engines",
    ),
    # --- apply
    FindingCode.PARKING: FindingKind(
        FindingPlace.APPLY, (CRITICAL,), "Nothing arrives: transactions are parked in the error queue",
        "Every transaction that comes fails, or waits for one that failed.",
        "Open the error queue, remove what keeps its first transactions from being applied, then execute them again: "
        "the ones behind them follow.", "guides/error-queue",
    ),
    FindingCode.APPLY_STANDSTILL: FindingKind(
        FindingPlace.APPLY, (CRITICAL,), "The appliers are busy, but apply nothing",
        "Each applier waits for a statement that does not return, and nothing is known to hold it up.",
        "Take a snapshot of the advisor, which watches what the appliers' sessions wait for.",
    ),
    FindingCode.APPLY_LOCK_CONTENTION: FindingKind(
        FindingPlace.APPLY, (CRITICAL,), "A session holds a lock that the appliers need",
        "Sessions of others at the destination block the appliers.",
        "End the session that holds the lock, or let it commit; then make its application commit sooner.",
    ),
    FindingCode.APPLY_MISSING_INDEX: FindingKind(
        FindingPlace.APPLY, (CRITICAL,), "A table has no index for its key at the destination",
        "Each update and delete reads the whole table to find its row.",
        "Create an index on the key at the destination; the advisor can do it.",
    ),
    FindingCode.APPLY_NETWORK: FindingKind(
        FindingPlace.APPLY, (CRITICAL,), "The network to the destination is slow: appliers wait for its answers",
        "Appliers wait although no session at the destination works for them, and a round trip takes 2 ms or more.",
        "Let an engine near the destination apply; until then, use more appliers or larger groups.",
        "guides/two-engines",
    ),
    FindingCode.APPLY_TRIGGER: FindingKind(
        FindingPlace.APPLY, (WARNING,), "A trigger fires for every change that is applied",
        "A trigger of the destination is enabled for replicas, and runs within the appliers' statements.",
        "Let the trigger fire for local changes only.",
    ),
    FindingCode.APPLY_DEPENDENCY_CHAIN: FindingKind(
        FindingPlace.APPLY, (WARNING,), "Transactions wait for one another: they change the same rows",
        "Appliers wait until a transaction that touches the same row has committed. More appliers do not help.",
        "Split the hot row at the source, or let larger groups be executed together.",
    ),
    FindingCode.APPLY_COMMIT_ORDER: FindingKind(
        FindingPlace.APPLY, (WARNING,), "Transactions wait for their turn to commit",
        "commit_serialization is full, and executed transactions wait for those before them.",
        "Set commit_serialization to dependent_transactions.",
    ),
    FindingCode.APPLY_SLOW_FLUSH: FindingKind(
        FindingPlace.APPLY, (WARNING,), "The destination's disk is slow in writing WAL",
        "Appliers wait until the destination's WAL is written, although they commit asynchronously.",
        "Put the destination's pg_wal on a faster disk; until then, give it more WAL buffers.",
    ),
    FindingCode.APPLY_DISK_READS: FindingKind(
        FindingPlace.APPLY, (WARNING,), "The destination reads from disk to find rows",
        "The tables and indexes that the stream changes do not fit into the destination's memory.",
        "Give the destination more shared_buffers and memory, or a faster disk.",
    ),
    FindingCode.APPLY_STANDBY: FindingKind(
        FindingPlace.APPLY, (WARNING,), "The destination's standby confirms the stream's progress slowly",
        "The session that records progress waits for a synchronous standby, and the source keeps its WAL meanwhile.",
        "Bring the standby back, or find out what makes it slow.",
    ),
    FindingCode.APPLY_SPILL: FindingKind(
        FindingPlace.APPLY, (ADVICE, WARNING), "Apply writes transactions to the engine's disk",
        "Transactions are too large or too old for memory. It is a warning where the disk limits the path.",
        "Let larger transactions stay in memory, or use a faster disk for the engine's state directory.",
    ),
    FindingCode.APPLY_SMALL_GROUPS: FindingKind(
        FindingPlace.APPLY, (WARNING,), "The source's transactions are executed in small groups",
        "group_size keeps appliers from executing consecutive transactions together.", "Raise group_size.",
    ),
    FindingCode.APPLY_TINY_TRANSACTIONS: FindingKind(
        FindingPlace.APPLY, (WARNING,), "Very many tiny transactions",
        "The reader or the coordinator works for each transaction, whatever is in it.",
        "Commit more changes at a time at the source, or split the stream's tables over two streams.",
    ),
    FindingCode.APPLY_COORDINATOR_CPU: FindingKind(
        FindingPlace.APPLY, (WARNING,), "The coordinator is fully busy",
        "The one thread that works out the dependencies of transactions limits the path.",
        "Give the engine's host more processor time, or split the stream's tables over two streams.",
    ),
    FindingCode.APPLY_READER_CPU: FindingKind(
        FindingPlace.APPLY, (WARNING,), "The reader is fully busy",
        "The one thread that assembles transactions and computes their keys limits the path.",
        "Split the stream's tables over two streams, each with a reader of its own.",
    ),
    FindingCode.APPLY_PARALLELISM: FindingKind(
        FindingPlace.APPLY, (ADVICE,), "The appliers are fully busy",
        "All of them execute at the destination most of the time, and wait for nothing else.",
        "Raise parallelism, as long as the destination has processors to spare.",
    ),
    FindingCode.APPLY_DATA_LAYER_OFF: FindingKind(
        FindingPlace.APPLY, (ADVICE,), "The fast write path into the destination is switched off",
        "The parameter data_layer is off: changes are written as SQL.",
        "Switch data_layer on, and create the extension thalweg_datalayer if the destination lacks it.",
    ),
    FindingCode.APPLY_DATA_LAYER_MISSING: FindingKind(
        FindingPlace.APPLY, (ADVICE,), "The destination could use the extension thalweg_datalayer",
        "The destination's server has the extension, its database does not.",
        "Create the extension, then restart the stream.",
    ),
    # --- the destination
    FindingCode.DESTINATION_DOWN: FindingKind(
        FindingPlace.DESTINATION, (CRITICAL,), "The destination accepts no changes",
        "The destination does not answer, or refuses the engine.", f"Bring the destination back; {_RESUMES}",
    ),
    FindingCode.FULL_BACKLOG: FindingKind(
        FindingPlace.DESTINATION, (CRITICAL,), "The full backlog of the destination holds the path up",
        "Nothing more is captured until the path's own destination has taken something from its backlog.",
        "Mend or resume the destination, raise its queue_spill_limit_mb, or drop it from the stream.",
        "guides/several-destinations",
    ),
    FindingCode.FULL_BACKLOG_ELSEWHERE: FindingKind(
        FindingPlace.DESTINATION, (CRITICAL,), "The full backlog of another destination holds the path up",
        "Nothing more is captured until another destination of the stream has taken something from its backlog.",
        "Mend or resume that destination, raise its queue_spill_limit_mb, or drop it from the stream.",
        "guides/several-destinations",
    ),
}  # fmt: skip
