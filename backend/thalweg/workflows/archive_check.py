"""Whether the engine offers the archive of the source's WAL that a stream names."""

from thalweg.db.models import EngineRow
from thalweg.engine_client.mining_limits import WAL_ARCHIVE
from thalweg.inspection.checks import Checklist
from thalweg.inspection.schemas import Check, CheckSide
from thalweg.kernel.words import listed


def check_archive(name: object, engine: EngineRow) -> list[Check]:
    checklist = Checklist(CheckSide.SOURCE)
    title = "Archive of the WAL"
    if not name:
        checklist.ok("wal_archive", title, "The stream names none: WAL that the source loses is lost to the stream.")
    elif name in engine.wal_archives:
        checklist.ok("wal_archive", title, f"The engine {engine.name} offers {name}.")
    else:
        offered = f"offers {listed(engine.wal_archives)}" if engine.wal_archives else "offers none"
        checklist.fail(
            "wal_archive", title, f"The engine {engine.name} has no archive {name}: it {offered}.",
            f"Name it in wal-archives.json of the engine's state directory (docs/guides/log-mining.md), wait a moment "
            f"until the engine has told of it, or set {WAL_ARCHIVE} to one that there is.",
        )  # fmt: skip
    return checklist.checks
