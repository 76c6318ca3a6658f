"""`make lint` finds code that waits for the outside and does not say so."""

from pathlib import Path

import pytest

LINT = Path(__file__).resolve().parents[2] / "scripts" / "lint"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("await asyncio.open_connection(host, 5432)", "asyncio.open_connection"),
        ("await asyncio.get_running_loop().run_in_executor(None, work)", "get_running_loop().run_in_executor"),
        ("await asyncio.to_thread(work)", "asyncio.to_thread"),
        ("socket.getaddrinfo(host, 5432)", "socket.getaddrinfo"),
        ("async with httpx.AsyncClient() as client: await client.send(request)", "client.send"),
        ("await self._http.request('GET', url)", "_http.request"),
        ("await AsyncConnection.connect(conninfo)", "AsyncConnection.connect"),
        ("await resources.redis.get(key)", "redis.get"),
        ("await to_thread(work)", "to_thread"),
        ("await asyncio.to_thread(work); outside('a thread')", "asyncio.to_thread"),
        ("outside('a thread'); await asyncio.to_thread(work)", None),
        ("await Bus(resources.redis).rounds()", None),
        ("settings.get(key); queue.send(item); session.delete(row)", None),
    ],
)
def test_waiting_without_saying_so_is_found(monkeypatch: pytest.MonkeyPatch, body: str, found: str | None) -> None:
    monkeypatch.syspath_prepend(str(LINT))
    lint = __import__("outside")
    text = "async def wait():\n" + "".join(f"    {line.strip()}\n" for line in body.split(";"))
    expected = [] if found is None else [(2, "wait", found)]
    assert list(lint.unmarked(text)) == expected


def test_who_says_it_says_it_for_itself_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(LINT))
    lint = __import__("outside")
    within = "async def outer():\n    outside('it')\n    async def inner():\n        await to_thread(work)\n"
    assert list(lint.unmarked(within)) == [(4, "inner", "to_thread")]
