"""Causes that make one stage of a path slow, each with the finding that the advisor must then report."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from tests.rig import trouble
from tests.rig.bench import Bench

Meanwhile = Callable[[Bench], AbstractContextManager[None]]


def nothing(_: Bench) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True)
class Cause:
    """`prepare` comes before the stream; `staged` writes changes while it is stopped; `meanwhile` lasts while it is
    analysed. `stage` (or `also`) and `code` are what the advisor must name; a stage of None: no bottleneck."""

    name: str
    stage: str | None
    code: str
    how_it_is_made: str
    """In words, for the table."""
    also: str | None = None
    """A stage that the cause loads as heavily as `stage`: either may be the slower one in a run."""
    verdict: str = "BOTTLENECK"
    parameters: dict[str, Any] = field(default_factory=dict)
    condition: str | None = None
    """Of the one rule of the stream's table."""
    prepare: Callable[[Bench], None] = lambda _: None
    staged: Callable[[Bench], None] | None = None
    meanwhile: Meanwhile = nothing
    mined: bool = False
    """The source's log is mined."""
    archives: dict[str, Any] = field(default_factory=dict)
    """Of the source's WAL, as the administrator of the engine's host names them."""
    two_engines: bool = False
    bytes_per_second: int | None = None
    """Of the link between two engines."""
    destination_delay: float = 0.0
    """Of everything between the engine and the destination, each way, in seconds."""
    processor_share: float | None = None
    """The applying engine's share of a processor, 0 to 1."""
    spill_seconds: float = 0.0
    """The additional time of each write of that engine to its disk."""
    seconds: float = 6.0
    """Under the trouble before it is analysed."""


APPLY, READER, COORDINATOR = "APPLY SERVER", "APPLY READER", "APPLY COORDINATOR"

