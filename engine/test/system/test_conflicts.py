"""Changes that conflict with rows which somebody else wrote at the destination: settled one by one, while the rest of
their transactions is applied; each in the conflict log exactly once, through kills of the engine."""

import random
from collections import Counter
from typing import Any

import pytest

from harness.cluster import wait_for
from harness.engine import destination_path
from harness.scene import Scene

TABLES = """
    CREATE TABLE kept (id integer PRIMARY KEY, amount integer NOT NULL, number integer NOT NULL);
    CREATE TABLE taken (id integer PRIMARY KEY, amount integer NOT NULL, number integer NOT NULL);
    CREATE TABLE ledger (number integer PRIMARY KEY);
    INSERT INTO kept SELECT n, 0, 0 FROM generate_series(1, 60) AS n;
    INSERT INTO taken SELECT n, 0, 0 FROM generate_series(1, 60) AS n;
"""
# A destination of its own mind.
OTHERS = ("DELETE FROM kept WHERE id % 5 = 0", "DELETE FROM taken WHERE id % 5 = 0",
          "INSERT INTO kept SELECT n, -n, -1 FROM generate_series(61, 90) AS n",
          "INSERT INTO taken SELECT n, -n, -1 FROM generate_series(61, 90) AS n",
          "ALTER TABLE kept ADD CONSTRAINT small CHECK (amount < 100)")
HANDLERS = [
    {"kind": "insert_exists", "schema": "public", "table": "taken", "action": "overwrite"},
    {"kind": "update_missing", "schema": "public", "table": "taken", "action": "overwrite"},
    {"kind": "insert_exists", "action": "discard"},
    {"kind": "update_missing", "action": "discard"},
    {"kind": "delete_missing", "action": "discard"},
]
POLICIES = [{"error": "23514", "action": "skip"}]
KEYS = 90
Row = tuple[int, int]  # amount, number


class Model:
    """Both sides, change by change, as the handlers say."""

    def __init__(self) -> None:
        self.source: dict[str, dict[int, Row]] = {
            table: dict.fromkeys(range(1, 61), (0, 0)) for table in ("kept", "taken")}
        self.destination: dict[str, dict[int, Row]] = {}
        for table in ("kept", "taken"):
            rows = {key: (0, 0) for key in range(1, 61) if key % 5}
            self.destination[table] = rows | {key: (-key, -1) for key in range(61, 91)}
        self.log: Counter[tuple[Any, ...]] = Counter()
        self.numbers = 0

    def transaction(self, random_: random.Random, deletes: bool) -> list[str]:
        keys = random_.sample(range(1, KEYS + 1), random_.choice([1, 1, 3, 10]))
        return [self.statement(random_, key, deletes) for key in keys]

    def statement(self, random_: random.Random, key: int, deletes: bool) -> str:
        table = random_.choice(["kept", "taken"])
        self.numbers += 1
        row = (random_.choice([1, 2, 3, 500 if deletes else 4]), self.numbers)
        if key not in self.source[table]:
            self.source[table][key] = row
            self.insert(table, key, row)
            return f"INSERT INTO {table} VALUES ({key}, {row[0]}, {row[1]})"
        if deletes and random_.random() < 0.3:
            del self.source[table][key]
            self.remove(table, key)
            return f"DELETE FROM {table} WHERE id = {key}"
        self.source[table][key] = row
        self.update(table, key, row)
        return f"UPDATE {table} SET amount = {row[0]}, number = {row[1]} WHERE id = {key}"

    def insert(self, table: str, key: int, row: Row) -> None:
        # Constraints are checked before unique keys.
        if table == "kept" and row[0] >= 100:
            self.log[table, "INSERT", "", "skip", key, row[1], None] += 1
        elif key not in self.destination[table]:
            self.destination[table][key] = row
        else:
            action = "overwrite" if table == "taken" else "discard"
            there = self.destination[table][key][1]
            self.log[table, "INSERT", "insert_exists", action, key, row[1], there] += 1
            if action == "overwrite":
                self.destination[table][key] = row

    def update(self, table: str, key: int, row: Row) -> None:
        if key not in self.destination[table]:
            action = "overwrite" if table == "taken" else "discard"
            self.log[table, "UPDATE", "update_missing", action, key, row[1], None] += 1
            if action == "overwrite":
                self.destination[table][key] = row
        elif table == "kept" and row[0] >= 100:
            self.log[table, "UPDATE", "", "skip", key, row[1], self.destination[table][key][1]] += 1
        else:
            self.destination[table][key] = row

    def remove(self, table: str, key: int) -> None:
        if key in self.destination[table]:
            del self.destination[table][key]
        else:
            self.log[table, "DELETE", "delete_missing", "discard", key, None, None] += 1


def logged(scene: Scene) -> Counter[tuple[Any, ...]]:
    return Counter(scene.at_destination(
        "SELECT table_name, operation, kind, action, (coalesce(new_row, old_row)->>'id')::integer, "
        "(new_row->>'number')::integer, (destination_row->>'number')::integer FROM thalweg.conflict_log"))


def rows(found: list[tuple[Any, ...]]) -> dict[int, Row]:
    return {key: (amount, number) for key, amount, number in found}


