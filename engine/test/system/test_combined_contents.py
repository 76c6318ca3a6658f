"""Handlers that make one value of two: by the place of a site in a list, arrays, JSON objects, SQL expressions."""

import json
import random
from dataclasses import dataclass, field, replace
from typing import Any

from harness.scene import Scene

NOTES = """
    CREATE TABLE notes (id integer PRIMARY KEY, site text, title text, tags text[] NOT NULL, facts jsonb NOT NULL,
                        best integer NOT NULL);
    ALTER TABLE notes REPLICA IDENTITY FULL;
    INSERT INTO notes SELECT n, 'head', 'start', '{}', '{}', 0 FROM generate_series(1, 12) AS n;
"""
SITES = ["head", "branch", "kiosk"]
OF_NOTES = {"kind": "update_origin_differs", "schema": "public", "table": "notes"}
HANDLERS: list[dict[str, Any]] = [
    {**OF_NOTES, "action": "priority", "columns": ["site", "title"], "by": "site", "order": SITES, "tie": "overwrite"},
    {**OF_NOTES, "action": "append", "columns": ["tags"]},
    {**OF_NOTES, "action": "merge", "columns": ["facts"]},
    {**OF_NOTES, "action": "expression", "columns": ["best"],
     "expression": "CASE WHEN t.best < new.best THEN new.best ELSE t.best END"},
]
READ = "SELECT id, site, title, tags, facts::text, best FROM notes ORDER BY id"


@dataclass(frozen=True)
class Note:
    site: str | None = "head"
    title: str = "start"
    tags: tuple[str, ...] = ()
    facts: dict[str, int] = field(default_factory=dict)
    best: int = 0

    def row(self, key: int) -> tuple[Any, ...]:
        return key, self.site, self.title, list(self.tags), self.facts, self.best

    def update(self, key: int) -> str:
        site = "NULL" if self.site is None else f"'{self.site}'"
        return (f"UPDATE notes SET site = {site}, title = '{self.title}', tags = '{{{','.join(self.tags)}}}', "
                f"facts = '{json.dumps(self.facts)}', best = {self.best} WHERE id = {key}")

    def changed(self, random_: random.Random) -> "Note":
        site = random_.choice([*SITES, "unknown", None])
        facts = {key: value for key, value in self.facts.items() if random_.random() < 0.7}
        facts[random_.choice("abcdef")] = random_.randrange(9)
        tags = [tag for tag in self.tags if random_.random() < 0.8] + [f"t{random_.randrange(15)}"]
        part: dict[str, Any] = random_.choice([
            {"site": site, "title": f"n{random_.randrange(100)}"}, {"tags": tuple(tags)}, {"facts": facts},
            {"best": random_.randrange(100)},
        ])
        return replace(self, **part)


def place(site: str | None) -> int:
    return SITES.index(site) if site in SITES else len(SITES)


def combined(there: Note, old: Note, new: Note) -> Note:
    """As the guide says."""
    out = there
    titles_differ = (there.site, there.title) != (old.site, old.title)
    if not titles_differ or place(new.site) <= place(there.site):
        out = replace(out, site=new.site, title=new.title)
    if there.tags == old.tags:
        out = replace(out, tags=new.tags)
    else:
        out = replace(out, tags=(*there.tags, *(tag for tag in new.tags if tag not in there.tags)))
    if there.facts == old.facts:
        out = replace(out, facts=new.facts)
    else:
        kept = {key: value for key, value in there.facts.items() if old.facts.get(key) == new.facts.get(key)}
        ours = {key: value for key, value in new.facts.items() if old.facts.get(key) != value}
        out = replace(out, facts=kept | ours)
    best = new.best if there.best == old.best else max(there.best, new.best)
    return replace(out, best=best)


def test_contents_are_combined_exactly_once_through_kills(scene: Scene, random_: random.Random) -> None:
    scene.run_at_source(NOTES)
    scene.start_stream(conflict_handlers=HANDLERS, conflict_detection=[{}])
    source = {key: Note() for key in range(1, 13)}
    destination = dict(source)
    settled = 0

    def write(transactions: int) -> None:
        nonlocal settled
        for _ in range(transactions):
            statements = []
            for key in random_.sample(sorted(source), random_.choice([1, 3])):
                old, new = source[key], source[key].changed(random_)
                settled += destination[key] != old
                source[key], destination[key] = new, combined(destination[key], old, new)
                statements.append(new.update(key))
            scene.run_at_source(";\n".join(["BEGIN", *statements, "COMMIT"]) + ";")

    for _ in range(4):
        for key in random_.sample(sorted(destination), 5):
            destination[key] = destination[key].changed(random_)
            scene.at_destination(destination[key].update(key))
        write(20)
        scene.engine.kill()
        write(10)
        scene.engine.start()
        scene.wait_applied()

    def rows_of(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return [(*row[:4], json.loads(row[4]), row[5]) for row in rows]

    assert rows_of(scene.at_source(READ)) == [note.row(key) for key, note in source.items()]
    assert rows_of(scene.at_destination(READ)) == [note.row(key) for key, note in destination.items()]
    assert scene.at_destination("SELECT count(*) FROM thalweg.conflict_log") == [(settled,)]
    assert settled > 50, "the load has conflicts of which this test tells something"