CAUSES = [
    Cause(
        "missing index", APPLY, "apply_missing_index",
        "a table of 150 000 rows without a key (replica identity full) and without an index at the destination",
        staged=trouble.updates(rows=200_000, per_transaction=10),
        prepare=trouble.rows_without_key(150_000), meanwhile=trouble.without_index,
    ),
    Cause(
        "trigger", APPLY, "apply_trigger", "a row trigger ENABLE ALWAYS that computes for about 0.5 ms",
        staged=trouble.updates(rows=60_000, per_transaction=10),
        prepare=trouble.rows(60_000), meanwhile=trouble.with_trigger,
    ),
    Cause(
        "missing index behind waits", APPLY, "apply_missing_index",
        "the same table, group_size 20, eight appliers, of which seven wait for the one that looks for its rows",
        parameters={"group_size": 20, "parallelism": 8}, staged=trouble.updates(rows=200_000, per_transaction=10),
        prepare=trouble.rows_without_key(150_000), meanwhile=trouble.without_index,
    ),
    Cause(
        "trigger behind waits", APPLY, "apply_trigger",
        "the same trigger; all transactions update the same 100 rows, group_size 100, eight appliers",
        parameters={"group_size": 100, "parallelism": 8}, staged=trouble.updates(rows=60_000, per_transaction=10),
        prepare=trouble.rows(100), meanwhile=trouble.with_trigger,
    ),
    Cause(
        "lock contention", APPLY, "apply_lock_contention", "another session has updated a row and does not commit",
        staged=trouble.updates(rows=60_000, per_transaction=10),
        prepare=trouble.rows(60_000), meanwhile=trouble.with_open_transaction,
    ),
    Cause(
        "hot row", APPLY, "apply_dependency_chain",
        "150 000 transactions update one row, each executed by itself (group_size 1), four appliers",
        parameters={"group_size": 1, "parallelism": 4}, prepare=trouble.rows(1000), staged=trouble.hot_row(150_000),
    ),
    Cause(
        "commit order", APPLY, "apply_commit_order",
        "commit_serialization full, eight appliers; each third transaction updates a row with a slow trigger",
        parameters={"group_size": 1, "parallelism": 8, "commit_serialization": "full"}, prepare=trouble.rows(60_000),
        staged=trouble.updates(rows=60_000, per_transaction=1), meanwhile=trouble.with_uneven_trigger,
    ),
    Cause(
        "tiny transactions", COORDINATOR, "apply_tiny_transactions",
        "300 000 transactions of one row each; the engine gets 4 % of the time",
        prepare=trouble.rows(200_000), staged=trouble.updates(rows=300_000, per_transaction=1), processor_share=0.04,
        also=READER,
    ),
    Cause(
        "spilling", READER, "apply_spill",
        "transactions of 200 000 rows, txn_lcr_spill_threshold 100; writes to the engine's disk take 20 ms more",
        parameters={"txn_lcr_spill_threshold": 100}, prepare=trouble.rows(1000),
        staged=trouble.large_transactions(2, 200_000), spill_seconds=0.02,
    ),
    Cause(
        "slow fsync", APPLY, "apply_slow_flush",
        "fsync and fdatasync of the destination take 200 ms more; 120 000 rows of 1.7 kB are inserted",
        prepare=trouble.rows(1000), staged=trouble.wide_rows(120_000), meanwhile=trouble.with_slow_fsync,
    ),
    Cause(
        "expensive decode", "CAPTURE", "capture_decode",
        "the source decodes 3 000 000 changes of a table that nobody wants, with logical_decoding_work_mem 64 kB",
        prepare=trouble.unwanted_table, staged=trouble.unwanted_changes(3_000_000), seconds=3,
    ),
    Cause(
        "rule evaluation", "CAPTURE", "capture_cpu",
        "a rule whose condition searches texts of 1.7 kB for 200 words; 120 000 such rows are inserted",
        prepare=trouble.rows(1000), staged=trouble.wide_rows(120_000),
        condition=" AND ".join(f"filler NOT LIKE '%word {number}%'" for number in range(200)),
    ),
    Cause(
        "network limit", "PROPAGATION SENDER", "network_limit", "a link of 1 MB/s between the two engines",
        prepare=trouble.rows(1000), staged=trouble.large_transactions(200, 2000), two_engines=True,
        bytes_per_second=1_000_000,
    ),
    Cause(
        "far destination", APPLY, "apply_network",
        "traffic to and from the destination is 50 ms late each way, group_size 20",
        parameters={"group_size": 20}, prepare=trouble.rows(60_000),
        staged=trouble.updates(rows=60_000, per_transaction=10), destination_delay=0.05,
    ),
    Cause(
        "slow receiver", "PROPAGATION RECEIVER", "receiver_cpu",
        "the receiving engine gets 2 % of the time; 120 000 rows of 1.7 kB come compressed with zstd",
        parameters={"propagation_compression": "zstd", "propagation_window_mb": 8}, prepare=trouble.rows(1000),
        staged=trouble.wide_rows(120_000), two_engines=True, processor_share=0.02,
    ),
    Cause(
        "idle source", None, "source_idle", "nothing is written at the source", verdict="SOURCE IDLE",
        prepare=trouble.rows(1000),
    ),
    Cause(
        "destination down", None, "destination_down", "the destination's server is stopped",
        verdict="DESTINATION DOWN", prepare=trouble.rows(1000), meanwhile=trouble.with_destination_down,
    ),
    Cause(
        "staging full", None, "staging_full",
        "log mining with staging_limit_mb 64; a session at the source has inserted a row and does not commit while "
        "others write 200 MB of WAL",
        verdict="HELD UP", mined=True, parameters={"staging_limit_mb": 64}, prepare=trouble.rows(1000),
        meanwhile=trouble.with_open_transaction_at_source, seconds=10,
    ),
    Cause(
        "archive lags", None, "archive_lags",
        "log mining whose slot was dropped and whose WAL the source has removed; the command of its archive finds "
        "nothing",
        verdict="HELD UP", mined=True, parameters={"wal_archive": "main"}, archives={"main": {"command": "exit 1"}},
        prepare=trouble.rows(1000), meanwhile=trouble.with_forgotten_wal, seconds=10,
    ),
    Cause(
        "images after checkpoints", "WAL SHIPMENT", "wal_images",
        "log mining of 2 GB of WAL: updates of one row in each of 20 000 pages, a checkpoint before each of 12 rounds",
        mined=True, prepare=trouble.many_pages, staged=trouble.updates_after_checkpoints(12), seconds=3,
        also="CAPTURE",
    ),
]  # fmt: skip
