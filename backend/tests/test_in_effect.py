"""A change of a stream: pending until the engines work by it, and then in effect from a position that is told."""

import asyncio
import time
from typing import Any

import httpx
import pytest

from tests.conftest import Users
from tests.features.test_streams import STREAMS, created
from tests.features.test_transformations import HASHED, KEY
from tests.support.engine_double import EngineDouble, example
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_commands import Shell, shell, with_token  # noqa: F401
from thalweg.cli import following, output
from thalweg.cli.client import Api, CommandError
from thalweg.cli.commands import streams
from thalweg.engine_client.documents import NOT_REPORTED, StreamStatus
from thalweg.kernel.lifecycle import DesiredStatus
from thalweg.live.reports import Receiver, joined

Running = Any
PENDING = {"under_way": True, "from": None, "since": None}
STANDS = {"under_way": False, "from": None, "since": None}
EFFECT = example("status")["streams"][0]["destinations"][0]["in_effect"]


async def effect_at(client: httpx.AsyncClient, path: str) -> Any:
    return (await client.get(path)).json()["destinations"][0]["in_effect"]


async def until_from(client: httpx.AsyncClient, path: str, position: str) -> None:
    async def is_told() -> bool:
        effect = await effect_at(client, path)
        return bool(effect and effect["from"] == position)

    await eventually(is_told)


async def sentences(client: httpx.AsyncClient, path: str) -> list[str]:
    """Of the events on positions, newest first."""
    events = (await client.get(f"{path}/history/events")).json()["items"]
    return [event["sentence"] for event in events if "effect" in event["sentence"]]


async def test_a_change_is_pending_until_the_engine_works_by_it(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Running,  # noqa: F811
) -> None:
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    await until_from(operator, path, "0/1A00000")
    engine.takes_effect = False
    document = {"parameters": {"memory_budget_mb": 64}}
    changed = (await operator.patch(path, json=document, headers={"If-Match": "*"})).json()
    assert changed["destinations"][0]["in_effect"] == PENDING, "whatever was told of the earlier definition"
    assert changed["restart_needed"]

    async def is_taken() -> bool:
        told = engine.desired["streams"][0]["parameters"]
        return bool(told.get("memory_budget_mb") == 64) and (await effect_at(operator, path)) == PENDING

    await eventually(is_taken)
    engine.takes_effect, engine.effect_from = True, "0/1B00000"
    await until_from(operator, path, "0/1B00000")
    shown = (await operator.get(path)).json()
    assert not shown["restart_needed"]
    assert shown["destinations"][0]["in_effect"] == {"under_way": False, "from": "0/1B00000", "since": EFFECT["since"]}
    since = "since 2026-11-21 00:00:01 UTC"
    told = [f"In effect from {position} at warehouse, {since}" for position in ("0/1B00000", "0/1A00000")]
    assert await sentences(operator, path) == told

    stop = await operator.post(f"{path}:stop")
    await wait_for(operator, stop.headers["location"], state="succeeded")
    await until_from(operator, path, "0/1B00000")
    kept = {"under_way": False, "from": "0/1B00000", "since": EFFECT["since"]}
    assert await effect_at(operator, path) == kept, "as it ran"
    engine.takes_effect = False
    await operator.patch(path, json={"parameters": {"memory_budget_mb": 128}}, headers={"If-Match": "*"})
    await eventually(lambda: _is(operator, path, STANDS))
    engine.takes_effect = True
    start = await operator.post(f"{path}:start")
    await wait_for(operator, start.headers["location"], state="succeeded")
    await until_from(operator, path, "0/1B00000")
    assert await sentences(operator, path) == told, "the position has been told"


