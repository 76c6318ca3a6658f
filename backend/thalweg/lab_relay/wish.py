"""Reads the delay that the lab wants from a row at the destination, once a second and not through the relay."""

import asyncio
import logging
from typing import Any

import psycopg
from psycopg import AsyncConnection

from thalweg.lab_relay.link import Delay

log = logging.getLogger(__name__)
APPLICATION = "thalweg lab relay"
"""By this name the lab finds it at the destination."""
ASKED_EVERY_SECONDS = 1.0
AWAY = (psycopg.Error, OSError)
TABLE = "SELECT to_regclass('lab_network.delay') IS NOT NULL"
"""Asked first: a table that is not there would be an error in the server's log every second."""
WANTED = """
SELECT ms, extract(epoch FROM until - clock_timestamp())::float8
  FROM lab_network.delay WHERE until > clock_timestamp()
"""


async def follow(delay: Delay, conninfo: str) -> None:
    """For ever. While the destination is away the delay goes on, and ends at its time."""
    warned = False
    while True:
        try:
            async with await AsyncConnection.connect(conninfo, autocommit=True, connect_timeout=5) as connection:
                warned = False
                while True:
                    await _ask(delay, connection)
                    await asyncio.sleep(ASKED_EVERY_SECONDS)
        except AWAY as error:
            if not warned:
                log.warning("cannot ask the destination for the delay: %s", str(error).strip())
            warned = True
        await asyncio.sleep(ASKED_EVERY_SECONDS)


async def _ask(delay: Delay, connection: AsyncConnection) -> None:
    row = None
    if await _first(connection, TABLE) == (True,):
        try:
            row = await _first(connection, WANTED)
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            row = None  # dropped since
    if row is None:
        delay.end()
    else:
        ms, lasts = row
        delay.begin(ms / 1000, lasts)


async def _first(connection: AsyncConnection, query: str) -> tuple[Any, ...] | None:
    return await (await connection.execute(query.encode())).fetchone()
