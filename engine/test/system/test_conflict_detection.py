"""Updates and deletes of rows that somebody else has changed at the destination: noticed by their old values, settled
by their handlers and in the conflict log exactly once, through kills of the engine. Both sides are compared with a
model."""

import random
from collections import Counter
from typing import Any

import pytest

from harness.engine import destination_path
from harness.scene import Scene

TABLES = """
    CREATE TABLE kept (id integer PRIMARY KEY, amount numeric(8, 2) NOT NULL, note text, number integer NOT NULL,
                       body text NOT NULL);
    ALTER TABLE kept ALTER body SET STORAGE EXTERNAL, REPLICA IDENTITY FULL;
    CREATE TABLE taken (LIKE kept INCLUDING ALL);
    ALTER TABLE taken REPLICA IDENTITY FULL;
    CREATE TABLE beside (LIKE kept INCLUDING ALL);
    ALTER TABLE beside REPLICA IDENTITY FULL;
    CREATE TABLE ledger (number integer PRIMARY KEY);
    INSERT INTO kept SELECT n, 0, NULL, 0, repeat('a', 3000) FROM generate_series(1, 40) AS n;
    INSERT INTO taken SELECT * FROM kept;
    INSERT INTO beside SELECT * FROM kept;
"""
NAMES = ("kept", "taken", "beside")
DETECTION = [{"schema": "public", "table": "beside", "columns": ["amount", "note"]}, {}]
HANDLERS = [
    {"kind": kind, "schema": "public", "table": "taken", "action": "overwrite"}
    for kind in ("insert_exists", "update_missing", "update_origin_differs", "delete_origin_differs")
] + [
    {"kind": kind, "action": "discard"}
    for kind in ("insert_exists", "update_missing", "delete_missing", "update_origin_differs", "delete_origin_differs")
]
KEYS = 50
Row = tuple[int, str | None, int, str]  # amount, note, number, the letter of the body
START: Row = (0, None, 0, "a")


class Model:
    """Both sides, change by change, as the handlers say."""

    def __init__(self, random_: random.Random, deletes: bool) -> None:
        self.random, self.deletes = random_, deletes
        self.source = {table: dict.fromkeys(range(1, 41), START) for table in NAMES}
        self.destination = {table: dict(rows) for table, rows in self.source.items()}
        self.log: Counter[tuple[Any, ...]] = Counter()
        self.numbers = 0

    def transaction(self) -> list[str]:
        keys = self.random.sample(range(1, KEYS + 1), self.random.choice([1, 1, 3, 10]))
        return [self.statement(self.random.choice(NAMES), key) for key in keys]

    def statement(self, table: str, key: int) -> str:
        self.numbers += 1
        note = self.random.choice([None, "x", "y"])
        old = self.source[table].get(key)
        if old is None:
            row: Row = (self.random.choice([1, 2]), note, self.numbers, self.random.choice("ab"))
            self.source[table][key] = row
            self.insert(table, key, row)
            return f"INSERT INTO {table} VALUES ({key}, {row[0]}, {quoted(note)}, {row[2]}, repeat('{row[3]}', 3000))"
        if self.deletes and self.random.random() < 0.3:
            del self.source[table][key]
            self.remove(table, key, old)
            return f"DELETE FROM {table} WHERE id = {key}"
        row = (self.random.choice([1, 2]), note, self.numbers, old[3])
        sets = ""
        if self.random.random() < 0.2:
            row = (*row[:3], self.random.choice([letter for letter in "abc" if letter != old[3]]))
            sets = f", body = repeat('{row[3]}', 3000)"
        self.source[table][key] = row
        self.update(table, key, old, row)
        return f"UPDATE {table} SET amount = {row[0]}, note = {quoted(note)}, number = {row[2]}{sets} WHERE id = {key}"

    def differs(self, table: str, key: int, old: Row) -> bool:
        there = self.destination[table][key]
        return there[:2] != old[:2] if table == "beside" else there != old

    def settle(self, table: str, operation: str, kind: str, key: int, number: int | None) -> bool:
        """Whether the change is made all the same."""
        action = "overwrite" if table == "taken" and kind != "delete_missing" else "discard"
        there = self.destination[table].get(key)
        self.log[table, operation, kind, action, key, number, None if there is None else there[2]] += 1
        return action == "overwrite"

    def insert(self, table: str, key: int, row: Row) -> None:
        if key not in self.destination[table] or self.settle(table, "INSERT", "insert_exists", key, row[2]):
            self.destination[table][key] = row

    def update(self, table: str, key: int, old: Row, row: Row) -> None:
        if key not in self.destination[table]:
            if self.settle(table, "UPDATE", "update_missing", key, row[2]):
                self.destination[table][key] = row
        elif self.differs(table, key, old):
            if self.settle(table, "UPDATE", "update_origin_differs", key, row[2]):
                self.destination[table][key] = row
        else:
            # An unchanged large value does not come.
            body = row[3] if row[3] != old[3] else self.destination[table][key][3]
            self.destination[table][key] = (*row[:3], body)

    def remove(self, table: str, key: int, old: Row) -> None:
        if key not in self.destination[table]:
            self.settle(table, "DELETE", "delete_missing", key, None)
        elif not self.differs(table, key, old) or self.settle(table, "DELETE", "delete_origin_differs", key, None):
            del self.destination[table][key]

    def others(self) -> list[str]:
        """Somebody else's changes of the destination."""
        statements = []
        for table in NAMES:
            for key in self.random.sample(sorted(self.destination[table]), 4):
                amount, note, number, body = self.destination[table][key]
                choice = self.random.randrange(5)
                if choice == 0:
                    del self.destination[table][key]
                    statements.append(f"DELETE FROM {table} WHERE id = {key}")
                    continue
                row: Row = [(amount, "theirs", number, body), (-1, note, number, body), (amount, None, number, body),
                            (amount, note, number, "z")][choice - 1]
                self.destination[table][key] = row
                statements.append(f"UPDATE {table} SET amount = {row[0]}, note = {quoted(row[1])}, "
                                  f"body = repeat('{row[3]}', 3000) WHERE id = {key}")
            key = self.random.randint(41, KEYS)
            if key not in self.destination[table]:
                self.destination[table][key] = (-2, "theirs", -1, "t")
                statements.append(f"INSERT INTO {table} VALUES ({key}, -2, 'theirs', -1, repeat('t', 3000))")
        return statements


