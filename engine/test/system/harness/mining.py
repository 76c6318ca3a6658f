"""Streams whose source's WAL is mined, and random work at the source that survives the source's crashes."""

import random
import time
from collections.abc import Iterator
from typing import Any

import psycopg

from harness.compare import Table, user_tables
from harness.engine import parse_lsn
from harness.fan_out import FanOut
from harness.scene import Scene
from harness.workload import Writers

TABLES = """
CREATE TABLE accounts (id bigint PRIMARY KEY, owner text NOT NULL, balance numeric(14, 2), note text,
                       at timestamptz NOT NULL DEFAULT now(), tags text[]);
CREATE TABLE items (kind int, number int, body text, extra bytea, PRIMARY KEY (kind, number));
ALTER TABLE items ALTER extra SET STORAGE EXTERNAL;
CREATE TABLE log (writer int, line text);
ALTER TABLE log REPLICA IDENTITY FULL;
CREATE TABLE unwanted (id serial PRIMARY KEY, body text);
INSERT INTO accounts SELECT n, 'owner ' || n, n * 1.5, NULL, now(), ARRAY['a', n::text] FROM generate_series(1, 300) n;
INSERT INTO items SELECT n % 3, n, repeat(md5(n::text), n), NULL FROM generate_series(1, 200) n;
"""
WANTED: list[Table] = [("public", "accounts"), ("public", "items"), ("public", "log")]


def start_mining(scene: Scene, tables: list[Table] | None = None, wait: bool = True, parameters: Any = None,
                 **more: Any) -> None:
    """A stream of the kind wal; `more`: further members of its definition."""
    scene.engine.put_stream(scene.stream, scene.source_conninfo, scene.destination_conninfo,
                            tables or user_tables(scene.source, scene.database), parameters or {},
                            **({"capture_kind": "wal"} | more))
    if wait:
        scene.wait_replicating()


def start_mining_fan_out(fan_out: FanOut, *names: str, **more: Any) -> None:
    scene = fan_out.scene
    fan_out.engine.define_stream(scene.stream, scene.source_conninfo, "", WANTED, {},
                                 **({"capture_kind": "wal"} | more))
    fan_out.set_destinations([fan_out.make(name).definition() for name in names])
    for name in names:
        fan_out.wait_phase(name, "REPLICATING")


def restart_lsn(scene: Scene) -> int:
    return parse_lsn(str(scene.source.value("postgres", "SELECT restart_lsn FROM pg_replication_slots WHERE slot_name "
                                            f"= 'thalweg_{scene.stream}' AND slot_type = 'physical'")))


def part(scene: Scene, sub_component: str) -> dict[str, Any]:
    """One of the capture's parts in the statistics."""
    (found,) = [component for component in scene.engine.components(scene.stream)
                if component["sub_component"] == sub_component]
    return dict(found)