def assert_as_modelled(scene: Scene, model: Model) -> None:
    for table in ("kept", "taken"):
        assert rows(scene.at_source(f"SELECT * FROM {table}")) == model.source[table]
        assert rows(scene.at_destination(f"SELECT * FROM {table}")) == model.destination[table]
    assert logged(scene) == model.log
    assert scene.at_destination("SELECT * FROM ledger ORDER BY 1") == scene.at_source("SELECT * FROM ledger ORDER BY 1")


def write(scene: Scene, model: Model, random_: random.Random, transactions: int, deletes: bool) -> None:
    for _ in range(transactions):
        statements = model.transaction(random_, deletes)
        model.numbers += 1
        scene.run_at_source(";\n".join(["BEGIN", *statements, f"INSERT INTO ledger VALUES ({model.numbers})", "COMMIT"])
                            + ";")


def start(scene: Scene, **parameters: Any) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream(conflict_handlers=HANDLERS, error_policies=POLICIES, **parameters)
    scene.at_destination(*OTHERS)


# Where several transactions make a group, apply merges what they do to a row: one that is inserted and deleted meets no
# conflict, and a value that the next one replaces is never refused. So deletes, and values that are refused, need
# groups of one transaction to be told exactly.
@pytest.mark.parametrize(("deletes", "group_size"), [(True, 1), (False, 20_000)])
def test_conflicts_are_settled_exactly_once_through_kills(scene: Scene, random_: random.Random, deletes: bool,
                                                          group_size: int) -> None:
    start(scene, group_size=group_size)
    model = Model()
    for _ in range(4):
        write(scene, model, random_, 25, deletes)
        scene.engine.kill()
        write(scene, model, random_, 10, deletes)
        scene.engine.start()
    write(scene, model, random_, 10, deletes)
    scene.wait_applied()
    assert_as_modelled(scene, model)
    assert sum(model.log.values()) > 50, "the load has conflicts of which this test tells something"


def test_a_large_transaction_with_conflicts_in_the_middle_of_it(scene: Scene) -> None:
    start(scene, txn_lcr_spill_threshold=1000)
    rows_ = 20_000
    scene.run_at_source("BEGIN; UPDATE kept SET amount = 7, number = id;"
                        f"INSERT INTO taken SELECT n, n, n FROM generate_series(61, {rows_}) AS n; COMMIT;")
    scene.wait_applied()
    assert scene.at_destination("SELECT count(*), sum(number) FROM taken WHERE id > 60") == \
        scene.at_source("SELECT count(*), sum(number) FROM taken WHERE id > 60")
    assert scene.at_destination("SELECT kind, action, count(*), count(DISTINCT change) FROM thalweg.conflict_log "
                                "GROUP BY 1, 2 ORDER BY 1") == [("insert_exists", "overwrite", 30, 30),
                                                                ("update_missing", "discard", 12, 12)]


def test_the_log_is_read_through_the_engine(scene: Scene) -> None:
    start(scene)
    # In one transaction, for the log's order: several would be applied beside each other.
    scene.run_at_source("BEGIN; INSERT INTO kept VALUES (70, 1, 1); UPDATE kept SET amount = 2 WHERE id = 5;"
                        "INSERT INTO kept VALUES (91, 500, 2); COMMIT;")
    scene.wait_applied()
    path = destination_path(scene.stream) + "/conflicts"
    counts = scene.engine.request("GET", path)["counts"]
    assert {(count["kind"], count["sqlstate"], count["action"], count["changes"]) for count in counts} == {
        ("insert_exists", "", "discard", 1), ("update_missing", "", "discard", 1), ("", "23514", "skip", 1)}
    page = scene.engine.request("POST", path + "/search", {"limit": 2})
    assert [entry["kind"] for entry in page["conflicts"]] == ["", "update_missing"]
    rest = scene.engine.request("POST", path + "/search", {"limit": 2, "before": page["next_before"]})
    assert [entry["kind"] for entry in rest["conflicts"]] == ["insert_exists"]
    assert rest["next_before"] is None
    assert rest["conflicts"][0]["columns"][1] == {"name": "amount", "is_identity": False, "wanted": "1", "there": "-70"}
    only = scene.engine.request("POST", path + "/search", {"kind": "error", "schema": "public", "table": "kept"})
    assert [entry["sqlstate"] for entry in only["conflicts"]] == ["23514"]
    metrics = scene.engine.request("GET", "/metrics")
    assert 'thalweg_conflicts_total{stream="' in metrics
    assert 'table="kept",kind="update_missing"} 1' in metrics


def test_handlers_change_while_the_stream_runs(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    scene.start_stream()
    scene.at_destination(*OTHERS)
    scene.at_source("UPDATE kept SET amount = 1 WHERE id = 5")
    assert scene.engine.wait_aborted(scene.stream)["code"] == "apply_conflict", "no handler: nothing is left out"
    parameters = scene.engine.streams[scene.stream]["parameters"]
    scene.engine.set_stream(scene.stream, parameters={**parameters, "conflict_handlers": HANDLERS})
    scene.engine.retry(scene.stream)
    scene.wait_applied()
    assert [kind for _, _, kind, *_ in logged(scene)] == ["update_missing"]
    # The log of old entries is emptied by a start.
    scene.at_destination("UPDATE thalweg.conflict_log SET logged_at = now() - interval '40 days'")
    scene.engine.kill()
    scene.engine.start()
    wait_for(lambda: not logged(scene), 30, "old entries are removed")
