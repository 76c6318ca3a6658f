"""Transformations of tables: what is copied and what is replicated agree with the same expressions at the source, and
what is masked is nowhere but there."""

import hashlib
import hmac
import random
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from harness.cluster import wait_for
from harness.compare import user_tables
from harness.engine import RefusedError, applied_there, destination_path
from harness.paths import EnginePair
from harness.scene import Scene
from harness.workload import Writers
from test_rules import define, restart_by_force, rule

PEOPLE = """
CREATE TABLE people (id bigint PRIMARY KEY, mail varchar(40), phone text, born date, salary numeric(10, 2),
                     tags text[], notes text, extra jsonb);
"""
FILLED = PEOPLE + """
INSERT INTO people SELECT k, CASE WHEN k % 5 > 0 THEN 'mäil' || k || '@example.org' END, '+49 30 ' || k,
                          date '1950-01-01' + k::int, k * 1.25, ARRAY['a', 'b' || k], repeat('secret ', (k % 9)::int),
                          jsonb_build_object('k', k)
  FROM generate_series(1, 3000) k;
"""
STEPS = [{"type": "drop_column", "column": "notes"},
         {"type": "rename_column", "column": "mail", "to": "email"},
         {"type": "rename_column", "column": "id", "to": "number"},
         {"type": "mask_column", "column": "email", "with": "partial", "keep_first": 1, "keep_last": 4},
         {"type": "mask_column", "column": "born", "with": "constant", "value": "1970-01-01"},
         {"type": "mask_column", "column": "phone", "with": "null"},
         {"type": "mask_column", "column": "extra", "with": "constant", "value": '{"was": null}'}]
TARGET = """
CREATE TABLE people (number bigint PRIMARY KEY, email varchar(40), phone text, born date, salary numeric(10, 2),
                     tags text[], extra jsonb, seen_at integer DEFAULT 7)
"""
# The same in SQL; of what follows the key, the model has nothing but the columns that are sent.
MODEL = """SELECT id, CASE WHEN char_length(mail) > 5 THEN left(mail, 1) || repeat('*', char_length(mail) - 5)
                           || right(mail, 4) ELSE repeat('*', char_length(mail)) END,
           NULL::text, date '1970-01-01', salary, tags, '{"was": null}'::jsonb FROM people"""
SENT = "SELECT number, email, phone, born, salary, tags, extra FROM people"

MASK_KEY = "PLANTED-KEY-of-at-least-32-characters"
CLIENTS = """
CREATE TABLE clients (id bigint PRIMARY KEY, mail text, city varchar(20));
CREATE TABLE orders (id bigint PRIMARY KEY, client text);
CREATE TABLE cards (id bigint PRIMARY KEY, number varchar(30));
INSERT INTO cards SELECT k, CASE WHEN k % 7 > 0 THEN '4111 ' || k * 7919 || ' ÄÖ ' || k % 3 END
  FROM generate_series(1, 2000) k;
INSERT INTO clients SELECT k, CASE WHEN k % 5 > 0 THEN 'mäil' || k || '@example.org' END, 'city ' || k % 9
  FROM generate_series(1, 3000) k;
INSERT INTO orders SELECT k, 'mäil' || k % 3000 || '@example.org' FROM generate_series(1, 3000) k;
"""
HASHES = {"clients": [{"type": "mask_column", "column": "mail", "with": "hash"},
                      {"type": "mask_column", "column": "city", "with": "hash"}],
          "orders": [{"type": "mask_column", "column": "client", "with": "hash"}],
          "cards": [{"type": "mask_column", "column": "number", "with": "digits"}]}
JOINED = "SELECT count(*) FROM clients c JOIN orders o ON o.client = c.mail"


def start(scene: Scene, steps: list[dict[str, Any]], rules: dict[str, Any] | None = None, **parameters: Any) -> None:
    define(scene, rules or {}, **parameters)
    set_steps(scene, steps)
    scene.engine.put_desired()
    scene.wait_replicating()


def make_target(scene: Scene, definition: str = TARGET) -> None:
    scene.at_destination(definition, "ALTER TABLE people OWNER TO thalweg")


