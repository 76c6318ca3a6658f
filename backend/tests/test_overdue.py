"""No operation stays unfinished for ever, and each says what it waits for."""

import asyncio
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble
from tests.test_propagation import Enrolled, over, pair  # noqa: F401
from thalweg.db.models import EngineRow, StreamRow
from thalweg.db.streams import streams_by_id
from thalweg.kernel.clock import now
from thalweg.kernel.context import Resources
from thalweg.kernel.lifecycle import EngineState, Stage
from thalweg.workers.overdue import Untaken, end_overdue


async def _operations(operator: httpx.AsyncClient, stream_id: str) -> list[dict[str, object]]:
    answer = await operator.get("/api/v1/operations", params={"target_id": stream_id})
    return list(answer.json()["items"])


async def test_operation_of_a_silent_engine_ends(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, resources: Resources
) -> None:
    stream = await created(operator, registered)
    assert await end_overdue(resources, Untaken()) == []
    [waiting] = await _operations(operator, stream["id"])
    assert waiting["state"] == "pending"
    assert "local, which has not taken the request" in str(waiting["waiting_for"])
    resources.settings.operation_patience = 0.001
    assert len(await end_overdue(resources, Untaken())) == 1
    [ended] = await _operations(operator, stream["id"])
    assert (ended["state"], ended["waiting_for"]) == ("failed", None)
    assert ended["error"]["code"] == "engine_unreachable"  # type: ignore[index]
    assert (await operator.get(f"{STREAMS}/{stream['id']}")).json()["desired_status"] == "ENABLED"


async def test_operation_of_a_stream_that_is_gone_ends(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, resources: Resources
) -> None:
    stream = await created(operator, registered)
    async with resources.sessions() as session:
        await session.delete(await session.get_one(StreamRow, stream["id"]))
        await session.commit()
    assert len(await end_overdue(resources, Untaken())) == 1
    [ended] = await _operations(operator, stream["id"])
    assert (ended["state"], ended["error"]["title"]) == ("failed", "The stream is gone")  # type: ignore[index]


async def _answers(resources: Resources, engine_id: str, **told: Any) -> None:
    async with resources.sessions() as session:
        answered = {"state": EngineState.ONLINE, "last_seen_at": now(), **told}
        await session.execute(update(EngineRow).where(EngineRow.id == engine_id).values(answered))
        await session.commit()


async def _revision(operator: httpx.AsyncClient, engine_id: str) -> int:
    return int((await operator.get(f"/api/v1/engines/{engine_id}")).json()["desired_revision"])


async def _is_told(resources: Resources, stream_id: str, engine_id: str) -> None:
    """The capture engine has the destination: its own engine's turn has come."""
    async with resources.sessions() as session:
        [destination] = (await streams_by_id(session, {stream_id}))[stream_id].destinations
        engine = await session.get_one(EngineRow, engine_id)
        engine.desired_revision += 1
        destination.stage, destination.changed_revision = Stage.CAPTURED, engine.desired_revision
        await session.commit()


@pytest.mark.parametrize("refuses", ["alpha", "bravo"])
async def test_operation_of_an_engine_that_answers_and_does_not_take_the_request_ends(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    pair: tuple[Enrolled, Enrolled],  # noqa: F811
    resources: Resources,
    refuses: str,
) -> None:
    """The one that captures, or a destination's own."""
    stream = await created(operator, registered, **over(pair))
    await _is_told(resources, stream["id"], pair[1].id)
    for name, enrolled in zip(("alpha", "bravo"), pair, strict=True):
        taken = 0 if name == refuses else await _revision(operator, enrolled.id)
        await _answers(resources, enrolled.id, acknowledged_revision=taken, message=f"{name} is out of disk space.")
    [waiting] = await _operations(operator, stream["id"])
    assert waiting["waiting_for"] == f"Engine {refuses}, which has not taken the request yet."
    untaken = Untaken()
    assert await end_overdue(resources, untaken) == [], "it has some time for it"
    resources.settings.operation_patience = 0.05
    await asyncio.sleep(0.1)
    assert len(await end_overdue(resources, untaken)) == 1
    [ended] = await _operations(operator, stream["id"])
    assert (ended["state"], ended["waiting_for"]) == ("failed", None)
    error: Any = ended["error"]
    assert (error["code"], error["cure"]) == ("engine_unreachable", f"{refuses} is out of disk space.")
    assert f"Engine {refuses} did not take the request" in error["message"]


async def test_a_destination_s_engine_that_goes_on_taking_changes_ends_no_operation(
    operator: httpx.AsyncClient,
    registered: dict[str, str],
    pair: tuple[Enrolled, Enrolled],  # noqa: F811
    resources: Resources,
) -> None:
    """An operation may last, such as a long copy, and what is changed meanwhile takes its moment."""
    stream = await created(operator, registered, **over(pair))
    await _is_told(resources, stream["id"], pair[1].id)
    revisions = [await _revision(operator, enrolled.id) for enrolled in pair]
    resources.settings.operation_patience = 0.001  # shorter than a look takes
    await _answers(resources, pair[0].id, acknowledged_revision=revisions[0])
    untaken = Untaken()
    for taken in (revisions[1] - 1, revisions[1], revisions[1] - 1):
        await asyncio.sleep(0.1)
        await _answers(resources, pair[1].id, acknowledged_revision=taken)
        assert await end_overdue(resources, untaken) == []
    [running] = await _operations(operator, stream["id"])
    assert running["state"] == "pending"


async def test_a_repeated_delete_has_succeeded_with_the_first(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, resources: Resources
) -> None:
    stream = await created(operator, registered)
    assert (await operator.delete(f"{STREAMS}/{stream['id']}")).status_code == 202
    async with resources.sessions() as session:
        await session.delete(await session.get_one(StreamRow, stream["id"]))
        await session.commit()
    await end_overdue(resources, Untaken())
    ended = {str(operation["kind"]): operation for operation in await _operations(operator, stream["id"])}
    deleted = ended["stream.delete"]
    assert (deleted["state"], deleted["error"]) == ("succeeded", None)
    assert deleted["progress"] == {"done": 1, "total": 1, "unit": "steps"}
    assert ended["stream.create"]["state"] == "failed"
