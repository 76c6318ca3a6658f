"""Log mining: the staged WAL, the archive beside the source, and images of pages in the WAL."""

from collections.abc import Iterator

from thalweg.advisor.finding import Cure, Evidence, Finding, FindingSeverity
from thalweg.advisor.findings.clues import SUPERUSER, Clues, action, fact
from thalweg.advisor.findings.codes import FindingCode
from thalweg.advisor.load import Load
from thalweg.advisor.schemas import Verdict
from thalweg.advisor.shipping import lacks_archived_wal, stands_at_archive, stands_at_staging
from thalweg.kernel.words import duration, size
from thalweg.live.schemas import ComponentType
from thalweg.live.staging import BUILDER, StagedWal

IMAGES_MOST = 50.0
IMAGES_RATE_MIN = 1e6
"""Bytes of WAL per second: of less, nobody saves anything."""
SHOWS_OPEN = """SELECT pid, usename, application_name, state, xact_start, backend_xid
  FROM pg_stat_activity WHERE backend_xid IS NOT NULL ORDER BY age(backend_xid) DESC;
SELECT gid, prepared, owner, database FROM pg_prepared_xacts ORDER BY age(transaction) DESC;"""


def mining(clues: Clues) -> Iterator[Finding]:
    staged = clues.view.path.staged_wal
    if staged is None:
        return
    if staged.is_full:
        yield _full(clues, staged)
    if lacks_archived_wal(clues.view.path):
        yield _archive(clues, staged)
    images = image_percent(clues)
    if images is not None and images > IMAGES_MOST:
        yield _images(clues, images)


def _is_held_up(clues: Clues) -> bool:
    return clues.view.bottleneck.verdict is Verdict.HELD_UP


# --- staging


def _full(clues: Clues, staged: StagedWal) -> Finding:
    """Where something else limits, it is only what comes with it."""
    stands = _is_held_up(clues) and stands_at_staging(clues.view.path)
    holder = staged.holder_in_words(*clues.view.path.behind)
    evidence = [
        fact("STAGED WAL", "shipment", staged.used_bytes, "BYTES", staged.limit_bytes),
        fact("WAL SINCE THE OLDEST OPEN TRANSACTION", "builder", staged.open_bytes, "BYTES"),
    ]
    cures: list[Cure] = []
    if staged.is_held_by_transaction:
        holder = _name_transaction(clues, evidence) or holder
        cures += _ends_transaction(clues)
    elif clues.view.path.behind[0]:
        cures.append(action("Resume the destination that is paused."))
    else:
        cures.append(action("Remove what keeps the destination from applying, or speed it up."))
    cures.append(action(_raises(staged)))
    return clues.finding(
        FindingCode.STAGING_FULL,
        f"Log mining receives nothing more before a part of the staged WAL can go, and the source keeps what follows. "
        f"{holder}".rstrip(),
        evidence, cures, title="The full staging of WAL holds the path up" if stands else None,
        severity=FindingSeverity.CRITICAL if stands else FindingSeverity.WARNING, is_cause=stands,
    )  # fmt: skip


def _raises(staged: StagedWal) -> str:
    """The limit is in the way of the transaction's end, too: it lies behind what is staged."""
    raises = f"Raise staging_limit_mb ({size(staged.limit_bytes)}) if the disk of the engine has room"
    if staged.is_held_by_transaction:
        return f"{raises}: log mining learns only from the WAL behind the limit that the transaction has ended."
    return f"{raises}."


def _name_transaction(clues: Clues, evidence: list[Evidence]) -> str | None:
    facts = clues.facts.source
    if facts is None:
        return None
    database = clues.view.path.path.source_db
    if facts.oldest_open is not None:
        evidence.append(fact("OLDEST OPEN TRANSACTION", database, facts.oldest_open.description))
        open_for = facts.oldest_open.seconds
        since = f" for {duration(open_for)}" if open_for is not None else ""
        return f"The transaction of {facts.oldest_open.called} at {database}, open{since}, needs it."
    if facts.oldest_prepared is not None:
        evidence.append(fact("OLDEST OPEN TRANSACTION", database, f"prepared as {facts.oldest_prepared}"))
        return f"The transaction at {database} that is prepared as {facts.oldest_prepared} needs it."
    return None