class RandomWork(Writers):
    """Writers at the source, each of rows of its own. They go on over a new connection when theirs is lost."""

    def __init__(self, scene: Scene, random_: random.Random, writers: int = 3) -> None:
        super().__init__(scene.source, scene.database, writers, random_, self._transaction, goes_on=True)
        self.scene = scene

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        with self._connect() as connection:
            self._settle(connection, f"{self.database} ")

    def _connect(self) -> psycopg.Connection[Any]:
        return self.scene.source.connect(self.database, "thalweg")  # which changes with a failover

    def _begin(self, connection: psycopg.Connection[Any], number: int) -> None:
        self._settle(connection, f"{self.database} {number} ")
        connection.execute("SET lock_timeout = '2s'")

    def _transaction(self, connection: psycopg.Connection[Any], random_: random.Random, number: int) -> None:
        connection.execute("BEGIN")
        for statement in self._statements(number, random_):
            connection.execute(statement)
        end = random_.randrange(12)
        if end == 0:
            connection.execute("ROLLBACK")
        elif end == 1:
            name = f"{self.database} {number} {self.rounds[number]} {random_.randrange(10**6)}"
            connection.execute(f"PREPARE TRANSACTION '{name}'")
            time.sleep(random_.uniform(0, 0.05))
            connection.execute(f"{random_.choice(('COMMIT', 'ROLLBACK'))} PREPARED '{name}'")
        else:
            connection.execute("COMMIT")

    def _statements(self, number: int, random_: random.Random) -> Iterator[str]:
        for n in range(random_.randint(1, 6)):
            if random_.randrange(5) == 0:
                yield f"SAVEPOINT s{n}"
                yield self._statement(number, random_)
                if random_.randrange(2) == 0:
                    yield f"ROLLBACK TO s{n}"
            yield self._statement(number, random_)

    def _statement(self, number: int, random_: random.Random) -> str:
        """Rows of the writer's own, so that writers wait for each other at a TRUNCATE at most."""
        key = number * 10_000 + random_.randrange(150)
        large = f"repeat(md5('{random_.random()}'), {random_.randint(1, 400)})"
        return random_.choice((
            f"INSERT INTO accounts VALUES ({key}, 'w{number}', {random_.randrange(10**6) / 100}, {large}, now(), NULL) "
            "ON CONFLICT (id) DO UPDATE SET balance = accounts.balance + 1, tags = ARRAY['again', NULL]",
            f"UPDATE accounts SET balance = -balance, note = NULL WHERE id = {key}",
            f"UPDATE accounts SET id = id + 5000 WHERE id = {key} AND NOT EXISTS "
            f"(SELECT FROM accounts WHERE id = {key} + 5000)",
            f"DELETE FROM accounts WHERE id IN ({key}, {key} + 5000)",
            f"INSERT INTO items SELECT {number + 10}, n, {large}, decode(md5(n::text), 'hex') FROM "
            f"generate_series({key}, {key + 20}) n ON CONFLICT DO NOTHING",
            f"UPDATE items SET body = body || 'x' WHERE kind = {number + 10} AND number BETWEEN {key} AND {key + 5}",
            f"UPDATE items SET extra = decode(repeat(md5('{key}'), 300), 'hex') WHERE kind = {number + 10} AND "
            f"number = {key}",
            f"DELETE FROM items WHERE kind = {number + 10} AND number > {key}",
            f"INSERT INTO log VALUES ({number}, {large})",
            f"UPDATE log SET line = 'u' || left(line, 20) WHERE writer = {number} AND line LIKE 'a%'",
            f"DELETE FROM log WHERE writer = {number} AND line LIKE 'u%'",
            f"INSERT INTO unwanted (body) VALUES ({large})",
        ))

    def _settle(self, connection: psycopg.Connection[Any], prefix: str) -> None:
        """Ends what was prepared, by the writer whose names begin so, when the source went away."""
        found = connection.execute("SELECT gid FROM pg_prepared_xacts WHERE starts_with(gid, %s)", (prefix,))
        for (name,) in found.fetchall():
            connection.execute(f"COMMIT PREPARED '{name}'")


def change_schema(scene: Scene, n: int) -> None:
    """Changes that no destination has to follow, and a column that both sides get: the destination first."""
    scene.at_destination(f"ALTER TABLE accounts ADD COLUMN c{n} int")
    scene.run_at_source(f"""
        SET lock_timeout = '20s';
        ALTER TABLE accounts ADD COLUMN c{n} int;
        BEGIN; CREATE TABLE other{n} (id int PRIMARY KEY, body text); INSERT INTO other{n} VALUES (1, 'x');
        ALTER TABLE other{n} ADD COLUMN more int; INSERT INTO other{n} VALUES (2, 'y', 3); COMMIT;
        BEGIN; ALTER TABLE items ADD COLUMN gone int; ROLLBACK;
        DROP TABLE other{n};
        VACUUM FULL items;
        ALTER TABLE log ALTER line SET STORAGE {"EXTERNAL" if n % 2 else "EXTENDED"};
        UPDATE accounts SET c{n} = {n} WHERE id % 7 = {n % 7};
        ALTER TABLE unwanted ADD COLUMN IF NOT EXISTS c{n} int;""")
