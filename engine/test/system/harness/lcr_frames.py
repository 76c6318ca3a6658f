"""Row frames and table lists as apply_lcrs() takes them: docs/formats/lcr-frame.md and data-layer-call.md."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

INSERT, UPDATE, REMOVE = 3, 4, 5
OLD_KEY, OLD_ROW = 2, 4

Value = bytes | str | None  # binary, text, NULL


class Unchanged:
    """The mark of a TOAST value that did not come."""


UNCHANGED = Unchanged()
Tuple = Sequence[Value | Unchanged]


def tuple_bytes(values: Tuple) -> bytes:
    parts = [struct.pack(">H", len(values))]
    for value in values:
        if value is None:
            parts.append(b"n")
        elif isinstance(value, Unchanged):
            parts.append(b"u")
        else:
            data = value.encode() if isinstance(value, str) else value
            parts.append((b"t" if isinstance(value, str) else b"b") + struct.pack(">I", len(data)) + data)
    return b"".join(parts)


def frame(kind: int, flags: int, relation: int, version: int, body: bytes) -> bytes:
    length = (40 + len(body) + 7) // 8 * 8
    header = struct.pack("<IIBBHIIIIIQ", length, 0, 1, kind, flags, 700, 0, relation, version, len(body), 1)
    return header + body + bytes(length - 40 - len(body))


@dataclass(frozen=True)
class Target:
    """A table as the source describes it: by its column names, laid over the destination's table."""

    relation: int
    version: int
    table: int
    identity_index: int
    attributes: tuple[int, ...]

    def description(self) -> bytes:
        return struct.pack(f">IIIIH{len(self.attributes)}h", self.relation, self.version, self.table,
                           self.identity_index, len(self.attributes), *self.attributes)

    def insert(self, *values: Value | Unchanged) -> bytes:
        return frame(INSERT, 0, self.relation, self.version, tuple_bytes(values))

    def update(self, *values: Value | Unchanged, key: Tuple | None = None) -> bytes:
        old = tuple_bytes(key) if key is not None else b""
        return frame(UPDATE, OLD_KEY if old else 0, self.relation, self.version, old + tuple_bytes(values))

    def remove(self, *key: Value | Unchanged) -> bytes:
        return frame(REMOVE, OLD_KEY, self.relation, self.version, tuple_bytes(key))


def target(connection: psycopg.Connection[Any], table: str, columns: Sequence[str] = (), relation: int = 4711,
           index: str | None = None) -> Target:
    """Reads `table` in the destination; all columns that are not generated, or those that are named."""
    rows = connection.execute(
        "SELECT attname, attnum, attgenerated <> '' FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
        " AND NOT attisdropped ORDER BY attnum", (table,)).fetchall()
    numbers = {name: 0 if generated else number for name, number, generated in rows}
    key = connection.execute("SELECT coalesce(%s::text::regclass::oid, (SELECT indexrelid FROM pg_index"
                             " WHERE indrelid = %s::regclass AND indisprimary), 0)", (index, table)).fetchone()
    oid = connection.execute("SELECT %s::regclass::oid", (table,)).fetchone()
    assert key is not None and oid is not None
    return Target(relation, 1, oid[0], key[0], tuple(numbers[name] for name in (columns or list(numbers))))


def table_list(*targets: Target) -> bytes:
    return struct.pack(">BH", 1, len(targets)) + b"".join(each.description() for each in targets)


def apply(connection: psycopg.Connection[Any], targets: Target | Sequence[Target], *frames: bytes) -> int:
    tables = table_list(*([targets] if isinstance(targets, Target) else targets))
    return call(connection, tables, b"".join(frames))


def call(connection: psycopg.Connection[Any], tables: bytes, frames: bytes) -> int:
    row = connection.execute("SELECT thalweg_datalayer.apply_lcrs(%b, %b)", (tables, frames)).fetchone()
    assert row is not None
    return int(row[0])


def int4(value: int) -> bytes:
    return struct.pack(">i", value)


def int8(value: int) -> bytes:
    return struct.pack(">q", value)