def quoted(note: str | None) -> str:
    return "NULL" if note is None else f"'{note}'"


def rows(found: list[tuple[Any, ...]]) -> dict[int, Row]:
    return {key: (int(amount), note, number, body) for key, amount, note, number, body in found}


def assert_as_modelled(scene: Scene, model: Model) -> None:
    read = "SELECT id, amount, note, number, left(body, 1) FROM {} WHERE length(body) = 3000"
    for table in NAMES:
        assert rows(scene.at_source(read.format(table))) == model.source[table]
        assert rows(scene.at_destination(read.format(table))) == model.destination[table]
    assert Counter(scene.at_destination(
        "SELECT table_name, operation, kind, action, (coalesce(new_row, old_row)->>'id')::integer, "
        "(new_row->>'number')::integer, (destination_row->>'number')::integer FROM thalweg.conflict_log")) == model.log
    assert scene.at_destination("SELECT * FROM ledger ORDER BY 1") == scene.at_source("SELECT * FROM ledger ORDER BY 1")


def write(scene: Scene, model: Model, transactions: int) -> None:
    for _ in range(transactions):
        statements = model.transaction()
        model.numbers += 1
        scene.run_at_source(";\n".join(["BEGIN", *statements, f"INSERT INTO ledger VALUES ({model.numbers})", "COMMIT"])
                            + ";")


# Where several transactions make a group, a row that is inserted and deleted meets no conflict: so deletes need groups
# of one transaction to be told exactly.
@pytest.mark.parametrize(("deletes", "group_size"), [(True, 1), (False, 20_000)])
def test_changed_rows_are_noticed_exactly_once_through_kills(scene: Scene, random_: random.Random, deletes: bool,
                                                             group_size: int) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream(conflict_handlers=HANDLERS, conflict_detection=DETECTION, group_size=group_size)
    model = Model(random_, deletes)
    for _ in range(4):
        scene.at_destination(*model.others())
        write(scene, model, 20)
        scene.engine.kill()
        write(scene, model, 10)
        scene.engine.start()
        scene.wait_applied()
    assert_as_modelled(scene, model)
    kinds = Counter[str]()
    for (_, _, kind, *_), count in model.log.items():
        kinds[kind] += count
    assert kinds["update_origin_differs"] > 20, "the load has conflicts of which this test tells something"


