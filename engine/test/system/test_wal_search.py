"""Searches in the WAL that is kept: what is found is what was committed, and nothing that is masked is shown."""

import itertools
import json
import random
import time
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.compare import Table
from harness.crashes import kill_engine
from harness.engine import SECONDS, RefusedError, parse_lsn
from harness.mining import part, start_mining
from harness.scene import Scene
from harness.workload import Writers
from test_transformations import make_target, set_steps

MIB = 1 << 20

# The ledger has each committed change of an order, in the order of its transaction.
TABLES = """
CREATE TABLE orders (id bigint PRIMARY KEY, stamp bigint NOT NULL, region text, note text);
ALTER TABLE orders ALTER note SET STORAGE EXTERNAL;
CREATE TABLE bulk (id bigint PRIMARY KEY, body text);
CREATE TABLE ledger (number bigint PRIMARY KEY, xid xid8, operation text, old jsonb, new jsonb);
CREATE SEQUENCE stamps;
CREATE SEQUENCE numbers;
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ledger VALUES (nextval('numbers'), pg_current_xact_id(), TG_OP,
                             CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END,
                             CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END);
  RETURN NULL;
END $$;
CREATE TRIGGER noted AFTER INSERT OR UPDATE OR DELETE ON orders FOR EACH ROW EXECUTE FUNCTION note_change();
"""
WANTED: list[Table] = [("public", "orders"), ("public", "bulk")]
ORDERS = {"schema": "public", "table": "orders"}


def path(scene: Scene) -> str:
    return f"/v1/streams/{scene.stream}/searches"


def kept(scene: Scene) -> dict[str, Any]:
    return dict(scene.engine.request("GET", path(scene)))


def wait_kept(scene: Scene) -> dict[str, Any]:
    def has_begun() -> bool:
        try:
            return bool(kept(scene)["kept_from"])
        except RefusedError as refused:
            assert refused.error["code"] == "search_refused"
            return False
    wait_for(has_begun, SECONDS, "something is kept")
    return kept(scene)


def search(scene: Scene, seconds: float = SECONDS, **body: Any) -> dict[str, Any]:
    """To its end, with all of its changes."""
    begun = scene.engine.request("POST", path(scene), body)
    one = f"{path(scene)}/{begun['id']}"
    wait_for(lambda: scene.engine.request("GET", f"{one}?limit=1")["state"] != "RUNNING", seconds, "it has ended")
    changes: list[dict[str, Any]] = []
    after = 0
    while True:
        found = dict(scene.engine.request("GET", f"{one}?after={after}&limit=500&whole=1"))
        changes += found["changes"]
        if found["next_after"] is None:
            break
        after = found["next_after"]
    assert [change["number"] for change in changes] == list(range(1, len(changes) + 1))
    assert found["found"] == len(changes)
    return found | {"changes": changes}


def done(scene: Scene, **body: Any) -> list[dict[str, Any]]:
    found = search(scene, **body)
    assert found["state"] == "DONE", found["error"]
    assert found["mined_bytes"] == found["total_bytes"] or found["truncated"]
    return list(found["changes"])


def again_until_done(scene: Scene, **body: Any) -> list[dict[str, Any]]:
    """The search's own cure where the limit of staging overtook it: the source writes WAL without a load, too."""
    for _ in range(5):
        found = search(scene, **body)
        if found["state"] == "DONE":
            return list(found["changes"])
        assert found["error"]["code"] == "search_overtaken", found["error"]
    raise AssertionError("each of five searches was overtaken")


def row(change: dict[str, Any], side: str) -> dict[str, str | None]:
    """The known values of one side."""
    return {column["name"]: column[side]["text"] for column in change["columns"] if column[side] is not None}


def text(value: Any) -> str | None:
    return None if value is None else str(value)