async def test_history_has_what_was_in_effect_only_for_a_while(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Running,  # noqa: F811
) -> None:
    """A change that another one followed before the destination, which was behind, had come to it."""
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    await until_from(operator, path, "0/1A00000")
    effects = [
        {"from": position, "since": f"2026-11-21T00:00:0{second}Z"}
        for position, second in (("0/1A00000", 1), ("0/1A80000", 2), ("0/1C00000", 3))
    ]
    engine.destinations["warehouse"] = {"effects": effects, "in_effect": {"revision": 1, **effects[-1]}}

    async def are_told() -> bool:
        return [sentence.split(",")[0] for sentence in await sentences(operator, path)] == [
            f"In effect from {position} at warehouse" for position in ("0/1C00000", "0/1A80000", "0/1A00000")
        ]

    await eventually(are_told)


async def test_a_change_of_another_stream_leaves_it_in_effect(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Running,  # noqa: F811
) -> None:
    orders, customers = ({"include": [{"schema": "public", "table": table}]} for table in ("orders", "customers"))
    path = f"{STREAMS}/{(await created(operator, registered, rules=orders))['id']}"
    other = f"{STREAMS}/{(await created(operator, registered, name='other', rules=customers))['id']}"
    await until_from(operator, path, "0/1A00000")
    await until_from(operator, other, "0/1A00000")
    engine.takes_documents = False
    await operator.patch(other, json={"parameters": {"parallelism": 2}}, headers={"If-Match": "*"})
    assert await effect_at(operator, other) == PENDING
    assert (await effect_at(operator, path))["from"] == "0/1A00000"


async def test_the_command_line_waits_for_a_change(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Running,  # noqa: F811
    shell: Shell,  # noqa: F811
    users: Users,
) -> None:
    thalweg = with_token(shell, users)
    stream = await created(operator, registered)
    path = f"{STREAMS}/{stream['id']}"
    await until_from(operator, path, "0/1A00000")
    name = stream["name"]
    engine.takes_effect = False
    at_once = await thalweg("streams", "set", name, "memory_budget_mb=64")
    assert at_once.code == 0 and f"`thalweg streams show {name}` shows from which position" in at_once.out
    assert "warehouse: the last change is not in effect yet." in (await thalweg("streams", "show", name)).out
    late = await thalweg("streams", "set", name, "memory_budget_mb=65", "--wait", "--timeout", "1")
    assert late.code == 1 and "It is not in effect at warehouse within 1 s." in late.err
    engine.takes_effect, engine.effect_from = True, "0/1B00000"
    for arguments in (("streams", "set", name), ("destinations", "set", name, "warehouse")):
        waited = await thalweg(*arguments, "metadata_cache_mb=5", "--wait")
        assert waited.code == 0, waited.err
        assert "warehouse: in effect from 0/1B00000, since 2026-11-21 00:00:01 UTC." in waited.out

    engine.status, engine.phase, engine.takes_effect = "ABORTED", "STOPPED", False
    engine.error = example("status")["streams"][1]["error"]
    failed = await thalweg("streams", "set", name, "parallelism=4", "--wait")
    assert failed.code == 1 and "warehouse, which is aborted. A table has no replica identity." in failed.err
    engine.status, engine.phase, engine.error, engine.takes_effect = "ENABLED", "REPLICATING", None, None
    await eventually(lambda: _is_untold(operator, path))
    assert "version does not tell" in (await thalweg("streams", "set", name, "parallelism=6", "--wait")).err


async def _is(client: httpx.AsyncClient, path: str, effect: Any) -> bool:
    return bool(await effect_at(client, path) == effect)


