"""Every built-in type with values at its edges, and what users build from types.

Each entry: a type and SQL expressions of it. Values that name objects (regclass and the like) name built-in ones, whose
numbers are the same on both sides.
"""

SCALARS: dict[str, list[str]] = {
    "boolean": ["true", "false"],
    "smallint": ["-32768", "32767", "0"],
    "integer": ["-2147483648", "2147483647", "0"],
    "bigint": ["-9223372036854775808", "9223372036854775807", "0"],
    "real": ["'NaN'", "'Infinity'", "'-Infinity'", "1e-45", "3.4028235e38", "-0.0", "0.1"],
    "double precision": ["'NaN'", "'Infinity'", "'-Infinity'", "5e-324", "1.7976931348623157e308", "'-0'", "0.1"],
    "numeric": ["'NaN'", "'Infinity'", "'-Infinity'", "0", "0.00", "-1.10", "repeat('9', 131072)::numeric",
                "('0.' || repeat('0', 16382) || '1')::numeric", "1e-1000", "123456789012345678901234567890.0987654321"],
    "numeric(1000,1000)": ["('0.' || repeat('7', 1000))::numeric", "0"],
    "numeric(5,-2)": ["1234500", "-100"],
    "money": ["'-92233720368547758.08'", "'92233720368547758.07'", "0"],
    "text": ["''", "'plain'", "E'tab\\tnew\\nline\\\\back\\rreturn'", "'Ünïcödé 漢字 🐘'", "E'\\\\N'",
             "repeat('é', 5000)"],
    "varchar(10)": ["'0123456789'", "''", "'a  '"],
    "char(5)": ["'ab'", "''", "'abcde'"],
    '"char"': ["'x'", "''", "E'\\\\200'::\"char\""],
    "name": ["'pg_class'", "repeat('n', 63)"],
    "bytea": ["''", "'\\x00ff5c0a'", "decode(repeat('00', 3000), 'hex')"],
    "date": ["'infinity'", "'-infinity'", "'4713-11-24 BC'", "'5874897-12-31'", "'2000-02-29'", "'0001-01-01 BC'"],
    "time": ["'00:00'", "'24:00'", "'23:59:59.999999'"],
    "time(2)": ["'12:34:56.789'"],
    "timetz": ["'00:00+15:59:59'", "'24:00-15:59:59'", "'12:00:00.000001+05:30'"],
    "timestamp": ["'infinity'", "'-infinity'", "'4713-11-24 00:00 BC'", "'294276-12-31 23:59:59.999999'"],
    "timestamptz": ["'infinity'", "'-infinity'", "'4713-11-25 00:00+00 BC'", "'294276-12-31 23:59:59.999999+00'",
                    "'2024-03-31 02:30:00 Europe/Berlin'"],
    "interval": ["'178000000 years'", "'-178000000 years'", "'1 mon -1 day 00:00:00.000001'", "'0'"],
    "uuid": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "json": ["'{ \"b\" : 1,  \"a\":[1, 2.50, null] }'", "'null'", "'\"\\u00e9\"'", "'{\"a\":1,\"a\":2}'"],
    "jsonb": ["'{\"b\":1,\"a\":[1,2.50,null,\"é\"]}'", "'null'", "'1e400'", "'[]'", "'{}'"],
    "jsonpath": ["'$.a[*] ? (@ > 1)'", "'strict $'"],
    "xml": ["'<a b=\"1\"><!-- c --></a>'", "'text'"],
    "inet": ["'192.168.0.1/24'", "'::ffff:1.2.3.4'", "'2001:db8::/32'", "'0.0.0.0/0'"],
    "cidr": ["'10.0.0.0/8'", "'2001:db8::/32'"],
    "macaddr": ["'08:00:2b:01:02:03'"],
    "macaddr8": ["'08:00:2b:01:02:03:04:05'"],
    "bit(5)": ["B'10101'", "B'00000'"],
    "bit varying": ["B''", "B'1'", "repeat('10', 500)::bit varying"],
    "tsvector": ["''", "'a:1A fat:2B,4C cat:5D'", "'''weird '' word'':3'"],
    "tsquery": ["'fat & (rat | !cat:AB)'", "'super:*'", "'a <3> b'"],
    "point": ["'(1,2)'", "'(NaN,-Infinity)'", "'(-0,1e-300)'"],
    "line": ["'{1,-1,0}'"],
    "lseg": ["'[(0,0),(1,1)]'"],
    "box": ["'(1,1),(0,0)'"],
    "path": ["'((0,0),(1,1),(2,0))'", "'[(0,0),(1,1)]'"],
    "polygon": ["'((0,0),(1,1),(2,0))'"],
    "circle": ["'<(1,2),3>'", "'<(0,0),0>'"],
    "pg_lsn": ["'0/0'", "'FFFFFFFF/FFFFFFFF'"],
    "txid_snapshot": ["'10:20:10,14,15'"],
    "pg_snapshot": ["'10:20:10,14,15'"],
    "oid": ["0", "4294967295"],
    "xid": ["'4294967295'"],
    "xid8": ["'18446744073709551615'"],
    "cid": ["'7'"],
    "tid": ["'(4294967295,65535)'", "'(0,1)'"],
    "regclass": ["'pg_class'"],
    "regtype": ["'integer'"],
    "regproc": ["'now'"],
    "regprocedure": ["'abs(integer)'"],
    "regoper": ["'||/'"],
    "regoperator": ["'+(integer,integer)'"],
    "regnamespace": ["'pg_catalog'"],
    "regconfig": ["'english'"],
    "regdictionary": ["'simple'"],
    "regcollation": ["'\"C\"'"],
    "int2vector": ["'1 2 3'"],
    "oidvector": ["'1 2 3'"],
    "refcursor": ["'cursor'"],
    "aclitem": ["'postgres=r/postgres'"],
    "int4range": ["'empty'", "'[1,10)'", "'(,)'", "'[5,]'"],
    "int8range": ["'[-9223372036854775808,)'"],
    "numrange": ["'[1.10,2.200]'", "'(NaN,)'", "'(,infinity)'"],
    "daterange": ["'[2020-01-01,infinity)'", "'empty'"],
    "tsrange": ["'[\"2020-01-01 00:00\",\"2021-01-01 00:00\")'"],
    "tstzrange": ["'[\"2020-01-01 00:00+00\",)'"],
    "int4multirange": ["'{}'", "'{[1,3),[5,)}'"],
    "int8multirange": ["'{[1,2)}'"],
    "nummultirange": ["'{[1.0,2.00],(3,4)}'"],
    "datemultirange": ["'{[2020-01-01,2020-02-01),[2021-01-01,)}'"],
    "tsmultirange": ["'{}'"],
    "tstzmultirange": ["'{[\"2020-01-01 00:00+00\",)}'"],
}

