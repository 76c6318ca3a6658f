"""A database that stays out of reach: its name, since when, and a cure that is more than to wait."""

from datetime import timedelta
from typing import Any

from tests.test_health import NAMES
from tests.test_last_latency import AT
from tests.test_units import facts
from thalweg.live.health import health_of
from thalweg.live.out_of_reach import CURE, follow_failures, since_when, with_cure

WAIT = "No action is needed: the engine reconnects by itself."
SINCE = "since 2026-11-23 00:00:00 UTC: no connection to the server."


def lost(side: str | None = "destination", code: str = "connection_lost", cure: str = WAIT) -> dict[str, Any]:
    title = "The connection to the database broke"
    return {"code": code, "side": side, "title": title, "message": "no connection to the server", "cure": cure}


def part(name: str, error: dict[str, Any] | None) -> dict[str, Any]:
    return {"id": name, "status": "ENABLED", "error": error, "tables": [], "backlog": None}


def followed(*tries: tuple[float, dict[str, Any] | None]) -> dict[str, Any]:
    """The last document of a stream, whose only destination had these errors after so many seconds."""
    before: dict[str, Any] = {}
    for second, error in tries:
        document = {"error": error, "destinations": [part("a", error)]}
        follow_failures(document, before, AT + timedelta(seconds=second))
        before = document
    return before


def reason(document: dict[str, Any], second: float, **more: Any) -> str:
    at = AT + timedelta(seconds=second)
    more = {"destination_names": {"a": "Warehouse"}, "source_name": "Shop", **more}
    return health_of(facts(observed=document, observed_at=at, **more), at).reason


def test_since_when_is_the_first_of_the_failures_in_a_row() -> None:
    unreachable = lost(code="database_unreachable")
    document = followed((0, lost()), (1, lost()), (9, unreachable), (20, lost()))
    for shown in (document, document["destinations"][0]):
        assert since_when(shown, AT + timedelta(seconds=20)) == AT
        assert since_when(shown, AT + timedelta(seconds=9)) is None
    later = followed((0, lost()), (5, None), (8, lost()))
    assert since_when(later, AT + timedelta(seconds=18)) == AT + timedelta(seconds=8)
    other = followed((0, lost()), (20, lost(code="disk_full")))
    assert since_when(other, AT + timedelta(seconds=20)) is None


def test_what_lasts_has_the_databases_name_and_a_cure() -> None:
    document = followed((0, lost()), (20, lost()))
    broke = "The engine is retrying. The connection to the database broke: no connection to the server."
    assert reason(document, 9) == broke
    assert reason(document, 20) == f"The engine is retrying. Warehouse has been out of reach {SINCE} {CURE}"
    assert with_cure(document, AT + timedelta(seconds=9)) == lost()
    assert with_cure(document, AT + timedelta(seconds=20)) == lost(cure=CURE)
    assert "Shop has been out of reach since" in reason(followed((0, lost("source"))), 20)
    assert reason(followed((0, lost(None))), 20) == broke, "the engine does not tell which"
    own = "Check host, port and firewall, and its TLS mode."
    assert reason(followed((0, lost(code="database_unreachable", cure=own))), 20).endswith(f"{SINCE} {own}")


def test_several_destinations_are_told_of_in_one_sentence() -> None:
    document = {"error": None, "destinations": [part("a", lost()), part("b", lost()), part("c", None)]}
    follow_failures(document, {}, AT)
    assert reason(document, 20, destination_names=NAMES) == (
        "The engine is retrying Warehouse and Reports; Archive continues. "
        f"Warehouse and Reports have been out of reach {SINCE} {CURE}"
    )
