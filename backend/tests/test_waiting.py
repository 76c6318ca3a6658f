"""An operation waits only for what it concerns."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.test_health import AT, waiting
from thalweg.db.operations import OperationKind, OperationState
from thalweg.features.operations.waiting import waiting_for
from thalweg.kernel.lifecycle import DesiredStatus


def engine(name: str, state: str = "ONLINE") -> Any:
    return SimpleNamespace(name=name, state=state, last_seen_at=AT, acknowledged_revision=5)


def destination(name: str, applies: Any) -> Any:
    return SimpleNamespace(
        id=name, engine=applies, desired_status=DesiredStatus.ENABLED, database=SimpleNamespace(name=name),
        changed_revision=5,
    )  # fmt: skip


def told(destination_id: str | None, observed: dict[str, Any], reports: str = "ONLINE", **more: Any) -> str | None:
    operation: Any = SimpleNamespace(
        state=OperationState.RUNNING, destination_id=destination_id, revision=5, kind=OperationKind.DESTINATION_START,
        error=None,
    )  # fmt: skip
    destinations = [destination("warehouse", engine("near")), destination("reports", engine("far", reports))]
    stream: Any = SimpleNamespace(
        name="orders", capture_engine=engine("near"), observed=observed, destinations=destinations,
        receivers=destinations[1:], desired_status=DesiredStatus.ENABLED,
        destination=lambda wanted: next((one for one in destinations if one.id == wanted), None),
    )  # fmt: skip
    for name, value in more.items():
        setattr(operation, name, value)
    return waiting_for(operation, stream)


def test_another_destinations_engine_and_locks_hold_up_no_operation_of_this_one() -> None:
    quiet: dict[str, Any] = {"waits": []}
    assert told("warehouse", quiet, "UNREACHABLE") == "The destination to be applied to."
    assert told("reports", quiet, "UNREACHABLE") == (
        "Engine far, which has not answered since 2026-11-23 00:00:00 UTC."
    )
    assert (told(None, quiet, "UNREACHABLE") or "").startswith("Engine far")
    locked = waiting()
    locked["waits"][0] |= {"side": "destination", "destination": "reports", "database": "reports"}
    assert told("warehouse", locked) == "The destination to be applied to."
    assert "at the destination reports" in (told("reports", locked) or "")
    assert "at the destination reports" in (told(None, locked) or "")


def test_a_tables_copy_waits_for_the_stream_that_another_trouble_has_stopped() -> None:
    error = {"code": "c", "title": "A table is missing", "message": "public.b is gone.", "cure": "Remove it."}
    told_of = told("warehouse", {"waits": []}, kind=OperationKind.TABLE_COPY, error=error)
    assert told_of == (
        "The stream, which is held up: A table is missing. public.b is gone. Remove it. The copy follows by itself."
    )


@pytest.mark.parametrize("kind", [kind for kind in OperationKind if kind.startswith(("stream.", "destination."))])
def test_an_error_that_is_known_is_what_an_operation_waits_for(kind: OperationKind) -> None:
    """It is tried again meanwhile: what has ended says its error anyway."""
    error = {"code": "c", "title": "The source is read-only", "message": "It refuses slots.", "cure": "Promote it."}
    whole = kind.startswith("stream.")
    assert told(None if whole else "warehouse", {"waits": []}, kind=kind, error=error) == (
        f"The {'stream' if whole else 'destination'}, which is held up: The source is read-only. It refuses slots. "
        "Promote it."
    )
    uncured = told(None, {"waits": []}, kind=kind, error={**error, "cure": None})
    assert uncured == "The stream, which is held up: The source is read-only. It refuses slots."
