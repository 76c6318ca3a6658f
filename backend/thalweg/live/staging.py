"""Staged WAL of a stream with log mining, as a sample has it: its limit, and what keeps it on the engine's disk."""

from collections.abc import Iterable
from dataclasses import dataclass

from thalweg.kernel.words import listed, size
from thalweg.live.schemas import ComponentSample

SHIPMENT, BUILDER = "WAL SHIPMENT", "LOGMINER BUILDER"
FULL = "PAUSED FOR STAGING SPACE"
TELLS_PERCENT = 50
"""The share of its limit from which staged WAL's growth is a forecast. Staged WAL rises and falls with the dictionaries
of log mining, between two of which a quarter of the limit may lie: a rise in the limit's lower half says nothing."""
HELD_SHARE = 0.5
"""An open transaction that needs so much of the staged WAL is what keeps it."""


@dataclass(frozen=True)
class StagedWal:
    used_bytes: float
    """Without what is only kept for searches: that goes before the limit is reached."""
    limit_bytes: float
    open_bytes: float = 0.0
    """From the first record of the oldest transaction that is open at the source, as far as it is mined."""
    is_full: bool = False
    """Nothing more is received."""
    archive_wait_seconds: float = 0.0
    """For how long the archive has lacked the WAL that is next, while the source cannot be read."""

    @property
    def tells(self) -> bool:
        """Whether its growth is a forecast."""
        return not self.is_full and 100 * self.used_bytes / self.limit_bytes > TELLS_PERCENT

    @property
    def is_held_by_transaction(self) -> bool:
        return self.open_bytes >= HELD_SHARE * self.used_bytes > 0

    def holder_in_words(self, paused: Iterable[str], behind: Iterable[str]) -> str:
        """The transaction or the destinations that keep it, as a sentence. `paused` and `behind` name destinations."""
        if self.is_held_by_transaction:
            return f"A transaction that is open at the source needs {size(self.open_bytes)} of it."
        resting, late = list(paused), list(behind)
        if resting:
            return f"{listed(resting)} {'is' if len(resting) == 1 else 'are'} paused and does not have it yet."
        return f"{listed(late)} {'does' if len(late) == 1 else 'do'} not have it yet." if late else ""


def staged_wal_of(components: Iterable[ComponentSample]) -> StagedWal | None:
    """None: the log is not mined, or nothing of it is known."""
    parts = {component.sub_component: component for component in components}
    shipment, builder = parts.get(SHIPMENT), parts.get(BUILDER)
    if shipment is None or not shipment.gauges.get("staging_limit_bytes"):
        return None
    mined = builder.gauges if builder is not None else {}
    return StagedWal(
        used_bytes=max(0.0, shipment.gauges.get("staged_bytes", 0.0) - mined.get("kept_bytes", 0.0)),
        limit_bytes=shipment.gauges["staging_limit_bytes"], open_bytes=mined.get("open_wal_bytes", 0.0),
        is_full=shipment.state == FULL,
        archive_wait_seconds=shipment.gauges.get("archive_wait_us", 0.0) / 1e6,
    )  # fmt: skip