def test_a_changed_row_stops_the_stream_without_a_handler_and_is_none_of_it_without_detection(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream(conflict_detection=[{"schema": "public", "table": "kept"}])
    scene.at_destination(*(f"UPDATE {table} SET note = 'theirs' WHERE id = 5" for table in ("kept", "taken")))
    scene.at_source("UPDATE taken SET note = 'ours' WHERE id = 5")
    scene.wait_applied()
    assert scene.at_destination("SELECT note FROM taken WHERE id = 5") == [("ours",)]
    scene.at_source("UPDATE kept SET note = 'ours' WHERE id = 5")
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "apply_conflict"
    assert "not as the source's was before" in error["message"]
    parameters = scene.engine.streams[scene.stream]["parameters"]
    scene.engine.set_stream(scene.stream, parameters={**parameters, "conflict_detection": []})
    scene.engine.retry(scene.stream)
    scene.wait_applied()
    assert scene.at_destination("SELECT note FROM kept WHERE id = 5") == [("ours",)]


def test_the_log_has_both_rows(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream(conflict_detection=[{}], conflict_handlers=HANDLERS)
    scene.at_destination("UPDATE kept SET amount = 9 WHERE id = 5")
    scene.at_source("UPDATE kept SET amount = 3 WHERE id = 5")
    scene.wait_applied()
    (entry,) = scene.engine.request("POST", destination_path(scene.stream) + "/conflicts/search", {})["conflicts"]
    assert (entry["kind"], entry["action"], entry["has_row"]) == ("update_origin_differs", "discard", True)
    assert entry["columns"][1] == {"name": "amount", "is_identity": False, "before": "0.00", "wanted": "3.00",
                                   "there": "9.00"}
    metrics = scene.engine.request("GET", "/metrics")
    assert 'table="kept",kind="update_origin_differs"} 1' in metrics


STOCK = """
    CREATE TABLE stock (id integer PRIMARY KEY, amount integer NOT NULL, note text NOT NULL, changed integer NOT NULL);
    ALTER TABLE stock REPLICA IDENTITY FULL;
    INSERT INTO stock SELECT n, 100, 'start', 0 FROM generate_series(1, 20) AS n;
"""
OF_STOCK = {"kind": "update_origin_differs", "schema": "public", "table": "stock"}
COMBINING = [
    {**OF_STOCK, "action": "delta", "columns": ["amount"]},
    {**OF_STOCK, "action": "maximum", "columns": ["note", "changed"], "by": "changed", "tie": "overwrite"},
    {"kind": "update_missing", "action": "discard"},
]
Item = tuple[int, str, int]  # amount, note, changed


class Shop:
    """Both sides of the stock: amounts add up, and of note and changed the later pair stays."""

    def __init__(self, random_: random.Random) -> None:
        self.random = random_
        self.source: dict[int, Item] = dict.fromkeys(range(1, 21), (100, "start", 0))
        self.destination = dict(self.source)
        self.settled = 0

    def sale(self) -> list[str]:
        statements = []
        for key in self.random.sample(range(1, 21), self.random.choice([1, 2, 5])):
            old = self.source[key]
            new = (old[0] + self.random.choice([-3, 5]), f"n{self.random.randrange(100)}", self.random.randrange(50))
            self.source[key] = new
            self.meet(key, old, new)
            statements.append(f"UPDATE stock SET amount = {new[0]}, note = '{new[1]}', changed = {new[2]} "
                              f"WHERE id = {key}")
        return statements

    def meet(self, key: int, old: Item, new: Item) -> None:
        there = self.destination.get(key)
        if there == old:
            self.destination[key] = new
            return
        self.settled += 1
        if there is None:
            return
        amount = there[0] + new[0] - old[0]
        wins = there[1:] == old[1:] or new[2] >= there[2]
        self.destination[key] = (amount, *(new[1:] if wins else there[1:]))

    def others(self) -> list[str]:
        statements = []
        for key in self.random.sample(sorted(self.destination), 4):
            amount, note, changed = self.destination[key]
            if self.random.random() < 0.1:
                del self.destination[key]
                statements.append(f"DELETE FROM stock WHERE id = {key}")
                continue
            item: Item = self.random.choice([(amount - 7, note, changed),
                                             (amount, "theirs", self.random.randrange(50))])
            self.destination[key] = item
            statements.append(f"UPDATE stock SET amount = {item[0]}, note = '{item[1]}', changed = {item[2]} "
                              f"WHERE id = {key}")
        return statements


def test_groups_of_columns_are_combined_exactly_once_through_kills(scene: Scene, random_: random.Random) -> None:
    scene.run_at_source(STOCK)
    scene.start_stream(conflict_handlers=COMBINING, conflict_detection=[{}])
    shop = Shop(random_)

    def sell(transactions: int) -> None:
        for _ in range(transactions):
            scene.run_at_source(";\n".join(["BEGIN", *shop.sale(), "COMMIT"]) + ";")

    for _ in range(4):
        scene.at_destination(*shop.others())
        sell(20)
        scene.engine.kill()
        sell(10)
        scene.engine.start()
        scene.wait_applied()
    read = "SELECT id, amount, note, changed FROM stock"
    assert {key: item for key, *item in scene.at_source(read)} == {key: [*item] for key, item in shop.source.items()}
    assert {key: item for key, *item in scene.at_destination(read)} == {
        key: [*item] for key, item in shop.destination.items()}
    assert scene.at_destination("SELECT count(*) FROM thalweg.conflict_log") == [(shop.settled,)]
    assert shop.settled > 50, "the load has conflicts of which this test tells something"