# Legal values that PostgreSQL's own send and receive functions do not carry: they must travel as text.
NOT_BINARY: dict[str, str] = {
    "aclitem[]": "'{postgres=r/postgres,NULL}'", "tsquery": "''", "tsquery[]": "'{a,\"\"}'", "int2vector": "''",
    "oidvector": "''", "regclass": "'odd'",  # another number on each side
}

# Made by the users of a database. Their numbers differ between the sides, so nothing may be sent by number.
USER_TYPES = """
CREATE SCHEMA kinds;
CREATE TYPE kinds.mood AS ENUM ('sad', 'ok', 'very "happy", indeed', 'größer');
CREATE DOMAIN kinds.positive AS integer CHECK (VALUE > 0);
CREATE DOMAIN kinds.short AS varchar(8)[];
CREATE TYPE kinds.pair AS (a integer, b text, "weird name" kinds.mood);
CREATE TYPE kinds.nested AS (p kinds.pair, list kinds.mood[], n numeric(10,2));
CREATE TYPE kinds.float_range AS RANGE (subtype = double precision, subtype_diff = float8mi);
"""
USER_SCALARS: dict[str, list[str]] = {
    "kinds.mood": ["'sad'", "'very \"happy\", indeed'", "'größer'"],
    "kinds.positive": ["1", "2147483647"],
    "kinds.short": ["'{a,NULL,\"x y\"}'", "'{}'"],
    "kinds.pair": ["ROW(1, 'a,(\"b\")', 'ok')", "ROW(NULL, NULL, NULL)", "ROW(-5, '', 'größer')"],
    "kinds.nested": ["ROW(ROW(1, 'x', 'sad')::kinds.pair, ARRAY['ok', NULL]::kinds.mood[], 1.10)",
                     "ROW(NULL, '{}', NULL)"],
    "kinds.float_range": ["'[1.5,NaN]'", "'(,)'", "'empty'"],
    "kinds.float_multirange": ["'{[1,2),[3,4)}'"],
}


def all_types() -> list[tuple[str, list[str]]]:
    """Every scalar type, then an array of each: empty, with a NULL, of two dimensions, with lower bounds of its own."""
    scalars = [*SCALARS.items(), *USER_SCALARS.items()]
    arrays = []
    for name, values in scalars:
        if name in ("kinds.short", "int2vector", "oidvector"):
            continue  # arrays themselves
        if name == "aclitem":
            continue  # has no binary form, and its array therefore none that PostgreSQL would send: a test of its own
        first, last = f"({values[0]})::{name}", f"({values[-1]})::{name}"
        arrays.append((f"{name}[]", [
            "'{}'", f"ARRAY[{first}, NULL, {last}]::{name}[]", f"ARRAY[[{first}, {last}], [NULL, {first}]]::{name}[]",
            "'[3:4]={NULL;NULL}'" if name == "box" else "'[3:4]={NULL,NULL}'"]))
    return [*scalars, *arrays]


def table_definition(name: str) -> str:
    columns = ",\n  ".join(f"c{number} {kind}" for number, (kind, _) in enumerate(all_types()))
    return f"CREATE TABLE {name} (id integer PRIMARY KEY,\n  {columns});\n"


def row(number: int, shift: int) -> str:
    """VALUES of row `number`: each column's values in turn, and every fifth a NULL."""
    cells = []
    for column, (kind, values) in enumerate(all_types()):
        turn = number + column + shift
        cells.append("NULL" if turn % 5 == 4 else f"({values[turn % len(values)]})::{kind}")
    return f"({number}, {', '.join(cells)})"


ROWS = 10  # covers the longest list of values


def inserts(table: str, first: int, shift: int) -> str:
    return "".join(f"INSERT INTO {table} VALUES {row(number, shift)};\n" for number in range(first, first + ROWS))


def updates(table: str, first: int, shift: int) -> str:
    """Every column of every row, with the next values."""
    columns = ", ".join(f"c{number}" for number in range(len(all_types())))
    return "".join(f"UPDATE {table} SET (id, {columns}) = ROW{row(number, shift)} WHERE id = {number};\n"
                   for number in range(first, first + ROWS))
