"""Keyset pages: the same items are never shown twice or left out because others came or went."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from thalweg.kernel.pagination import decode_cursor, encode_cursor

Row = TypeVar("Row")


async def page_by_name(
    session: AsyncSession,
    query: Select[Row],
    name: InstrumentedAttribute[str],
    identifier: InstrumentedAttribute[str],
    limit: int,
    cursor: str | None,
) -> tuple[list[Row], str | None]:
    """Ordered by name, then id."""
    if cursor is not None:
        query = query.where(tuple_(name, identifier) > tuple_(*_values(cursor, str, str)))
    rows = list((await session.scalars(query.order_by(name, identifier).limit(limit + 1))).unique())
    return _cut(rows, limit, lambda row: (getattr(row, name.key), getattr(row, identifier.key)))


async def page_newest_first(
    session: AsyncSession,
    query: Select[Row],
    identifier: InstrumentedAttribute[int],
    limit: int,
    cursor: str | None,
) -> tuple[list[Row], str | None]:
    """For rows whose id grows with time."""
    if cursor is not None:
        query = query.where(identifier < _values(cursor, int)[0])
    rows = list((await session.scalars(query.order_by(identifier.desc()).limit(limit + 1))).unique())
    return _cut(rows, limit, lambda row: (row.id,))


def _values(cursor: str, *kinds: type[str] | type[int]) -> list[str | int]:
    return decode_cursor(cursor, *kinds)


def _cut(rows: list[Row], limit: int, key: Callable[[Any], tuple[str | int, ...]]) -> tuple[list[Row], str | None]:
    if len(rows) <= limit:
        return rows, None
    rows = rows[:limit]
    return rows, encode_cursor(*key(rows[-1]))
