"""No operation stays unfinished for ever, and each says what it waits for."""

import httpx

from tests.features.test_streams import STREAMS, created
from tests.support.engine_double import EngineDouble
from thalweg.db.models import StreamRow
from thalweg.kernel.context import Resources
from thalweg.workers.overdue import end_overdue


async def _operations(operator: httpx.AsyncClient, stream_id: str) -> list[dict[str, object]]:
    answer = await operator.get("/api/v1/operations", params={"target_id": stream_id})
    return list(answer.json()["items"])


async def test_operation_of_a_silent_engine_ends(
    operator: httpx.AsyncClient, registered: dict[str, str], engine: EngineDouble, resources: Resources
) -> None:
    stream = await created(operator, registered)
    assert await end_overdue(resources) == []
    [waiting] = await _operations(operator, stream["id"])
    assert waiting["state"] == "pending"
    assert "local, which has not taken the request" in str(waiting["waiting_for"])
    resources.settings.operation_patience = 0.001
    assert len(await end_overdue(resources)) == 1
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
    assert len(await end_overdue(resources)) == 1
    [ended] = await _operations(operator, stream["id"])
    assert (ended["state"], ended["error"]["title"]) == ("failed", "The stream is gone")  # type: ignore[index]