def write(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
    """Small and large transactions with values that are stored apart; some are rolled back, some in part."""
    def change() -> None:
        key = random_.randrange(100) * 10 + number
        kind = random_.randrange(6)
        region = random_.choice(("north", "south", None))
        if kind < 2:
            note = random_.choice((None, "a", random_.randbytes(3000).hex()))
            connection.execute("INSERT INTO orders VALUES (%s, nextval('stamps'), %s, %s) ON CONFLICT DO NOTHING",
                               (key, region, note))
        elif kind < 4:
            connection.execute("UPDATE orders SET stamp = nextval('stamps'), region = %s WHERE id = %s", (region, key))
        elif kind == 4:
            connection.execute("UPDATE orders SET id = id + 1000, stamp = nextval('stamps') WHERE id = %s AND NOT "
                               "EXISTS (SELECT FROM orders WHERE id = %s)", (key, key + 1000))
        else:
            connection.execute("DELETE FROM orders WHERE id = %s", (key,))

    connection.execute("BEGIN")
    for _ in range(random_.choice((1, 3, 40))):
        change()
    if random_.random() < 0.4:
        connection.execute("SAVEPOINT part")
        for _ in range(20):
            change()
        connection.execute(random_.choice(("RELEASE part", "ROLLBACK TO part")))
        change()
    connection.execute("ROLLBACK" if random_.random() < 0.25 else "COMMIT")


def ledger(scene: Scene) -> dict[int, list[tuple[str, Any, Any]]]:
    """By transaction; its id is without the epoch."""
    found: dict[int, list[tuple[str, Any, Any]]] = {}
    rows = scene.at_source("SELECT xid::text, operation, old, new FROM ledger ORDER BY number")
    for xid, operation, old, new in rows:
        found.setdefault(int(str(xid)) % 2**32, []).append((str(operation), old, new))
    return found


def assert_is(change: dict[str, Any], operation: str, old: Any, new: Any) -> None:
    assert (change["operation"], change["schema"], change["table"]) == (operation, "public", "orders")
    assert [column["name"] for column in change["columns"]] == ["id", "stamp", "region", "note"]
    assert [column["type"] for column in change["columns"]] == ["bigint", "bigint", "text", "text"]
    for side, wanted in (("before", old), ("after", new)):
        known = row(change, side)
        if wanted is None:
            assert known == {}
            continue
        assert known == {name: text(value) for name, value in wanted.items() if name in known}
        missing = set(wanted) - set(known)
        if side == "after":
            assert missing <= {"note"}
            assert not missing or (operation == "UPDATE" and len(wanted["note"]) > 2000), "it came with the row"
        elif change["before_is"] == "identity":
            assert set(known) == {"id"}


def assert_as_committed(changes: list[dict[str, Any]], wanted: dict[int, list[tuple[str, Any, Any]]]) -> None:
    """Each transaction whole, one after the other in the order of their commits."""
    positions = [parse_lsn(change["commit_lsn"]) for change in changes]
    assert positions == sorted(positions)
    found: dict[int, list[dict[str, Any]]] = {}
    last = None
    for change in changes:
        assert change["xid"] == last or change["xid"] not in found, "a transaction in two pieces"
        last = change["xid"]
        found.setdefault(last, []).append(change)
    assert set(found) == set(wanted)
    for xid, of_transaction in found.items():
        assert len(of_transaction) == len(wanted[xid])
        for change, (operation, old, new) in zip(of_transaction, wanted[xid], strict=True):
            assert_is(change, operation, old, new)


@pytest.mark.timeout(600)  # twenty searches, each through all of the WAL
def test_what_is_found_was_committed(scene: Scene, random_: random.Random) -> None:
    """Under load, beside a transaction that comes in pieces, some of which was rolled back, and through restarts."""
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED)
    begun = wait_kept(scene)
    with Writers(scene.source, scene.database, 3, random_, write):
        with scene.source.connect(scene.database, "thalweg") as session:
            session.execute("BEGIN")
            session.execute("INSERT INTO orders VALUES (900001, 0, 'piece', NULL)")
            session.execute("INSERT INTO bulk SELECT n, repeat(md5(n::text), 25) FROM generate_series(1, 30000) n")
            session.execute("SAVEPOINT gone")
            session.execute("INSERT INTO orders VALUES (900002, 0, 'gone', NULL)")
            session.execute("INSERT INTO bulk SELECT n, repeat(md5(n::text), 25) FROM "
                            "generate_series(30001, 50000) n")
            session.execute("ROLLBACK TO gone")
            session.execute("INSERT INTO orders VALUES (900003, 0, 'piece', NULL)")
            session.execute("COMMIT")
        time.sleep(1)
        assert scene.engine.terminate() == 0
        scene.engine.start()
        scene.wait_replicating()
        time.sleep(1)
        kill_engine(scene)
        time.sleep(1)
    scene.wait_applied(2 * SECONDS)
    assert parse_lsn(kept(scene)["kept_from"]) <= parse_lsn(begun["kept_from"]), "restarts keep what was kept"
    wanted = ledger(scene)
    changes = done(scene, table=ORDERS, limit=10000)
    assert_as_committed(changes, wanted)
    pieces = [row(change, "after")["id"] for change in changes if row(change, "after").get("region") == "piece"]
    assert pieces == ["900001", "900003"]
    # A transaction, a range, and a key.
    xid = random_.choice(sorted(wanted))
    assert_as_committed(done(scene, table=ORDERS, xid=xid), {xid: wanted[xid]})
    middle = changes[len(changes) // 2]["commit_lsn"]
    limits = [parse_lsn(change["commit_lsn"]) < parse_lsn(middle) for change in changes]
    assert [change["lsn"] for change in done(scene, table=ORDERS, to=middle, limit=10000)] == [
        change["lsn"] for change, is_before in zip(changes, limits, strict=True) if is_before]
    assert [change["lsn"] for change in done(scene, table=ORDERS, **{"from": middle}, limit=10000)] == [
        change["lsn"] for change, is_before in zip(changes, limits, strict=True) if not is_before]
    at = changes[len(changes) // 2]["commit_time"]
    assert [change["lsn"] for change in done(scene, table=ORDERS, from_time=at, limit=10000)] == [
        change["lsn"] for change in changes if change["commit_time"] >= at]
    first = search(scene, table=ORDERS, limit=5)
    assert (len(first["changes"]), first["truncated"]) == (5, True)
    keys = {row(change, side)["id"] for change in changes for side in ("before", "after") if "id" in row(change, side)}
    followed = 0
    for key in random_.sample(sorted(str(key) for key in keys), 8):
        of_key = done(scene, table=ORDERS, key={"id": key})
        expected = [(xid, one) for xid in dict.fromkeys(change["xid"] for change in changes) for one in wanted[xid]
                    if key in {text(side["id"]) for side in one[1:] if side is not None}]
        assert [change["xid"] for change in of_key] == [xid for xid, _ in expected]
        for change, (_, (operation, old, new)) in zip(of_key, expected, strict=True):
            assert_is(change, operation, old, new)
            if change["before_is"] == "followed":
                followed += 1
                assert set(row(change, "before")) >= {"id", "stamp", "region"}
                assert set(row(change, "after")) >= {"id", "stamp", "region"} or new is None
    assert followed > 0


def test_names_as_of_then(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED)
    wait_kept(scene)
    scene.at_destination("ALTER TABLE orders ADD COLUMN remark text")
    scene.run_at_source("INSERT INTO orders VALUES (1, 1, 'north', 'before');"
                        "ALTER TABLE orders RENAME COLUMN note TO remark;"
                        "UPDATE orders SET remark = 'after' WHERE id = 1;"
                        "ALTER TABLE bulk REPLICA IDENTITY FULL;"
                        "INSERT INTO bulk VALUES (1, 'x'); UPDATE bulk SET body = NULL WHERE id = 1; TRUNCATE bulk;")
    scene.wait_applied()
    first, second = done(scene, table=ORDERS, key={"id": "1"})
    assert row(first, "after")["note"] == "before"
    assert (row(second, "before")["remark"], row(second, "after")["remark"]) == ("before", "after")
    assert second["before_is"] == "followed"
    inserted, updated, emptied = done(scene, table={"schema": "public", "table": "bulk"})
    assert (updated["before_is"], row(updated, "before")) == ("whole", {"id": "1", "body": "x"})
    assert row(updated, "after") == {"id": "1", "body": None}
    assert (emptied["operation"], emptied["columns"]) == ("TRUNCATE", [])
    assert inserted["origin"] is None
    for body, code in (({"table": ORDERS, "key": {"note": "x"}}, "/key/note"),
                       ({"table": ORDERS, "key": {"id": "x"}}, "/key/id"),
                       ({"key": {"id": "1"}}, "/key")):
        with pytest.raises(RefusedError) as refused:
            scene.engine.request("POST", path(scene), body)
        assert (refused.value.status, refused.value.error["code"]) == (400, "invalid_request")
        assert code in refused.value.error["message"]


def test_what_is_not_known_is_neither_found_nor_filled_in(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED)
    wait_kept(scene)
    scene.run_at_source("INSERT INTO orders VALUES (1, 1, 'north', 'a'), (2, 1, NULL, 'b'), (3, 1, 'south', 'c')")
    scene.run_at_source("DELETE FROM orders WHERE id = 1")
    scene.run_at_source("UPDATE orders SET id = 30 WHERE id = 3")
    scene.run_at_source("ALTER TABLE orders REPLICA IDENTITY FULL")
    scene.run_at_source("UPDATE orders SET region = 'east' WHERE id = 2")
    scene.run_at_source("ALTER TABLE orders REPLICA IDENTITY DEFAULT")
    scene.run_at_source("UPDATE orders SET note = 'd' WHERE id = 2")
    scene.wait_applied()
    inserted, updated = done(scene, table=ORDERS, key={"region": None})
    assert [row(change, "after")["id"] for change in (inserted, updated)] == ["2", "2"]
    last = done(scene, table=ORDERS, key={"id": "2"})[-1]
    assert (last["before_is"], row(last, "before")) == ("identity", {"id": "2"}), "FULL was not followed"


def test_masked_values_are_never_shown(scene: Scene) -> None:
    """Under no name of the column, and not after the mask was taken away either."""
    secret = "anna@example.org"
    scene.run_at_source("CREATE TABLE people (id int PRIMARY KEY, mail text, town varchar(4), secret text);")
    make_target(scene, "CREATE TABLE people (id int PRIMARY KEY, mail text, town varchar(4))")
    scene.engine.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, [("public", "people")],
                               {}, capture_kind="wal")
    set_steps(scene, [{"type": "mask_column", "column": "mail", "with": "null"},
                      {"type": "drop_column", "column": "secret"}])
    scene.engine.put_desired()
    scene.wait_replicating()
    wait_kept(scene)
    people = {"schema": "public", "table": "people"}
    scene.run_at_source(f"INSERT INTO people VALUES (1, '{secret}', 'Rome', '{secret}');"
                        f"UPDATE people SET mail = 'b' || '{secret}' WHERE id = 1;")
    scene.wait_applied()

    def shown() -> list[dict[str, Any]]:
        changes = done(scene, table=people, key={"id": "1"}) + done(scene)
        assert secret not in json.dumps(changes)
        return changes

    first = shown()[0]
    masked = {"text": None, "cut": False, "masked": True}
    assert {column["name"]: column["after"] for column in first["columns"]} == {
        "id": {"text": "1", "cut": False, "masked": False}, "mail": masked,
        "town": {"text": "Rome", "cut": False, "masked": False}, "secret": masked}
    assert len(done(scene, table=people, key={"town": "Rome"})) == 2
    for column, value in (("mail", secret), ("secret", secret), ("town", "Romeo")):
        with pytest.raises(RefusedError) as refused:
            scene.engine.request("POST", path(scene), {"table": people, "key": {column: value}})
        assert refused.value.error["code"] == "invalid_request"
        assert f"/key/{column}" in refused.value.error["message"]
    scene.run_at_source("ALTER TABLE people RENAME COLUMN mail TO email")
    shown()
    set_steps(scene, [{"type": "mask_column", "column": "email", "with": "null"},
                      {"type": "drop_column", "column": "secret"}])
    scene.at_destination("ALTER TABLE people RENAME COLUMN mail TO email")
    assert kept(scene)["searches"] != []
    scene.engine.put_desired()
    assert kept(scene)["searches"] == [], "they have found what another mask may hide"
    scene.wait_replicating()
    scene.engine.wait_in_effect(scene.stream)
    scene.run_at_source(f"UPDATE people SET email = '{secret}' WHERE id = 1;")
    scene.wait_applied()
    shown()
    set_steps(scene, [{"type": "drop_column", "column": "secret"}])
    scene.engine.put_desired()
    scene.wait_replicating()
    scene.engine.wait_in_effect(scene.stream)
    shown()
    scene.run_at_source("UPDATE people SET email = 'clear' WHERE id = 1;")
    scene.wait_applied()
    last = shown()[-1]
    assert row(last, "after")["email"] == "clear", "what is no longer masked is shown from then on"


def fill(scene: Scene, megabytes: int) -> None:
    for n in range(megabytes // 4):
        scene.run_at_source("SELECT pg_logical_emit_message(false, 'filler', repeat('x', 4000000)); "
                            f"INSERT INTO bulk VALUES ({1000 + n + random.randrange(10**9)}, 'filler');")


def test_nothing_is_kept_where_nobody_wants_it(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED, wal_keep_mb=0, staging_limit_mb=64)
    begun = wait_kept(scene)
    scene.run_at_source("INSERT INTO orders VALUES (1, 1, 'early', NULL)")
    fill(scene, 80)
    scene.wait_applied()
    wait_for(lambda: parse_lsn(kept(scene)["kept_from"]) > parse_lsn(begun["kept_from"]) + 32 * MIB, SECONDS,
             "what was before is gone")
    # The WAL may still be going while it is searched.
    ends = iter(lambda: search(scene, table=ORDERS), None)
    found = next(found for found in itertools.islice(ends, 10) if found["state"] == "DONE")
    assert found["changes"] == []
    with pytest.raises(RefusedError) as refused:
        scene.engine.request("POST", path(scene), {"to": begun["kept_from"]})
    assert (refused.value.status, refused.value.error["code"]) == (409, "search_refused")


def test_a_full_staging_gives_up_what_is_kept(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED, staging_limit_mb=96)
    begun = wait_kept(scene)
    scene.run_at_source("INSERT INTO orders VALUES (1, 1, 'early', NULL)")
    fill(scene, 40)
    scene.wait_applied()
    assert kept(scene)["kept_from"] == begun["kept_from"]
    assert len(done(scene, table=ORDERS)) == 1
    for _ in range(3):
        fill(scene, 80)
        scene.wait_applied()
        shipped = part(scene, "WAL SHIPMENT")
        assert shipped["gauges"]["staged_bytes"] <= 100 * MIB
        assert shipped["state"] == "RECEIVING WAL"
    now = kept(scene)
    assert parse_lsn(now["kept_from"]) > parse_lsn(begun["kept_from"])
    assert now["kept_bytes"] > 16 * MIB, "some is kept"
    only_kept = part(scene, "LOGMINER BUILDER")["gauges"]["kept_bytes"]
    assert 0 < only_kept <= part(scene, "WAL SHIPMENT")["gauges"]["staged_bytes"]
    assert again_until_done(scene, table=ORDERS) == []


def test_a_search_is_overtaken(scene: Scene) -> None:
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED)
    wait_kept(scene)
    fill(scene, 64)
    scene.wait_applied()
    staging = scene.engine.directory / "state" / "spill" / scene.stream / "mined-wal" / "staging"
    segments = sorted(staging.iterdir())
    segments[1].unlink()
    found = search(scene)
    assert (found["state"], found["error"]["code"]) == ("FAILED", "search_overtaken")
    assert found["error"]["lsn"]


def test_searches_come_and_go(scene: Scene) -> None:
    """One at a time for a stream; a stop and a deletion do not wait for them."""
    scene.run_at_source(TABLES)
    start_mining(scene, WANTED)
    wait_kept(scene)
    fill(scene, 160)
    scene.wait_applied()
    running = scene.engine.request("POST", path(scene), {})
    with pytest.raises(RefusedError) as refused:
        scene.engine.request("POST", path(scene), {})
    assert (refused.value.status, refused.value.error["code"]) == (503, "search_busy")
    assert running["id"] in [one["id"] for one in kept(scene)["searches"]]
    scene.engine.request("DELETE", f"{path(scene)}/{running['id']}")
    with pytest.raises(RefusedError) as refused:
        scene.engine.request("GET", f"{path(scene)}/{running['id']}")
    assert (refused.value.status, refused.value.error["code"]) == (404, "unknown_search")
    for _ in range(5):
        done(scene, table=ORDERS)
    assert len(kept(scene)["searches"]) == 4
    scene.engine.request("POST", path(scene), {})
    begun = time.monotonic()
    assert scene.engine.terminate() == 0
    assert time.monotonic() - begun < 10
    scene.engine.start()
    scene.wait_replicating()
    scene.engine.request("POST", path(scene), {})
    scene.engine.drop_stream(scene.stream)
    scene.assert_nothing_left()
