"""Four ways to write rows into a table: a statement for each, prepared and pipelined, in sets, below SQL."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from harness.lcr_frames import Target, call, int4, int8, table_list, target

Session = psycopg.Connection[Any]
CALL_BYTES = 96 * 1024  # of one call of the data layer, as apply makes them


@dataclass(frozen=True)
class Shape:
    """A table: `id` is its key, `integers` and `texts` are how many small columns it has besides."""

    name: str
    integers: int
    texts: int
    text_bytes: int = 10
    large_bytes: int = 0  # of a column that is large; 0: there is none
    fillfactor: int = 100

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Names and types."""
        large = [("large", "text")] if self.large_bytes else []
        return [("id", "int8"), *((f"i{n}", "int4") for n in range(self.integers)),
                *((f"t{n}", "text") for n in range(self.texts)), *large]

    def create(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns)
        # A large value stays in its row: what is measured is the row, not the table beside it.
        plain = f"; ALTER TABLE {self.name} ALTER large SET STORAGE PLAIN" if self.large_bytes else ""
        return f"CREATE TABLE {self.name} ({columns}, PRIMARY KEY (id)) WITH (fillfactor = {self.fillfactor}){plain}"

    def row(self, key: int, version: int) -> list[int | str]:
        text = f"{key}.{version}".ljust(self.text_bytes, "x")
        large = ["y" * (self.large_bytes - 1) + str(version % 10)] if self.large_bytes else []
        return [key, *(key + version + n for n in range(self.integers)), *(text for _ in range(self.texts)), *large]


@dataclass(frozen=True)
class Change:
    """An insert has no key, a delete has no row; an update of the key has both, and they differ."""

    key: int | None
    row: list[int | str] | None


Write = Callable[[Sequence[Change]], None]  # changes of one kind, each of another row
Writer = Callable[[Session, Shape], Write]


def statement_a_row(session: Session, shape: Shape) -> Write:
    names = [name for name, _ in shape.columns]

    def write(changes: Sequence[Change]) -> None:
        for change in changes:
            if change.row is None:
                text = f"DELETE FROM {shape.name} WHERE id = {change.key}"
            elif change.key is None:
                text = f"INSERT INTO {shape.name} ({', '.join(names)}) VALUES ({', '.join(map(_literal, change.row))})"
            else:
                parts = ", ".join(f"{name} = {_literal(value)}" for name, value in zip(names, change.row, strict=True))
                text = f"UPDATE {shape.name} SET {parts} WHERE id = {change.key}"
            session.execute(text)
    return write


def prepared(session: Session, shape: Shape) -> Write:
    names = [name for name, _ in shape.columns]
    values = [f"%b::{kind}" for _, kind in shape.columns]
    insert = f"INSERT INTO {shape.name} ({', '.join(names)}) VALUES ({', '.join(values)})"
    assignments = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
    update = f"UPDATE {shape.name} SET {assignments} WHERE id = %b::int8"

    def write(changes: Sequence[Change]) -> None:
        with session.pipeline():
            for change in changes:
                if change.row is None:
                    session.execute(f"DELETE FROM {shape.name} WHERE id = %b::int8", [change.key], prepare=True)
                elif change.key is None:
                    session.execute(insert, change.row, prepare=True)
                else:
                    session.execute(update, [*change.row, change.key], prepare=True)
    return write


def sets(session: Session, shape: Shape) -> Write:
    names = [name for name, _ in shape.columns]
    arrays = ", ".join(f"%b::{kind}[]" for _, kind in shape.columns)
    assignments = ", ".join(f"{name} = s.{name}" for name in names)
    update = (f"UPDATE {shape.name} t SET {assignments} FROM unnest(%b::int8[], {arrays}) "
              f"AS s (key, {', '.join(names)}) WHERE t.id = s.key")

    def write(changes: Sequence[Change]) -> None:
        keys = [change.key for change in changes]
        columns = [list(column) for column in zip(*(change.row or [] for change in changes), strict=True)]
        if changes[0].row is None:
            session.execute(f"DELETE FROM {shape.name} t USING unnest(%b::int8[]) AS s (id) WHERE t.id = s.id", [keys],
                            prepare=True)
        elif changes[0].key is None:
            session.execute(f"INSERT INTO {shape.name} SELECT * FROM unnest({arrays})", columns, prepare=True)
        else:
            session.execute(update, [keys, *columns], prepare=True)
    return write


def data_layer(session: Session, shape: Shape) -> Write:
    written = target(session, shape.name)

    def write(changes: Sequence[Change]) -> None:
        for frames in _calls(_frame(written, shape, change) for change in changes):
            call(session, table_list(written), frames)
    return write


WRITERS: dict[str, Writer] = {"a statement a row": statement_a_row, "prepared, pipelined": prepared, "sets": sets,
                              "data layer": data_layer}


def _literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"


def _frame(written: Target, shape: Shape, change: Change) -> bytes:
    if change.row is None:
        assert change.key is not None
        return written.remove(int8(change.key), *(None for _ in shape.columns[1:]))
    values = [_sent(value, kind) for value, (_, kind) in zip(change.row, shape.columns, strict=True)]
    if change.key is None:
        return written.insert(*values)
    moves = change.key != change.row[0]
    old = [int8(change.key), *(None for _ in shape.columns[1:])]
    return written.update(*values, key=old if moves else None)


def _sent(value: int | str, kind: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return int8(value) if kind == "int8" else int4(value)


def _calls(frames: Iterator[bytes]) -> Iterator[bytes]:
    gathered = b""
    for frame in frames:
        if len(gathered) + len(frame) > CALL_BYTES:
            yield gathered
            gathered = b""
        gathered += frame
    yield gathered
