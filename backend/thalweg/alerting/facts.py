"""The facts that alert rules read: streams, engines and credentials at one time. None: unknown now."""

from dataclasses import dataclass, field
from datetime import datetime

from thalweg.alerting.catalogue import SubjectType
from thalweg.kernel.lifecycle import DesiredStatus, ObservedStatus, StreamPhase
from thalweg.live.staging import StagedWal


@dataclass(frozen=True)
class Slot:
    """A stream's replication slot, by the source's own word. `read_at` is of the control plane's clock."""

    read_at: datetime
    missing: bool
    active: bool = False
    wal_status: str | None = None
    current_lsn: int = 0
    retained_bytes: int = 0
    """WAL from the slot's restart position to the source's end."""
    safe_bytes: int | None = None
    """WAL that may still be written before the slot is in danger; None: max_slot_wal_keep_size sets no limit."""
    keeps_up: bool = False
    """Its reader does: what is kept grows from one move of the restart position to the next, and that is no growth."""
    seconds_to_idle: float | None = None
    """Until idle_replication_slot_timeout takes it, unless somebody reads; None: nothing of that kind threatens it."""
    invalidation_reason: str | None = None


@dataclass(frozen=True)
class Spill:
    """Bytes of one component on the engine's disk, and their limit."""

    component: str
    place: str
    """In words."""
    parameter: str
    used_bytes: float
    limit_bytes: float
    destination_id: str | None = None


@dataclass(frozen=True)
class DestinationFacts:
    """A destination: of several, one may stop while the others go on."""

    id: str
    name: str
    status: ObservedStatus
    error: str | None
    applies: bool = True
    """It is switched on, has no error, and nothing keeps it from applying."""
    phase: str = ""
    done: int | None = None
    """The position below which it needs no more work; None: unknown."""
    retry: str | None = None
    """The retry that one of its transactions waits for, in words."""
    parked: int | None = None
    unreachable: str | None = None
    """The engine's message where it cannot connect to it now."""
    cure: str | None = None
    """That of its error."""
    full_bytes: int | None = None
    """The limit of its backlog, which is full, while it applies nothing: that holds the whole stream up."""


@dataclass(frozen=True)
class StreamFacts:
    """`seen`: its engine answers and the observation is fresh; else what was observed says nothing of now."""

    id: str
    name: str
    desired_status: DesiredStatus
    status: ObservedStatus
    phase: StreamPhase
    seen: bool
    error: str | None = None
    source_end: int | None = None
    done: int | None = None
    """The position that needs no more work: applied, or confirmed if nothing of interest followed."""
    had_slot: bool = False
    """It has confirmed a position once: since then it has a slot."""
    behind_bytes: int | None = None
    latency_seconds: float | None = None
    """None also where no transaction came through."""
    latency_at_least: bool = False
    """Nothing came through, and the latency is the age of the oldest change that waits."""
    parked: int | None = None
    parked_at_least: bool = False
    """A destination tells nothing of its error queue."""
    spills: tuple[Spill, ...] = ()
    slot: Slot | None = None
    destinations: tuple[DestinationFacts, ...] = ()
    is_paused: bool = False
    """Each of its destinations is switched off on purpose. Without a backlog the stream itself rests."""
    source_name: str = "the source"
    source_unreachable: str | None = None
    """The engine's message where it cannot connect to it now."""
    cure: str | None = None
    """That of its error."""
    troubles: tuple[str, ...] = ()
    """Changed tables that miss changes while the others continue."""
    staged_wal: StagedWal | None = None
    """None: its log is not mined, or nothing is known of it."""
    archive: str | None = None
    """The name of the archive of the source's WAL that it may read. None: it has none."""

    @property
    def copies(self) -> bool:
        """All that it does is to copy: a destination that is added later is copied while the others go on."""
        enabled = {
            destination.phase for destination in self.destinations if destination.status == ObservedStatus.ENABLED
        }
        phases = enabled if enabled and len(self.destinations) > 1 else {self.phase}
        return phases == {StreamPhase.INSTANTIATING}


@dataclass(frozen=True)
class Disk:
    total_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class EngineFacts:
    id: str
    name: str
    state: str
    silent_seconds: float
    message: str | None = None
    disk: Disk | None = None


@dataclass(frozen=True)
class Expiry:
    """Something that ends: an engine's identity or TLS certificate, the authority, an API token."""

    subject_type: SubjectType
    subject_id: str
    subject_name: str
    credential: str
    until: datetime


@dataclass(frozen=True)
class Facts:
    at: datetime
    streams: list[StreamFacts] = field(default_factory=list)
    engines: list[EngineFacts] = field(default_factory=list)
    expiries: list[Expiry] = field(default_factory=list)
    history_failing_seconds: float = 0.0
    """For how long the store has taken no samples."""