async def test_the_command_line_tells_no_position_for_live_parameters(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Running,  # noqa: F811
    shell: Shell,  # noqa: F811
    users: Users,
) -> None:
    thalweg = with_token(shell, users)
    stream = await created(operator, registered)
    path, name = f"{STREAMS}/{stream['id']}", stream["name"]
    await until_from(operator, path, "0/1A00000")
    for what in (("streams", "set", name), ("destinations", "set", name, "warehouse")):
        at_once = await thalweg(*what, "parallelism=2")
        assert at_once.code == 0 and "live take effect at once" in at_once.out and "streams show" not in at_once.out
        waited = await thalweg(*what, "parallelism=3", "--wait")
        assert waited.code == 0, waited.err
        assert "warehouse: in effect; live parameters begin no position." in waited.out
        both = await thalweg(*what, "parallelism=4", "memory_budget_mb=64", "--wait")
        assert "warehouse: in effect from 0/1A00000" in both.out
    reverted = await thalweg("destinations", "set", name, "warehouse", "parallelism=4", "--wait")
    assert "warehouse: in effect from 0/1A00000" in reverted.out, "memory_budget_mb is the stream's again"
    engine.takes_effect = False
    late = await thalweg("streams", "set", name, "parallelism=8", "--wait", "--timeout", "1")
    assert late.code == 1, "the engine has not taken it up"
    stop = await operator.post(f"{path}:stop")
    await wait_for(operator, stop.headers["location"], state="succeeded")
    stopped = await thalweg("streams", "set", name, "parallelism=9", "--wait")
    assert stopped.code == 0 and "takes effect with the next start" in stopped.out


CHANGES = {
    "streams": ("streams", "set", "shop to warehouse", "memory_budget_mb=64"),
    "destinations": ("destinations", "set", "shop to warehouse", "warehouse", "memory_budget_mb=64"),
}


@pytest.mark.parametrize("own", CHANGES.values(), ids=CHANGES)
async def test_the_command_line_tells_no_position_of_somebody_else_s_change(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Running,  # noqa: F811
    shell: Shell,  # noqa: F811
    users: Users,
    own: tuple[str, ...],
) -> None:
    thalweg = with_token(shell, users)
    path = f"{STREAMS}/{(await created(operator, registered))['id']}"
    await until_from(operator, path, "0/1A00000")
    engine.takes_effect = False
    waiting = asyncio.create_task(thalweg(*own, "--wait", "--timeout", "30"))
    await eventually(lambda: _is_set(operator, path, 64))
    await asyncio.sleep(1)
    renamed = await operator.patch(path, json={"name": "shop"}, headers={"If-Match": "*"})
    assert renamed.status_code == 200
    await asyncio.sleep(1)
    assert not waiting.done(), "another name is no other change"
    engine.takes_effect, engine.effect_from = True, "0/1B00000"
    part = f"{path}/destinations/{renamed.json()['destinations'][0]['id']}"
    later = await operator.patch(
        part if own[0] == "destinations" else path, json={"parameters": {"memory_budget_mb": 65}},
        headers={"If-Match": "*"},
    )  # fmt: skip
    assert later.status_code == 200
    told = await waiting
    assert told.code == 1 and "0/1B00000" not in told.out
    assert "It is superseded by a later change (operator, 20" in told.err
    assert "`thalweg streams show shop`" in told.err


async def test_another_mask_key_supersedes_a_change_that_is_waited_for(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    engine: EngineDouble,
    collector: Running,  # noqa: F811
    shell: Shell,  # noqa: F811
    users: Users,
) -> None:
    thalweg = with_token(shell, users)
    stream = await created(operator, registered, rules=HASHED, mask_key=KEY)
    path = f"{STREAMS}/{stream['id']}"
    await until_from(operator, path, "0/1A00000")
    engine.takes_effect = False
    waiting = asyncio.create_task(thalweg(*CHANGES["streams"], "--wait", "--timeout", "30"))
    await eventually(lambda: _is_set(operator, path, 64))
    await asyncio.sleep(1)
    key = {"rules": HASHED, "mask_key": f"{KEY}!", "accept": ["mask_key_changed"]}
    later = await operator.patch(path, json=key, headers={"If-Match": "*"})
    assert later.status_code == 200, later.text
    engine.takes_effect, engine.effect_from = True, "0/1B00000"
    told = await waiting
    assert told.code == 1 and "0/1B00000" not in told.out
    assert "It is superseded by a later change (operator, 20" in told.err


