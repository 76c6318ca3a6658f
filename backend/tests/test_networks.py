"""Names that no name server ever answers."""

import asyncio
import socket
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from thalweg.inspection.failure import ConnectionFailure
from thalweg.inspection.reach import reachable_places
from thalweg.inspection.target import Target
from thalweg.kernel import networks
from thalweg.kernel.networks import Networks, network_of

MANY = 100
"""Lookups: more than there are threads for, and than asyncio's own executor has."""


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A resolver that answers nothing while the test lasts, and whose time is over at once."""
    ended = Event()

    def wait(*asked: Any, flags: int = 0, **more: Any) -> list[Any]:
        if flags & socket.AI_NUMERICHOST:
            return resolver(*asked, flags=flags, **more)
        ended.wait()
        return []

    resolver = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", wait)
    monkeypatch.setattr(networks, "LOOKUP_SECONDS", 0)
    yield
    ended.set()


async def test_a_name_that_nobody_answers_holds_up_no_other_work(silent: None) -> None:
    lookups = [Networks().addresses_of(f"silent{number}.invalid", 5432) for number in range(MANY)]
    async with asyncio.timeout(60):  # for a failure: it would never end
        answers = await asyncio.gather(*lookups, return_exceptions=True)
        assert [type(answer) for answer in answers] == [socket.gaierror] * MANY
        assert str(answers[0]).endswith("Name resolution took longer than 0 s")
        assert await Networks().addresses_of("192.0.2.7", 5432) == ["192.0.2.7"]
        assert await Networks().addresses_of("::1", 5432) == ["::1"]
        assert await asyncio.to_thread(lambda: "computed") == "computed"


async def test_a_database_whose_name_nobody_answers_is_unreachable(silent: None) -> None:
    with pytest.raises(ConnectionFailure, match=r"The host name silent\.invalid cannot be resolved\.") as failure:
        await reachable_places(Target("silent.invalid", 5432, "shop", "u", "", "prefer"), 5)
    assert failure.value.code == "database_unreachable"


def test_an_ipv4_address_counts_by_itself_however_it_is_written() -> None:
    for written in ("192.0.2.9", "::ffff:192.0.2.9", "64:ff9b::192.0.2.9"):
        assert network_of(written) == "192.0.2.9"
    assert network_of("::ffff:192.0.2.8") != network_of("::ffff:192.0.2.9")
    assert network_of("2001:db8::1") == network_of("2001:db8::2") == "2001:db8::/64"
    assert network_of("2001:db8:0:1::1") != network_of("2001:db8::1")
