"""Cuts seeds for send_form_fuzz from a real server's pages.

Usage: record_values.py CONNINFO DIRECTORY    (a superuser's, of an empty database; needs the extensions of contrib)

Each seed is a value without its length behind one byte, the number of its form in send_form_fuzz.cc.
"""

import pathlib
import sys

import psycopg

COMPOSITE = (16384).to_bytes(4, "little")  # kComposite
SCHEMA = """
CREATE EXTENSION pageinspect; CREATE EXTENSION hstore; CREATE EXTENSION ltree; CREATE EXTENSION cube;
CREATE TYPE mood AS ENUM ('label');
CREATE TYPE pair AS (a int, b text, c numeric, gone text, seven int);
CREATE TYPE nest AS (p pair, d pair[], j jsonb, gone text, seven int);
CREATE TYPE textrange AS RANGE (subtype = text, collation = "C");
"""
# In the order of forms().
VALUES = [
    ("int4", "7"),
    ("text", "text"),
    ("name", "name"),
    ("varbit", "10101"),
    ("mood", "label"),
    ("tid", "(1,2)"),
    ("pg_snapshot", "10:20:10,14"),
    ("inet", "10.1.2.3/8"),
    ("cidr", "2001:db8::/32"),
    ("path", "[(1,2),(3,4)]"),
    ("polygon", "((1,2),(3,4),(5,0))"),
    ("numeric", "-1234567.00089"),
    ("tsvector", "'fat':2A,5 'rat' 'sat':3"),
    ("tsquery", "'a':*AB & !('b' <2> 'c' | 'd')"),
    ("xml", '<?xml version="1.1" encoding="UTF-8" standalone="yes"?>\n<a/>'),
    ("jsonb", '{"a": [1, -2.50, {"b": null}, true], "c\\n": "\\u00e9\\"", "d": {}}'),
    ("jsonpath", 'strict $.a[1 to last].**{2 to 3} ? (@.b > 1 && !(@ like_regex "x" flag "i")).type()'),
    ("int4[]", "[2:3][1:2]={{1,NULL},{3,4}}"),
    ("text[]", '{a,NULL,"a longer one"}'),
    ("int4range", "[1,5)"),
    ("textrange", "(a,bcd]"),
    ("int4multirange", "{[1,3),[5,8),[10,)}"),
    ("textmultirange", "{(,b),[cd,e)}"),
    ("pair", "(1,two,3.5,gone,7)"),
    ("pair[]", '{"(1,two,3.5,gone,7)",NULL,"(,,,,)"}'),
    ("nest", '("(1,two,3.5,gone,7)","{""(2,b,1,x,)""}","[1, {}]",gone,)'),
    ("hstore", '"a"=>"1", "b"=>NULL'),
    ("ltree", "Top.Science.x"),
    ("cube", "(1,2),(3,4)"),
]


def without_length(raw: bytes, length: int) -> bytes:
    """A value as it lies in a tuple, neither compressed nor stored elsewhere."""
    if length != -1:
        return raw
    return raw[1:] if raw[0] & 1 else raw[4:]


def record(conninfo: str, directory: pathlib.Path) -> None:
    with psycopg.connect(conninfo) as connection:
        connection.execute(SCHEMA)
        oids = connection.execute("SELECT 'pair'::regtype::oid, 'nest'::regtype::oid").fetchone()
        label = connection.execute("SELECT oid FROM pg_enum").fetchone()
        for number, (kind, value) in enumerate(VALUES):
            connection.execute(f"CREATE TABLE v{number} (v {kind}); INSERT INTO v{number} VALUES ($${value}$$)")
            raw, length = connection.execute(
                f"SELECT t_attrs[1], attlen FROM heap_page_item_attrs(get_raw_page('v{number}', 0), 'v{number}'),"
                f" pg_attribute WHERE attrelid = 'v{number}'::regclass AND attnum = 1"
            ).fetchone()
            content = without_length(raw, length)
            for oid in (*oids, *label):
                content = content.replace(oid.to_bytes(4, "little"), COMPOSITE)
            name = kind.replace("[]", "_array")
            (directory / name).write_bytes(bytes([number]) + content)


if __name__ == "__main__":
    record(sys.argv[1], pathlib.Path(sys.argv[2]))