def test_several_aborted_destinations_are_named_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def aborted(name: str) -> dict[str, Any]:
        return {
            "id": name, "database": {"name": name}, "desired_status": "ENABLED", "status": "ABORTED", "error": None,
            "in_effect": PENDING,
        }  # fmt: skip

    monkeypatch.setattr(following, "ABORTED_FOR", 0)
    for names, words in (["a"], "at a, which is aborted."), (["a", "b"], "at a, b, which are aborted."):
        changed = {"status": "ENABLED", "error": None, "destinations": [aborted(name) for name in names]}
        with pytest.raises(CommandError, match=words):
            following.follow_change(Api("http://127.0.0.1:1", None), changed, True, "Changed.")


class SlowApi:
    """Its answer to a change takes long, as where a check waits for a lock."""

    @staticmethod
    def find(*_: str) -> dict[str, Any]:
        return {"id": "stream01", "name": "shop", "etag": '"1"'}

    @staticmethod
    def patch(*_: Any) -> dict[str, Any]:
        time.sleep(0.5)
        return {"name": "shop", "destinations": []}


@pytest.mark.parametrize(("long", "told_of"), [(0.05, True), (30, False)])
def test_a_check_that_takes_long_is_told_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], long: float, told_of: bool
) -> None:
    monkeypatch.setattr(output, "LONG_SECONDS", long)
    monkeypatch.setattr(streams, "connect", SlowApi)
    streams.set_rules("shop", include=["public.*"])
    seen = capsys.readouterr()
    assert ("Checking the databases" in seen.err) == told_of
    assert "The tables of shop are chosen again." in seen.out


async def _is_set(client: httpx.AsyncClient, path: str, value: int) -> bool:
    stream = (await client.get(path)).json()
    parts = (stream, stream["destinations"][0])
    return any(part["parameters"].get("memory_budget_mb") == value for part in parts)


async def _is_untold(client: httpx.AsyncClient, path: str) -> bool:
    return await effect_at(client, path) is None


def told(in_effect: Any, revision: int = 5) -> StreamStatus:
    document = example("status")["streams"][0]
    part = {**document["destinations"][0], "in_effect": in_effect and {**in_effect, "revision": revision}}
    return StreamStatus.model_validate({**document, "destinations": [part]})


@pytest.mark.parametrize(
    ("sent", "received", "revision", "position"),
    [
        ("0/100", "0/200", 5, "0/200"),
        ("0/300", "0/200", 5, "0/300"),
        ("0/100", "0/200", 6, None),
        ("0/100", None, 5, None),
        (None, "0/200", 5, None),
    ],
)
def test_over_two_engines_the_later_position_counts(
    sent: str | None, received: str | None, revision: int, position: str | None
) -> None:
    """`revision`: which the engine that receives is to have at least."""
    there = told(received and {**EFFECT, "from": received})
    receiver = Receiver("bravo", DesiredStatus.ENABLED, there, revision)
    capturing = told(sent and {**EFFECT, "from": sent}, 42)
    effect = joined(capturing, "alpha", {"warehouse": receiver}).destinations[0].in_effect
    assert effect != NOT_REPORTED
    if position is None:
        assert effect is None
    else:
        assert effect is not None and not isinstance(effect, str)
        assert (effect.from_, effect.revision) == (position, 42)


def test_nobody_knows_the_position_if_one_engine_does_not_tell() -> None:
    document = example("status")["streams"][0]
    older = {name: value for name, value in document["destinations"][0].items() if name != "in_effect"}
    receiver = Receiver(
        "bravo", DesiredStatus.ENABLED, StreamStatus.model_validate({**document, "destinations": [older]}), 0
    )
    assert joined(told(EFFECT), "alpha", {"warehouse": receiver}).destinations[0].in_effect == NOT_REPORTED