def set_steps(scene: Scene, steps: list[dict[str, Any]], table: str = "people") -> None:
    for one in scene.engine.streams[scene.stream]["tables"]:
        if one["table"] == table:
            one["transformations"] = steps
    if any(step.get("with") in ("hash", "digits") for step in steps):
        scene.engine.streams[scene.stream]["mask_key"] = MASK_KEY


def assert_sent(scene: Scene, model: str = MODEL, sent: str = SENT, where: str = "true") -> int:
    """Byte by byte, as PostgreSQL sends values."""
    def texts(query: str) -> str:
        return f"SELECT t::text FROM ({query}) t ORDER BY t::text COLLATE \"C\""
    wanted, found = scene.at_source(texts(f"{model} WHERE {where}")), scene.at_destination(texts(sent))
    missing, extra = set(wanted) - set(found), set(found) - set(wanted)
    assert found == wanted, f"missing {sorted(missing)[:5]}, too many {sorted(extra)[:5]}"
    return len(wanted)


def write(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
    """Each writer has keys of its own; some values are stored outside the row and stay as they are."""
    key = random_.randrange(400) * 10 + number
    with connection.transaction():
        for _ in range(random_.randrange(1, 8)):
            kind = random_.random()
            if kind < 0.4:
                mail = random_.choice((None, "", "ä", "anna@example.org", "x" * random_.randrange(40)))
                notes = random_.choice((None, "short", "long " * 3000))
                connection.execute(
                    "INSERT INTO people VALUES (%s, %s, 'clear', '1980-02-03', 5, '{}', %s, '{}') "
                    "ON CONFLICT (id) DO UPDATE SET mail = excluded.mail, salary = people.salary + 1",
                    (key, mail, notes))
            elif kind < 0.7:
                connection.execute("UPDATE people SET phone = 'other', salary = salary * 1.1 WHERE id = %s", (key,))
            elif kind < 0.8:
                connection.execute("UPDATE people SET id = id + 100000 WHERE id = %s AND NOT EXISTS "
                                   "(SELECT FROM people WHERE id = %s)", (key, key + 100_000))
            else:
                connection.execute("DELETE FROM people WHERE id IN (%s, %s)", (key, key + 100_000))


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_copied_and_replicated_rows_agree_with_the_model(scene: Scene, identity: str) -> None:
    scene.run_at_source(FILLED + f"ALTER TABLE people REPLICA IDENTITY {identity};")
    make_target(scene)
    start(scene, STEPS, copy_range_rows=1000)
    assert assert_sent(scene) == 3000
    with Writers(scene.source, scene.database, 3, random.Random(17), write):
        time.sleep(4)
    scene.wait_applied()
    assert assert_sent(scene) > 2500
    assert scene.at_destination("SELECT DISTINCT seen_at FROM people") == [(7,)]


def test_kills_change_nothing(scene: Scene) -> None:
    """During the copy, whose ranges then go on from another snapshot, and while changes come."""
    scene.run_at_source(FILLED)
    make_target(scene)
    random_ = random.Random(29)
    with Writers(scene.source, scene.database, 3, random_, write):
        define(scene, {}, copy_range_rows=1000, copy_workers=1)
        set_steps(scene, STEPS)
        scene.engine.put_desired()
        for _ in range(4):
            time.sleep(random_.uniform(0.2, 1.2))
            restart_by_force(scene)
        scene.wait_replicating()
        time.sleep(1)
        restart_by_force(scene)
    scene.wait_replicating()
    scene.wait_applied()
    assert assert_sent(scene) > 1000


def test_rules_judge_what_is_masked(scene: Scene) -> None:
    """They see the source's rows, and a subset follows them."""
    scene.run_at_source(FILLED + "ALTER TABLE people REPLICA IDENTITY FULL;")
    make_target(scene)
    young = "born >= '1955-01-01'"
    start(scene, STEPS, {"people": {"positive": [rule("young", young, subset=True)]}})
    assert_sent(scene, where=young)
    scene.at_source("UPDATE people SET born = '1950-01-01' WHERE id % 7 = 0",
                    "UPDATE people SET born = '1990-01-01' WHERE id % 11 = 0", "DELETE FROM people WHERE id % 13 = 0")
    scene.wait_applied()
    assert assert_sent(scene, where=young) < 2500
    with pytest.raises(RefusedError) as refused:
        scene.engine.streams[scene.stream]["destinations"][0]["rules"] = [
            {"schema": "public", "table": "people", "positive": []}]
        scene.engine.put_desired()
    assert "transformations" in refused.value.error["message"]


def test_a_column_that_goes_stops_the_stream_in_front_of_the_change(scene: Scene) -> None:
    scene.run_at_source(FILLED)
    make_target(scene)
    start(scene, STEPS)
    scene.at_source("INSERT INTO people (id, mail) VALUES (5001, 'anna@example.org')",
                    "ALTER TABLE people DROP COLUMN extra", "INSERT INTO people (id, mail) VALUES (5002, 'x')")
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "transformation_refused" and error["table"] == '"public"."people"'
    # The steps that fit both forms.
    set_steps(scene, STEPS[:-1])
    scene.engine.put_desired()
    wait_for(lambda: scene.engine.status(scene.stream)["status"] != "ABORTED", 20, "the answer is taken")
    scene.wait_replicating()
    scene.wait_applied()
    assert scene.at_destination("SELECT number, email FROM people WHERE number > 5000 ORDER BY 1") == [
        (5001, "a***********.org"), (5002, "*")]


def test_a_destination_that_cannot_take_the_columns_is_refused(scene: Scene) -> None:
    scene.run_at_source(FILLED)
    define(scene, {})
    set_steps(scene, STEPS)
    scene.engine.put_desired()
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "destination_table_differs" and "create it there" in error["message"]
    make_target(scene, TARGET.replace("phone text", "phone text NOT NULL"))
    scene.engine.retry(scene.stream)
    wait_for(lambda: "masked with NULL" in ((scene.engine.status(scene.stream)["error"] or {}).get("message", "")), 60,
             "the column is refused")
    scene.at_destination("ALTER TABLE people ALTER COLUMN phone DROP NOT NULL")
    set_steps(scene, [*STEPS[:4], {"type": "mask_column", "column": "born", "with": "constant", "value": "now"}])
    scene.engine.put_desired()
    wait_for(lambda: (scene.engine.status(scene.stream)["error"] or {}).get("code") == "transformation_refused", 60,
             "the constant is refused")
    set_steps(scene, STEPS)
    scene.engine.put_desired()
    scene.wait_replicating()
    assert assert_sent(scene) == 3000


KEPT = [{"type": "rename_column", "column": "mail", "to": "email"},
        {"type": "keep_columns", "columns": ["id", "email", "salary"]},
        {"type": "add_column", "column": "site", "data_type": "text", "value": "it's north"},
        {"type": "add_column", "column": "since", "data_type": "date", "value": "2026-11-28"}]


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_columns_that_are_not_kept_stay_and_added_ones_come(scene: Scene, identity: str) -> None:
    """Added ones may be part of the destination's key, and columns that the source gets later do not come."""
    scene.run_at_source(FILLED + f"ALTER TABLE people REPLICA IDENTITY {identity};")
    make_target(scene, "CREATE TABLE people (id bigint, email varchar(40), salary numeric(10, 2), site text, "
                       "since date, UNIQUE (id), PRIMARY KEY (site, id))")
    start(scene, KEPT, copy_range_rows=1000)
    model = "SELECT id, mail, salary, 'it''s north'::text, date '2026-11-28' FROM people"
    sent = "SELECT id, email, salary, site, since FROM people"
    assert assert_sent(scene, model, sent) == 3000
    with Writers(scene.source, scene.database, 3, random.Random(41), write):
        time.sleep(2)
    scene.at_source("ALTER TABLE people ADD later text DEFAULT 'later'", "UPDATE people SET later = 'x' WHERE id < 9")
    scene.wait_applied()
    assert assert_sent(scene, model, sent) > 2500


def hashed(value: str | None, digits: int = 64, key: str = MASK_KEY) -> str | None:
    return None if value is None else hmac.new(key.encode(), value.encode(), hashlib.sha256).hexdigest()[:digits]


def other_digits(value: str | None) -> str | None:
    if value is None:
        return None
    digest = hmac.new(MASK_KEY.encode(), f"digits:{value}".encode(), hashlib.sha256).digest()
    return "".join(str(digest[at % 32] % 10) if one in "0123456789" else one for at, one in enumerate(value))


def assert_hashed(scene: Scene) -> int:
    clients = [(key, hashed(mail), hashed(city, 20))
               for key, mail, city in scene.at_source("SELECT id, mail, city FROM clients ORDER BY id")]
    orders = [(key, hashed(client)) for key, client in scene.at_source("SELECT id, client FROM orders ORDER BY id")]
    assert scene.at_destination("SELECT id, mail, city FROM clients ORDER BY id") == clients
    assert scene.at_destination("SELECT id, client FROM orders ORDER BY id") == orders
    cards = [(key, other_digits(number)) for key, number in scene.at_source("SELECT id, number FROM cards ORDER BY id")]
    assert scene.at_destination("SELECT id, number FROM cards ORDER BY id") == cards
    assert scene.at_destination(JOINED) == scene.at_source(JOINED) > [(1000,)]
    return len(clients)


def write_clients(connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
    key = random_.randrange(600) * 10 + number
    mail = random_.choice((None, "", f"mäil{key % 50}@example.org", "x" * random_.randrange(5000)))
    with connection.transaction():
        connection.execute("INSERT INTO clients VALUES (%s, %s, 'here') ON CONFLICT (id) DO UPDATE "
                           "SET mail = excluded.mail", (key, mail))
        connection.execute("UPDATE clients SET city = %s WHERE id = %s", (f"city {key % 7}", key + 10))
        connection.execute("INSERT INTO orders VALUES (%s, %s) ON CONFLICT (id) DO UPDATE "
                           "SET client = excluded.client", (key, mail))
        connection.execute("DELETE FROM clients WHERE id = %s", (key + 20,))
        connection.execute("UPDATE cards SET number = %s || number WHERE id = %s AND length(number) < 25",
                           (str(key % 3), key))


def start_hashing(scene: Scene, **parameters: Any) -> None:
    define(scene, {}, **parameters)
    for table, steps in HASHES.items():
        set_steps(scene, steps, table)
    scene.engine.put_desired()


def test_hashes_keep_joins_through_kills(scene: Scene) -> None:
    """Across tables, and between the copy, whose hashes the source computes, and what is replicated."""
    scene.run_at_source(CLIENTS)
    random_ = random.Random(31)
    with Writers(scene.source, scene.database, 3, random_, write_clients):
        start_hashing(scene, copy_range_rows=1000, copy_workers=1)
        for _ in range(3):
            time.sleep(random_.uniform(0.2, 1.2))
            restart_by_force(scene)
        scene.wait_replicating()
        time.sleep(2)
        restart_by_force(scene)
    scene.wait_replicating()
    scene.wait_applied()
    assert assert_hashed(scene) > 1000


def test_another_key_hashes_otherwise_from_one_position_on(scene: Scene) -> None:
    scene.run_at_source(CLIENTS)
    start_hashing(scene)
    scene.wait_replicating()
    assert assert_hashed(scene) == 3000
    other = "another key of at least 32 characters"
    def sessions() -> int:
        return scene.engine.log.read_text(errors="replace").count("session_begun")

    before = sessions()
    scene.engine.streams[scene.stream]["mask_key"] = other
    scene.engine.put_desired()
    wait_for(lambda: sessions() > before, 60, "a session with the other key begins")
    scene.wait_replicating()
    scene.at_source("INSERT INTO orders VALUES (5001, 'anna')")
    scene.wait_applied()
    assert scene.at_destination("SELECT client FROM orders WHERE id IN (1, 5001) ORDER BY id") == [
        (hashed("mäil1@example.org"),), (hashed("anna", key=other),)]


def test_a_column_that_is_too_short_for_a_hash_is_refused(scene: Scene) -> None:
    scene.run_at_source(CLIENTS.replace("varchar(20)", "varchar(15)"))
    start_hashing(scene)
    error = scene.engine.wait_aborted(scene.stream)
    assert error["code"] == "transformation_refused" and "holds 15 characters" in error["message"]


def pads(key: str) -> list[bytes]:
    """From each of them the key can be computed: they are as secret."""
    block = key.encode().ljust(64, b"\0")
    return [bytes(byte ^ pad for byte in block).hex().encode() for pad in (0x36, 0x5C)]


def test_the_key_of_hashes_is_nowhere(scene: Scene) -> None:
    """Not in what the source shows of its sessions, nor in its log, even if it writes down every statement."""
    logged = {"log_statement": "'all'", "log_min_duration_statement": "0", "log_parameter_max_length": "-1",
              "log_connections": "'on'", "log_min_messages": "'debug3'"}
    scene.run_at_source(CLIENTS)
    scene.at_destination("CREATE TABLE clients (id bigint PRIMARY KEY, mail text, city varchar(20))",
                         "ALTER TABLE clients OWNER TO thalweg")
    secrets = [MASK_KEY.encode(), *pads(MASK_KEY)]
    log_before = scene.source.log.stat().st_size
    scene.source.sql("postgres", *(f"ALTER SYSTEM SET {name} = {value}" for name, value in logged.items()),
                     "SELECT pg_reload_conf()")
    try:
        with psycopg.connect(scene.destination_conninfo) as slow:
            slow.execute("LOCK TABLE clients IN SHARE MODE")
            start_hashing(scene)
            wait_for(lambda: scene.source.value("postgres", "SELECT count(*) FROM pg_stat_activity "
                                                "WHERE query LIKE 'COPY (SELECT%thalweg.hash_inner_pad%'"),
                     60, "the source computes hashes")
            shown = str(scene.source.sql("postgres", "SELECT * FROM pg_stat_activity")).encode()
            answers = str([scene.engine.request("GET", path) for path in ("/v1/status", "/v1/stats", "/metrics")])
        scene.wait_replicating()
    finally:
        scene.source.sql("postgres", *(f"ALTER SYSTEM RESET {name}" for name in logged), "SELECT pg_reload_conf()")
    assert assert_hashed(scene) == 3000
    log = scene.source.log.read_bytes()[log_before:]
    assert b"COPY (SELECT" in shown
    assert b"COPY (SELECT" in log and b"thalweg.hash_inner_pad" in log and b"DEBUG" in log
    for secret in secrets:
        assert secret not in shown
        assert secret not in log
        assert secret.decode() not in answers
        assert find_in_files(scene.engine.directory, secret) == []


def find_in_files(folder: Path, secret: bytes) -> list[str]:
    """Of a program that runs: what it removes meanwhile holds nothing."""
    def holds(path: Path) -> bool:
        try:
            return path.is_file() and secret in path.read_bytes()
        except FileNotFoundError:
            return False

    return [str(path) for path in folder.rglob("*") if holds(path)]


def test_a_masked_value_is_nowhere_but_at_the_source(scene: Scene) -> None:
    """Not in what a slow destination leaves on disk, nor in the error queue, in answers, or in logs."""
    secret = "TOP-SECRET-4711"
    row = f"'{secret}', '{secret}', '1980-01-01', 1, '{{}}', '{secret}', '{{\"s\": \"{secret}\"}}'"
    scene.run_at_source(PEOPLE + f"INSERT INTO people VALUES (1, {row}); ALTER TABLE people REPLICA IDENTITY FULL;")
    make_target(scene)
    start(scene, STEPS, {"people": {"negative": [rule("odd", "mail = 'no such'")]}}, disable_on_error=False,
          txn_lcr_spill_threshold=100)
    files, constant = scene.engine.directory, b"1970-01-01"
    with psycopg.connect(scene.destination_conninfo) as slow:
        slow.execute("INSERT INTO people (number) VALUES (3)")
        slow.commit()
        slow.execute("LOCK TABLE people IN ACCESS EXCLUSIVE MODE")
        scene.at_source(f"INSERT INTO people VALUES (3, {row})",
                        f"UPDATE people SET mail = '{secret}!', notes = '{secret}' WHERE id = 1",
                        f"INSERT INTO people SELECT k, {row} FROM generate_series(10, 20000) k")
        # The search finds what it looks for: the constant in the place of a masked value.
        wait_for(lambda: find_in_files(files / "state" / "spill", constant), 60, "the transaction is spilled")
        assert find_in_files(files, secret.encode()) == []
    scene.wait_applied()
    errors = destination_path(scene.stream) + "/errors"
    parked = scene.engine.request("GET", errors)["errors"]
    paths = [errors, *(f"{errors}/{error['id']}" for error in parked), "/v1/status", "/v1/stats", "/metrics"]
    answers = str([scene.engine.request("GET", path) for path in paths])
    assert "1970-01-01" in answers
    assert secret not in answers
    assert find_in_files(files, secret.encode()) == []
    scene.destination.sql("postgres", "CHECKPOINT")
    assert find_in_files(scene.destination.directory, b"T**********4711")
    assert find_in_files(scene.destination.directory, secret.encode()) == []
    assert secret.encode() not in scene.destination.log.read_bytes()


def test_a_partition_that_identifies_rows_by_all_columns_tells_nothing_of_what_is_masked(scene: Scene) -> None:
    """Under a table with a key, its whole old row comes as an old key."""
    secret = "TOP-SECRET-4714"
    scene.run_at_source(
        f"""CREATE TABLE parts (id bigint, k bigint, secret text, PRIMARY KEY (id, k)) PARTITION BY RANGE (k);
            CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
            ALTER TABLE parts_1 REPLICA IDENTITY FULL;
            INSERT INTO parts SELECT k, k, '{secret}' FROM generate_series(1, 9) k""")
    define(scene, {}, disable_on_error=False)
    set_steps(scene, [{"type": "mask_column", "column": "secret", "with": "partial", "keep_first": 1,
                       "keep_last": 0}], "parts")
    scene.engine.put_desired()
    scene.wait_replicating()
    scene.at_destination("DELETE FROM parts WHERE id = 2")
    scene.at_source("DELETE FROM parts WHERE id IN (1, 2)", "UPDATE parts SET secret = secret || '!' WHERE id = 3")
    scene.wait_applied()
    (parked,) = scene.at_destination("SELECT encode(frames, 'escape') FROM thalweg.error_queue_chunk")
    assert secret not in parked[0]
    assert scene.at_destination("SELECT DISTINCT secret FROM parts WHERE id > 3") == [("T" + "*" * 14,)]
    assert scene.at_destination("SELECT secret FROM parts WHERE id = 3") == [("T" + "*" * 15,)]
    assert find_in_files(scene.engine.directory, secret.encode()) == []


def test_an_error_of_a_rule_does_not_quote_what_is_masked(scene: Scene) -> None:
    """PostgreSQL's message does, where the source evaluates the rule for the copy."""
    secret = "TOP-SECRET-4712"
    scene.run_at_source(PEOPLE + f"INSERT INTO people (id, mail) VALUES (1, '{secret}');")
    make_target(scene)
    define(scene, {"people": {"negative": [rule("number", "mail::integer > 7")]}})
    set_steps(scene, STEPS)
    scene.engine.put_desired()
    assert scene.engine.wait_aborted(scene.stream)["code"] == "rule_failed"
    assert secret not in str(scene.engine.request("GET", "/v1/status"))
    assert find_in_files(scene.engine.directory, secret.encode()) == []


def test_another_engine_gets_nothing_else(scene: Scene, tmp_path: Path) -> None:
    """The engine that applies reads the source for the copy, and gets from it what is sent."""
    secret = "TOP-SECRET-4713"
    scene.run_at_source(FILLED)
    make_target(scene)
    pair = EnginePair(scene, tmp_path)
    try:
        tables = user_tables(scene.source, scene.database)
        pair.sender.define_stream(scene.stream, scene.source_conninfo, "", tables, {})
        pair.sender.streams[scene.stream]["destinations"] = [
            applied_there("bravo", pair.receiver.place.address, pair.port)]
        pair.receiver.define_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo, tables, {},
                                    receive_from={"engine": "alpha"})
        for engine in (pair.receiver, pair.sender):
            engine.streams[scene.stream]["tables"][0]["transformations"] = STEPS
            engine.put_desired()
        pair.wait_replicating()
        assert assert_sent(scene) == 3000
        scene.at_source(f"INSERT INTO people (id, mail, notes) VALUES (5001, '{secret}', '{secret}')",
                        f"UPDATE people SET phone = '{secret}' WHERE id < 100", "DELETE FROM people WHERE id > 2900")
        pair.wait_applied()
        assert assert_sent(scene) == 2900
        assert find_in_files(pair.receiver.directory, secret.encode()) == []
    finally:
        pair.close()
