"""A list of alerts says when nobody evaluates the rules any more: that none fires means nothing then."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.alerts.test_rest import ALERTS, alert_of, quick  # noqa: F401
from tests.conftest import Users
from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble, example
from tests.support.servers import RedisServer
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for, without_slot_alert  # noqa: F401
from tests.test_commands import Shell, shell, with_token  # noqa: F401
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.live.bus import Bus, Rounds
from thalweg.live.evaluations import evaluation_of

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)


def told(age: float, interval: float = 5.0, *, tells: bool = True) -> Any:
    then = AT - timedelta(seconds=age)
    rounds = Rounds(reported_at=AT if tells else then, round_at=AT, evaluated_at=then if tells else None)
    return evaluation_of(rounds, interval, AT)


@pytest.mark.parametrize(
    ("age", "interval", "outdated"), [(1, 5, False), (15, 5, False), (16, 5, True), (60, 30, False), (91, 30, True)]
)
def test_what_is_late_is_outdated(age: float, interval: float, outdated: bool) -> None:
    last = told(age, interval)
    assert (last.at, last.outdated is not None) == (AT - timedelta(seconds=age), outdated)


def test_since_when_is_told() -> None:
    assert "since 2026-11-29 11:57:00 UTC, for 3 min" in told(180).outdated
    assert "since 2026-11-29 11:57:00 UTC" in told(180, tells=False).outdated, "as an earlier version's collector died"
    assert "no collector has run yet" in str(evaluation_of(None, 5.0, AT).outdated)


async def test_a_dead_collector_is_told_with_the_list(
    shell: Shell,  # noqa: F811
    users: Users,
    viewer: httpx.AsyncClient,
    resources: Resources,
    redis_server: RedisServer,
) -> None:
    ask = with_token(shell, users)
    page = (await viewer.get(ALERTS)).json()
    assert (page["items"], page["evaluated_at"], "has run yet" in page["outdated"]) == ([], None, True)
    at = now()
    await Bus(resources.redis).tell_rounds(Rounds(reported_at=at, round_at=at, evaluated_at=at))
    page = (await viewer.get(ALERTS)).json()
    assert (datetime.fromisoformat(page["evaluated_at"]), page["outdated"]) == (at, None)
    listed = await ask("alerts", "list")
    assert (listed.code, listed.out.strip()) == (0, "No alerts.")
    # Its process lives and tells, but nothing is evaluated.
    hangs = Rounds(reported_at=at, round_at=at, evaluated_at=at - timedelta(seconds=180))
    await Bus(resources.redis).tell_rounds(hangs)
    for path in (ALERTS, f"{ALERTS}/counts"):
        assert f"since {hangs.evaluated_at:%Y-%m-%d %H:%M:%S} UTC" in (await viewer.get(path)).json()["outdated"]
    listed = await ask("alerts", "list")
    assert (listed.code, "have not been evaluated since" in listed.out, "No alerts." in listed.out) == (1, True, False)
    listed = await ask("alerts", "list", "--json")
    assert (listed.code, listed.out.strip(), "have not been evaluated since" in listed.err) == (1, "[]", True)
    assert (await ask("alerts", "list", "--history")).code == 0
    redis_server.stop()
    try:
        assert "Redis cannot be reached" in (await viewer.get(ALERTS)).json()["outdated"]
    finally:
        redis_server.start()


async def test_a_collector_that_runs_evaluates(
    viewer: httpx.AsyncClient,
    collector: Any,  # noqa: F811
) -> None:
    async def goes_on() -> bool:
        page = (await viewer.get(ALERTS)).json()
        return page["outdated"] is None and page["evaluated_at"] is not None

    await eventually(goes_on)
    first = (await viewer.get(ALERTS)).json()["evaluated_at"]

    async def later() -> bool:
        return bool((await viewer.get(ALERTS)).json()["evaluated_at"] > first)

    await eventually(later)


async def test_what_is_over_says_since_when_and_that_its_text_is_older(
    shell: Shell,  # noqa: F811
    users: Users,
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Any,  # noqa: F811
) -> None:
    await without_slot_alert(operator)
    engine.status, engine.phase, engine.error = "ABORTED", "STOPPED", example("status")["streams"][1]["error"]
    stream = await created(operator, registered)
    await wait_for(operator, f"{STREAMS}/{stream['id']}", status="ABORTED")
    alert = await alert_of(operator, "component_aborted")
    assert alert["over_since"] is None
    engine.status, engine.phase, engine.error = "ENABLED", "REPLICATING", None
    over = await alert_of(operator, "component_aborted", "resolved")
    assert over["id"] == alert["id"] and over["message"] == alert["message"]
    assert over["fired_at"] < over["over_since"] <= over["resolved_at"], "it is resolved when that has lasted"
    ask, when = with_token(shell, users), over["over_since"][:19].replace("T", " ")
    shown = (await ask("alerts", "show", alert["id"])).out
    assert f"Over since {when} UTC: it is resolved. Until then:\n{over['message']}" in shown
    assert when in (await ask("alerts", "list", "--history")).out
