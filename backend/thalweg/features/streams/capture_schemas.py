"""How a stream's changes are captured."""

from pydantic import Field

from thalweg.kernel.capture_kinds import CaptureKind
from thalweg.kernel.models import Resource

CAPTURE_KIND = (
    "logical: the source decodes its WAL for the stream, and keeps it for as long as a destination is behind. wal: the "
    "engine receives the source's WAL, stages it on its own disk and mines it there; the source forgets what is "
    "staged."
)


class KindChange(Resource):
    """A change of `capture_kind` that is under way. The former kind captures until it is made."""

    to: CaptureKind
    position: str | None = Field(
        description="Changes that commit at the source there or later will be captured by the new kind. Null: it is "
        "being prepared, which waits for transactions that run at the source."
    )
    waits_for: list[str] = Field(
        description="The ids of destinations that do not have everything from before the position yet. The kind "
        "changes once there is none."
    )
