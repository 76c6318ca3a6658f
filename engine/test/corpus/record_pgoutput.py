"""Records seeds for pgoutput_fuzz from a real PostgreSQL.

Usage: record_pgoutput.py CONNINFO DIRECTORY    (a superuser; wal_level logical, logical_decoding_work_mem 64kB)

Each scenario runs in a schema of its own; the messages that pgoutput makes of it go into one file, each behind its
length in two bytes, as pgoutput_fuzz.cc reads them. Names, types and protocol options are those of a real stream.
"""

import pathlib
import subprocess
import sys

SETUP = """
CREATE SCHEMA fuzz_seed;
SET search_path = fuzz_seed;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (id int PRIMARY KEY, v text, n numeric, at timestamptz, m mood);
CREATE TABLE f (a int, b text); ALTER TABLE f REPLICA IDENTITY FULL;
CREATE TABLE "Straße" (id int PRIMARY KEY, big text); ALTER TABLE "Straße" ALTER big SET STORAGE EXTERNAL;
CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE PUBLICATION fuzz_seed FOR TABLES IN SCHEMA fuzz_seed WITH (publish_via_partition_root = true);
"""

SCENARIOS = {
    "rows": "BEGIN; INSERT INTO t VALUES (1, 'one', 1.5, now(), 'ok'), (2, NULL, 'NaN', 'infinity', NULL);"
    "UPDATE t SET v = 'uno' WHERE id = 1; UPDATE t SET id = 3 WHERE id = 2; DELETE FROM t; COMMIT;",
    "full_identity": "BEGIN; INSERT INTO f VALUES (1, 'x'); UPDATE f SET b = NULL; DELETE FROM f; COMMIT;",
    "toast": "INSERT INTO \"Straße\" VALUES (1, repeat('y', 9000)); UPDATE \"Straße\" SET id = 2;",
    "truncate": "TRUNCATE t, f RESTART IDENTITY CASCADE;",
    "partitions": "INSERT INTO p VALUES (1), (2);",
    "two_tables_and_ddl": "BEGIN; INSERT INTO t(id) VALUES (1); INSERT INTO f VALUES (1, 'x'); COMMIT;"
    "ALTER TABLE t ADD extra bytea; INSERT INTO t(id, extra) VALUES (2, '\\x00ff');",
    "message": "SELECT pg_logical_emit_message(true, 'prefix', 'content');",
    "streamed": "INSERT INTO t(id, v) SELECT i, repeat('x', 30) FROM generate_series(1, 700) i;",
    "streamed_subtransactions": "BEGIN; INSERT INTO t(id, v) SELECT i, repeat('x', 30) FROM generate_series(1, 600) i;"
    "SAVEPOINT a; INSERT INTO t(id, v) SELECT i, repeat('x', 30) FROM generate_series(1001, 1600) i; ROLLBACK TO a;"
    "INSERT INTO t(id) VALUES (5000); COMMIT;",
}

PEEK = """
SELECT encode(data, 'hex') FROM pg_logical_slot_get_binary_changes('fuzz_seed', NULL, NULL, 'proto_version', '2',
  'publication_names', 'fuzz_seed', 'binary', 'true', 'streaming', 'on', 'messages', 'true')
"""


def psql(conninfo: str, sql: str) -> str:
    command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", conninfo]
    return subprocess.run(command, input=sql, check=True, capture_output=True, text=True).stdout


def record(conninfo: str, directory: pathlib.Path) -> None:
    for name, sql in SCENARIOS.items():
        psql(conninfo, SETUP)
        try:
            psql(conninfo, "SELECT pg_create_logical_replication_slot('fuzz_seed', 'pgoutput')")
            psql(conninfo, "SET synchronous_commit = on; SET search_path = fuzz_seed;" + sql)
            messages = [bytes.fromhex(line) for line in psql(conninfo, PEEK).split()]
        finally:
            psql(conninfo, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                           " WHERE slot_name = 'fuzz_seed';"
                           "DROP PUBLICATION fuzz_seed; DROP SCHEMA fuzz_seed CASCADE;")
        if not messages:
            raise SystemExit(f"{name}: no messages")
        seed = b"".join(len(message).to_bytes(2, "big") + message for message in messages)
        (directory / name).write_bytes(seed)
        kinds = "".join(sorted({chr(message[0]) for message in messages}))
        print(f"{name}: {len(messages)} messages, kinds {kinds}, {len(seed)} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    record(sys.argv[1], pathlib.Path(sys.argv[2]))