def _ends_transaction(clues: Clues) -> Iterator[Cure]:
    facts = clues.facts.source
    if facts is not None and facts.oldest_open is not None:
        yield clues.at_source(
            "Let the transaction commit, or end its session.",
            f"SELECT pg_terminate_backend({facts.oldest_open.pid});", "the same user as the session's, or a superuser",
        )  # fmt: skip
    elif facts is not None and facts.oldest_prepared is not None:
        yield action("Commit or roll back the prepared transaction, with COMMIT PREPARED or ROLLBACK PREPARED.")
    else:
        yield action("End the transaction that has been open for longest at the source.", SHOWS_OPEN)


# --- the archive


def _archive(clues: Clues, staged: StagedWal) -> Finding:
    stands = _is_held_up(clues) and stands_at_archive(clues.view.path)
    name = clues.facts.archive or ""
    evidence = [
        fact("WAITED FOR THE NEXT SEGMENT", "shipment", round(staged.archive_wait_seconds, 1), "SECONDS"),
        fact("wal_archive", "stream", name),
    ]
    message = clues.view.path.stream.condition.error_message
    if message is not None:
        evidence.append(fact("STATUS", clues.view.path.path.stream_name, message))
    return clues.finding(
        FindingCode.ARCHIVE_LAGS,
        f"Log mining reads the source's WAL from the archive {name}, because the source cannot be read or no longer "
        f"has it. For {duration(staged.archive_wait_seconds)} the archive has lacked the next segment.",
        evidence,
        [
            action("Check what archives the source's WAL: failed_count and last_failed_wal tell where it stands.",
                   "SELECT * FROM pg_stat_archiver;"),
            action("Check that the engine's user can read the archive, and that its command finds what is there."),
            action("Set archive_timeout at a source that writes little: a segment is only archived once it is full."),
        ],
        severity=FindingSeverity.CRITICAL if stands else FindingSeverity.WARNING, is_cause=stands,
    )  # fmt: skip


# --- images of pages


def image_percent(clues: Clues) -> float | None:
    """The share of images in the mined WAL. None: too little is mined to tell."""
    builder = _builder(clues)
    mined = builder.rates.get("mined_bytes", 0.0) if builder is not None else 0.0
    if builder is None or mined < IMAGES_RATE_MIN:
        return None
    return 100 * builder.rates.get("image_bytes", 0.0) / mined


def _builder(clues: Clues) -> Load | None:
    stage = clues.view.stage(ComponentType.CAPTURE, BUILDER)
    return stage.loads[0] if stage is not None else None


def _images(clues: Clues, percent: float) -> Finding:
    """The cause only where capture limits: elsewhere it costs network and disk, but no time."""
    stage, builder, source = clues.limiting, _builder(clues), clues.facts.source
    limits = stage is not None and stage.component.component_type is ComponentType.CAPTURE
    evidence = [fact("IMAGES OF PAGES", "builder", round(percent, 1), "PERCENT", IMAGES_MOST)]
    if builder is not None:
        evidence.append(clues.rate(builder, "mined_bytes", "MINED WAL", "BYTES PER SECOND"))
        evidence.append(clues.rate(builder, "image_bytes", "IMAGES OF PAGES", "BYTES PER SECOND"))
    settings = source.settings if source is not None else {}
    evidence += [
        fact(name, "source", settings[name])
        for name in ("wal_compression", "checkpoint_timeout", "max_wal_size")
        if name in settings
    ]
    cures: list[Cure] = []
    if settings.get("wal_compression", "off") == "off":
        cures.append(
            clues.at_source(
                "Compress the images. From PostgreSQL 15 on, lz4 or zstd take less time than on (pglz) where the "
                "server has them.",
                "ALTER SYSTEM SET wal_compression = on; SELECT pg_reload_conf();", SUPERUSER,
            )
        )  # fmt: skip
    cures.append(
        action(
            "Let the source make checkpoints more rarely: a longer checkpoint_timeout and a larger max_wal_size. After "
            "a crash its recovery takes longer then. full_page_writes has to stay on."
        )
    )
    share = None
    if limits and stage is not None and stage.mean is not None:
        share = percent / 100 * (100 - stage.mean.idle)
    return clues.finding(
        FindingCode.WAL_IMAGES,
        f"{percent:.0f} % of the mined WAL is images of whole pages: the source writes one with the first change of "
        f"each page after a checkpoint.",
        evidence, cures, severity=FindingSeverity.WARNING if limits else FindingSeverity.INFORMATION, is_cause=limits,
        stage=stage if limits else None, share=share,
    )  # fmt: skip
