"""How a stream's changes are captured, in words."""

from thalweg.cli.client import Json
from thalweg.cli.output import out
from thalweg.kernel.capture_kinds import CaptureKind

KINDS = {CaptureKind.LOGICAL: "logical decoding", CaptureKind.WAL: "log mining"}


def print_capture(stream: Json) -> None:
    """Nothing where the source decodes, as it does by default, and nothing changes."""
    change, kind = stream.get("kind_change"), CaptureKind(stream.get("capture_kind", CaptureKind.LOGICAL))
    if change:
        former = next(other for other in KINDS if other != change["to"])
        out.print(f"  captured by {KINDS[former]}, {_change_in_words(change, stream['destinations'])}")
    elif kind is CaptureKind.WAL:
        out.print(f"  captured by {KINDS[kind]}")


def _change_in_words(change: Json, destinations: list[Json]) -> str:
    to = KINDS[CaptureKind(change["to"])]
    if change["position"] is None:
        return f"changes to {to}: it is being prepared"
    behind = [part["database"]["name"] for part in destinations if part["id"] in change["waits_for"]]
    return f"changes to {to} at {change['position']}" + (f", and waits for {', '.join(behind)}" if behind else "")
