"""Paths that stand because the source's WAL cannot be shipped: the staged WAL is full, or the archive lacks more."""

from thalweg.advisor.shape import Path
from thalweg.engine_client.error_codes import ErrorCode
from thalweg.kernel.words import duration, size

ARCHIVE_WAITS_SECONDS = 3.0
"""An archive is asked at least every five seconds: a shorter wait may be over."""
OWN_ERRORS = (None, ErrorCode.SPILL_LIMIT_REACHED, ErrorCode.WAL_ARCHIVE_FAILED)
"""Codes of the errors by which engines tell the same. Any other error speaks first."""


def stands_at_staging(path: Path) -> bool:
    """The staged WAL is full, and all of it is mined."""
    staged = path.staged_wal
    return staged is not None and staged.is_full and path.has_mined_all and path.condition.error_code in OWN_ERRORS


def stands_at_archive(path: Path) -> bool:
    return lacks_archived_wal(path) and path.has_mined_all and path.condition.error_code in OWN_ERRORS


def stands_whatever_limits(path: Path) -> bool:
    """A staging that a destination keeps full is emptied by that: what limits there is the cause."""
    staged = path.staged_wal
    return stands_at_archive(path) or (staged is not None and staged.is_held_by_transaction)


def lacks_archived_wal(path: Path) -> bool:
    staged = path.staged_wal
    return staged is not None and staged.archive_wait_seconds >= ARCHIVE_WAITS_SECONDS


def shipment_in_words(path: Path) -> str | None:
    """Why nothing more is captured. None: it is, or for another reason."""
    staged = path.staged_wal
    if staged is None:
        return None
    if stands_at_staging(path):
        holder = staged.holder_in_words(*path.behind)
        return (
            f"The staged WAL is full ({size(staged.limit_bytes)}): until a part of it can go, nothing more is "
            f"captured, for any destination.{f' {holder}' if holder else ''}"
        )
    if stands_at_archive(path):
        return (
            f"For {duration(staged.archive_wait_seconds)} the archive of the source's WAL has lacked what is next, and "
            "the source does not give it: nothing more is captured, for any destination."
        )
    return None
