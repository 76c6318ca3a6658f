"""The guides of rules, transformations, handlers, conflicts and errors, as a reader types them: on real servers, with
the real engine. The outcomes that the boxes promise are looked for at the destination.
"""

import asyncio
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Sides, Users
from tests.features.test_streams import STREAMS
from tests.support.real_engine import RealEngine
from tests.support.serving import eventually
from tests.test_collector import collector, wait_for  # noqa: F401
from tests.test_commands import Shell, shell  # noqa: F401
from tests.test_real_engine import enrol, of, thalwegd  # noqa: F401
from thalweg.kernel.principal import Role

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
BOX = re.compile(r'^```(\w*)(?: title="([\w.]+)")?\n(.*?)^```$', re.M | re.S)


@dataclass
class Box:
    language: str
    title: str
    text: str


def boxes_of(guide: str) -> list[Box]:
    return [Box(*found) for found in BOX.findall((GUIDES / f"{guide}.md").read_text())]


@dataclass
class Reader:
    """Has a folder for files, and a shell in which `thalweg` is an admin's."""

    folder: Path
    environment: dict[str, str]
    admin: httpx.AsyncClient
    sides: Sides

    async def type(self, lines: str) -> str:
        process = await asyncio.create_subprocess_exec(
            "bash", "-euc", lines, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        output = (await process.communicate())[0].decode()
        assert process.returncode == 0, f"{lines}\n{output}"
        return output

    async def follow(self, box: Box) -> str:
        """Writes the file that the box shows, or types its lines."""
        if box.title:
            (self.folder / box.title).write_text(box.text)
            return ""
        assert box.language == "sh", box.text
        return await self.type(box.text)

    def write(self, name: str, content: Any) -> None:
        (self.folder / name).write_text(json.dumps(content))

    async def replicates(self, stream: str) -> None:
        """As it was last changed."""
        path = f"{STREAMS}/{await self.id_of(stream)}"

        async def is_in_effect() -> bool:
            destinations = (await self.admin.get(path)).json()["destinations"]
            return all(destination["in_effect"]["from"] is not None for destination in destinations)

        await eventually(is_in_effect)
        await wait_for(self.admin, path, phase="REPLICATING")

    async def id_of(self, stream: str) -> str:
        found = (await self.admin.get(STREAMS)).json()["items"]
        return str(next(item["id"] for item in found if item["name"] == stream))

    def there(self, query: str, database: str | None = None) -> list[Any]:
        return of(self.sides, database or self.sides.destination["dbname"], query)

    async def arrives(self, query: str, rows: list[Any], database: str | None = None) -> None:
        async def is_there() -> bool:
            return self.there(query, database) == rows

        await eventually(is_there)

    async def delete(self, *streams: str) -> None:
        """The databases go with the test, so their streams must."""
        for stream in streams:
            await self.type(f"thalweg streams delete {stream} --yes --wait")


@pytest.fixture
async def reader(
    admin: httpx.AsyncClient,
    registered: dict[str, str],
    sides: Sides,
    thalwegd: RealEngine,  # noqa: F811
    collector: Any,  # noqa: F811
    shell: Shell,  # noqa: F811
    users: Users,
    tmp_path: Path,
) -> Reader:
    """Of a shop and a warehouse that are registered, at an engine that is enrolled."""
    assert (await enrol(admin, thalwegd)).status_code == 201
    folder = tmp_path / "reader"
    folder.mkdir()
    return Reader(folder, shell.environment | {"THALWEG_TOKEN": users.tokens[Role.ADMIN]}, admin, sides)


def at_source(sides: Sides, *statements: str) -> None:
    """As the user that the stream reads with, who owns what it makes."""
    sides.on_source(f"SET ROLE {sides.source['user']}", *statements)


def at_destination(sides: Sides, *statements: str) -> None:
    sides.on_destination(f"SET ROLE {sides.destination['user']}", *statements)


async def test_rules(reader: Reader) -> None:
    sides, cluster = reader.sides, reader.sides.cluster
    sides.on_source(f"GRANT CREATE ON DATABASE {sides.source['dbname']} TO {sides.source['user']}")
    at_source(
        sides, "ALTER TABLE orders ADD region text NOT NULL DEFAULT 'south', REPLICA IDENTITY FULL",
        "UPDATE orders SET region = 'north' WHERE id <= 3", "CREATE TABLE events (id bigint PRIMARY KEY, origin text)",
        "CREATE SCHEMA sales", "CREATE TABLE sales.orders (id bigint PRIMARY KEY, amount integer)",
        "CREATE TABLE sales.items (id bigint PRIMARY KEY, amount integer)",
        "ALTER TABLE sales.orders REPLICA IDENTITY FULL", "ALTER TABLE sales.items REPLICA IDENTITY FULL",
        "INSERT INTO sales.orders VALUES (30, 7), (3, 70)",
    )  # fmt: skip
    boxes = boxes_of("rules")
    rules, create, changes, test, recent, scoped, test_scoped, tagged, destinations, decided, change = boxes
    await reader.follow(rules)
    await reader.follow(create)
    await reader.replicates("north")
    at_source(
        sides, "UPDATE orders SET region = 'south' WHERE id = 1", "UPDATE orders SET region = 'north' WHERE id = 7",
        "INSERT INTO events VALUES (1, 'test'), (2, 'web')", "DELETE FROM events WHERE id = 2",
    )  # fmt: skip
    await reader.arrives("SELECT id FROM orders ORDER BY id", [(2,), (3,), (7,)])
    await reader.arrives("SELECT id, origin FROM events", [(2, "web")])
    await reader.follow(Box("json", rules.title, rules.text.replace("'north'", "'south'")))
    told = re.search(r"warehouse: in effect from (\w+/\w+)", await reader.follow(change))
    assert told is not None
    at_source(sides, "INSERT INTO orders VALUES (201, 'a', 1, 'north'), (202, 'b', 1, 'south')")
    await reader.arrives("SELECT id FROM orders WHERE id > 200", [(202,)])
    at_source(sides, "DELETE FROM orders WHERE id > 200")
    await reader.follow(rules)
    await reader.follow(change)
    await reader.follow(changes)
    tried = await reader.follow(test)
    assert "north_only" in tried and "INSERT" in tried, tried
    trial = asyncio.create_task(reader.follow(recent))
    while not trial.done():
        at_source(sides, "UPDATE orders SET item = item WHERE id IN (2, 8)")
        await asyncio.sleep(0.2)
    seen = await trial
    assert "passed  UPDATE id=2" in seen and "dropped  UPDATE id=8" in seen and seen.count("UPDATE") == 10, seen
    await reader.follow(scoped)
    judged = await reader.follow(test_scoped)
    assert all(name in judged for name in ("no_tests", "small", "late")), judged
    await reader.follow(tagged)
    await reader.follow(change)
    sides.on_source(
        "SELECT pg_replication_origin_create('from_warehouse')",
        "SELECT pg_replication_origin_session_setup('from_warehouse')",
        "INSERT INTO orders VALUES (203, 'a', 1, 'north')", "DELETE FROM orders WHERE id = 203",
        "SELECT pg_replication_origin_session_reset()",
        "INSERT INTO orders VALUES (204, 'b', 1, 'north')",
    )  # fmt: skip
    await reader.arrives("SELECT id FROM orders WHERE id > 200", [(204,)])
    at_source(sides, "DELETE FROM orders WHERE id > 200")
    await reader.follow(decided)
    await reader.follow(change)
    at_source(
        sides, "INSERT INTO orders VALUES (205, 'a', 0, 'north'), (206, 'b', 50, 'north'), (207, 'c', 5, 'north')"
    )
    await reader.arrives("SELECT id FROM orders WHERE id > 200", [(206,)])
    at_source(sides, "DELETE FROM orders WHERE id > 200")
    await reader.follow(rules)
    await reader.follow(change)

    user, branches = sides.destination["user"], {}
    for name, region in (("branch_north", "north"), ("branch_south", "south")):
        branches[name] = f"{sides.destination['dbname']}_{region}"
        cluster.execute(f"CREATE DATABASE {branches[name]} OWNER {user} STRATEGY file_copy")
        made = await reader.admin.post(
            "/api/v1/databases", json={**sides.destination, "name": name, "dbname": branches[name]}
        )
        assert made.status_code == 201, made.text
        rule = {"name": "own", "condition": f"region = '{region}'", "subset": True}
        reader.write(f"{region}.json", [{"schema": "public", "table": "orders", "positive": [rule]}])
    await reader.type("thalweg streams create orders --source shop --to branch_south --include public.orders --wait")
    await reader.follow(destinations)
    await reader.replicates("orders")
    at_source(sides, "UPDATE orders SET region = 'north' WHERE id = 8")
    query = "SELECT count(*), bool_or(id = 8) FROM orders"
    await reader.arrives(query, [(4, True)], branches["branch_north"])
    await reader.arrives("SELECT id FROM orders WHERE id = 8", [], branches["branch_south"])
    await reader.delete("north", "orders")
    for database in branches.values():
        cluster.execute(f"DROP DATABASE {database} WITH (FORCE)")


async def test_transformations(reader: Reader) -> None:
    at_source(
        reader.sides,
        "CREATE TABLE people (id bigint PRIMARY KEY, mail text, born date, passport text, notes text, secret text)",
        "INSERT INTO people VALUES (1, 'ada@example.org', '1815-12-10', 'P1', 'a note', 'clear')",
        "CREATE TABLE items (id bigint PRIMARY KEY, price numeric, amount integer, kind text)",
        "INSERT INTO items VALUES (1, 2.5, 4, NULL)",
    )  # fmt: skip
    steps, rules, renames = (json.loads(box.text) for box in boxes_of("transformations"))
    reader.write("transformations.json", rules["transformations"])
    reader.write("renames.json", [rename for rename in renames if rename.get("table") == "people"])
    user = reader.sides.destination["user"]
    reader.sides.on_destination(f"CREATE SCHEMA crm AUTHORIZATION {user}")
    at_destination(
        reader.sides,
        "CREATE TABLE crm.persons (id bigint PRIMARY KEY, email text, born date, passport text, site text)",
        "CREATE TABLE items (id bigint PRIMARY KEY, price double precision, amount integer, kind text, total numeric,"
        " label text)",
    )
    await reader.type(
        "thalweg streams create people --source shop --to warehouse --include public.people --wait "
        "--transformations transformations.json --renames renames.json"
    )
    await reader.replicates("people")
    at_source(reader.sides, "INSERT INTO people VALUES (2, 'alan@example.org', '1912-06-23', 'P1', 'b', 'clear')")
    masked = [(1, "a**********.org", "1970-01-01", "north"), (2, "a***********.org", "1970-01-01", "north")]
    await reader.arrives("SELECT id, email, born::text, site FROM crm.persons ORDER BY id", masked)
    assert reader.there("SELECT count(DISTINCT passport), min(length(passport)) FROM crm.persons") == [(1, 64)]
    reader.write("steps.json", [{"schema": "public", "table": "items", "steps": steps}])
    await reader.type(
        "thalweg streams create items --source shop --to warehouse --include public.items --wait "
        "--transformations steps.json"
    )
    await reader.replicates("items")
    at_source(reader.sides, "INSERT INTO items VALUES (2, 3, 3, 'own')")
    computed = "SELECT total::text, label, price::text FROM items ORDER BY id"
    await reader.arrives(computed, [("10.0", "from shop", "2.5"), ("9", "own", "3")])
    await reader.delete("people", "items")


async def test_statement_handlers(reader: Reader) -> None:
    sides = reader.sides
    sides.on_destination(f"GRANT CREATE ON DATABASE {sides.destination['dbname']} TO {sides.destination['user']}")
    at_destination(
        sides, "CREATE TABLE orders (id bigint PRIMARY KEY, item text NOT NULL, amount numeric(12,2),"
        " deleted_at timestamptz)", "CREATE SCHEMA audit",
        "CREATE TABLE audit.orders (at timestamptz, operation text, id bigint, amount numeric)",
        "CREATE TABLE audit.transactions (lsn pg_lsn, xid bigint, at timestamptz)",
        "CREATE TABLE audit.refused (at timestamptz, lsn pg_lsn, name text, kind text, sqlstate text, error text)",
    )  # fmt: skip
    await reader.type("thalweg streams create orders --source shop --to warehouse --include public.orders --wait")
    await reader.replicates("orders")
    box, of_errors = boxes_of("statement-handlers")
    await reader.follow(box)
    await reader.replicates("orders")
    at_source(sides, "INSERT INTO orders VALUES (101, 'new', 7)", "UPDATE orders SET amount = 8 WHERE id = 101",
              "DELETE FROM orders WHERE id = 100")  # fmt: skip
    history = "SELECT operation, id, amount::text FROM audit.orders ORDER BY operation"
    await reader.arrives(history, [("INSERT", 101, "7.00"), ("UPDATE", 101, "8.00")])
    await reader.arrives("SELECT count(*), count(DISTINCT xid) FROM audit.transactions", [(3, 3)])
    assert reader.there("SELECT id FROM orders WHERE deleted_at IS NOT NULL") == [(100,)]

    await reader.follow(of_errors)
    await reader.replicates("orders")
    at_destination(sides, "INSERT INTO orders VALUES (110, 'theirs', 5)", "ALTER TABLE orders ADD CHECK (amount < 900)")
    at_source(sides, "INSERT INTO orders VALUES (110, 'ours', 7)", "INSERT INTO orders VALUES (111, 'too dear', 2000)",
              "INSERT INTO orders VALUES (112, 'fits', 1)")  # fmt: skip
    amounts = "SELECT id, amount::text FROM orders WHERE id > 109 ORDER BY id"
    await reader.arrives(amounts, [(110, "12.00"), (112, "1.00")])
    # That of the one that is too dear may come after the one that fits: nothing in it depends on the other.
    refused = "SELECT name, kind, sqlstate FROM audit.refused ORDER BY lsn"
    await reader.arrives(refused, [("orders", "insert_exists", "23505"), ("orders", None, "23514")])
    assert (await reader.type("thalweg conflicts orders")).count("statement") >= 2
    await reader.delete("orders")


async def test_conflicts(reader: Reader) -> None:
    sides = reader.sides
    at_source(
        sides, "CREATE TABLE stock (id bigint PRIMARY KEY, amount integer, price integer, fixed boolean,"
        " changed_at timestamptz DEFAULT now())", "ALTER TABLE stock REPLICA IDENTITY FULL",
        "ALTER TABLE customers REPLICA IDENTITY FULL", "INSERT INTO stock VALUES (1, 10, 5, false), (11, 10, 5, false),"
        " (12, 10, 5, true)",
    )  # fmt: skip
    await reader.type("thalweg streams create orders --source shop --to warehouse --include 'public.*' --wait")
    await reader.replicates("orders")
    detection, handlers, groups, expression, policy, log = boxes_of("conflicts")
    await reader.follow(detection)
    await reader.replicates("orders")

    await reader.follow(handlers)
    at_destination(sides, "INSERT INTO customers VALUES (7, 'own')", "INSERT INTO stock VALUES (3, 1, 1, false)")
    at_source(sides, "INSERT INTO customers VALUES (7, 'theirs')", "INSERT INTO stock VALUES (3, 2, 2, false)")
    await reader.arrives("SELECT name FROM customers WHERE id = 7", [("theirs",)])
    await reader.arrives("SELECT count(*) FROM thalweg.conflict_log", [(2,)])
    assert reader.there("SELECT amount FROM stock WHERE id = 3") == [(1,)], "discarded"

    await reader.follow(groups)
    at_destination(sides, "UPDATE stock SET amount = amount + 5 WHERE id = 1")
    at_source(sides, "UPDATE stock SET amount = amount + 20 WHERE id = 1")
    await reader.arrives("SELECT amount FROM stock WHERE id = 1", [(35,)])

    reader.write("handlers.json", [json.loads(expression.text)])
    await reader.type("""thalweg streams set orders --wait "conflict_handlers=$(cat handlers.json)" """)
    at_destination(sides, "UPDATE stock SET price = 7 WHERE id > 10")
    at_source(sides, "UPDATE stock SET price = 9 WHERE id > 10")
    await reader.arrives("SELECT id, price FROM stock WHERE id > 10 ORDER BY id", [(11, 9), (12, 7)])

    await reader.follow(policy)
    at_destination(sides, "ALTER TABLE orders ADD CHECK (amount < 1000)")
    at_source(sides, "INSERT INTO orders VALUES (101, 'too dear', 2000)", "INSERT INTO orders VALUES (102, 'fits', 1)")
    await reader.arrives("SELECT id FROM orders WHERE id > 100", [(102,)])
    # Its transaction may come after the one that fits: nothing in it depends on the other.
    skipped = "SELECT sqlstate, action FROM thalweg.conflict_log WHERE table_name = 'orders'"
    await reader.arrives(skipped, [("23514", "skip")])

    (met,) = reader.there("SELECT id FROM thalweg.conflict_log WHERE table_name = 'customers'")
    shown = await reader.type(log.text.replace("812", str(met[0])))
    assert "insert_exists" in shown and "theirs" in shown and "own" in shown, shown
    exported = (reader.folder / "conflicts.csv").read_text()
    logged = reader.there("SELECT count(*) FROM thalweg.conflict_log")
    assert logged == [(6,)] and all(kind in exported for kind in ("insert_exists", "update_origin_differs", "23514"))
    await reader.delete("orders")


async def test_error_queue(reader: Reader) -> None:
    sides = reader.sides
    user = sides.destination["user"]
    at_source(sides, "CREATE TABLE notes (id bigint PRIMARY KEY, note text, price integer)")
    await reader.type(
        "thalweg streams create orders --source shop --to warehouse --include public.notes --wait "
        "--set disable_on_error=false"
    )
    await reader.replicates("orders")
    narrow = "ALTER TABLE notes ADD CONSTRAINT is_short CHECK (length(note) <= 10) NOT VALID"
    wide = "ALTER TABLE notes DROP CONSTRAINT is_short"
    sides.cluster.execute("CREATE ROLE clerk", f"GRANT clerk TO {user}")
    at_destination(sides, narrow, "GRANT SELECT, INSERT, UPDATE ON notes TO clerk")
    policies, tree, show, edit, act = boxes_of("error-queue")
    await reader.follow(policies)

    count = "SELECT count(*) FROM thalweg.error_queue"

    async def parked(*statements: str) -> dict[str, str]:
        """A transaction of the queue, the newest, and its cause."""
        ((before,),) = reader.there(count)
        at_source(sides, f"DO $do$ BEGIN {'; '.join(statements)}; END $do$")
        await reader.arrives(count, [(before + 1,)])
        (destination,) = (await reader.admin.get(f"{STREAMS}/{await reader.id_of('orders')}")).json()["destinations"]
        path = f"{STREAMS}/{await reader.id_of('orders')}/destinations/{destination['id']}/errors"
        queue = (await reader.admin.get(path)).json()
        return {"TRANSACTION": str(queue["errors"][-1]["id"]), "CAUSE": queue["causes"][0]["cause"]}

    long = "a note of more than ten characters"
    first = await parked(
        "INSERT INTO notes VALUES (1, 'short', 1)", "INSERT INTO notes VALUES (2, 'short', 2)",
        f"INSERT INTO notes VALUES (3, '{long}', 3)",
    )  # fmt: skip

    def about_first(line: str) -> str:
        return re.sub(r"(?<=--)([a-z-]+) 7\b", rf"\1 {first['TRANSACTION']}", line)

    await parked("UPDATE notes SET note = 'short', price = 4 WHERE id = 3")
    (typed, *_) = tree.text.splitlines()
    assert "1 waits behind" in await reader.type(about_first(typed.removeprefix("$ ")))
    assert long in await reader.type(about_first(show.text))
    edited = await reader.type(about_first(edit.text))
    assert "is left out" in edited and "as it came" in edited, edited
    await reader.arrives(
        "SELECT id, note, price FROM notes ORDER BY id", [(1, "short", 1), (2, "short", 2), (3, "short", 4)]
    )

    found: dict[str, str] = {}
    for number, line in enumerate(act.text.splitlines(), start=10):
        command = line.split("  #")[0]
        if not found:
            found = await parked(f"INSERT INTO notes VALUES ({number}, '{long}', 1)")
        for name, value in found.items():
            command = command.replace(name, value)
        at_destination(sides, wide)
        await reader.type(command)
        if "--execute" in command or "--discard" in command:
            assert reader.there(count) == [(0,)], command
            found = {}
        applied = reader.there("SELECT count(*) FROM notes WHERE id >= 10")
        assert applied == [(1 if "--execute" in command else 0,)], command
        at_destination(sides, "DELETE FROM notes WHERE id >= 10", narrow)
    await reader.delete("orders")
    sides.on_destination("DROP OWNED BY clerk", "DROP ROLE clerk")
