#pragma once

#include <string>
#include <vector>

// Tests: random values of each type, made by the source itself. random() goes on from setseed().

namespace thalweg::capture {

// Functions and types that the expressions below use. Version 14 prints "(1).abs()" as "1.abs()", which is no path:
// such ones are not made there.
inline constexpr const char* kGenerators = R"SQL(
CREATE SCHEMA g;
CREATE FUNCTION g.n(below int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT floor(random() * below)::int';
CREATE FUNCTION g.pick(VARIADIC choices text[]) RETURNS text LANGUAGE sql VOLATILE AS
  'SELECT choices[1 + floor(random() * array_length(choices, 1))::int]';
CREATE FUNCTION g.real() RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN CASE g.n(12) WHEN 0 THEN 'Infinity' WHEN 1 THEN '-Infinity' WHEN 2 THEN 'NaN' WHEN 3 THEN -0.0
    WHEN 4 THEN 1e300 * random() WHEN 5 THEN 1e-300 * random() ELSE (random() - 0.5) * 10 ^ g.n(12) END;
END $$;
CREATE FUNCTION g.finite() RETURNS numeric LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  digits text := CASE g.n(4) WHEN 0 THEN '0' WHEN 1 THEN g.n(100)::text WHEN 2 THEN g.n(1000000000)::text
    ELSE translate(left(md5(random()::text) || md5(random()::text), 1 + g.n(60)), 'abcdef', '012345') END;
BEGIN
  IF g.n(2) = 0 THEN
    digits := digits || '.' || translate(left(md5(random()::text), g.n(30)), 'abcdef', '000001')
      || repeat('0', g.n(9));
  END IF;
  IF g.n(5) = 0 THEN digits := rtrim(digits, '.') || 'e' || g.n(200) - 100; END IF;
  IF g.n(500) = 0 THEN digits := '7e' || g.pick('130000', '-16000', '16000', '-300'); END IF;
  RETURN (g.pick('', '-') || digits)::numeric;
END $$;
CREATE FUNCTION g.number() RETURNS numeric LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN CASE g.n(15) WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' ELSE g.finite() END;
END $$;
CREATE FUNCTION g.words() RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  pieces text[] := ARRAY['a', 'Z', ' ', E'\n', E'\t', E'\b', E'\f', E'\r', E'\x01', E'\x1f', E'\x7f', '"', E'\\', '/',
    '''', 'é', '€', '😀', '中', '{', '}', '[', ',', '(', ')', E'\\u0041', 'null', '<', '&', 'word', '10', E'\u2028'];
  size int := CASE g.n(20) WHEN 0 THEN 0 WHEN 1 THEN 200 + g.n(200) WHEN 2 THEN 1 ELSE g.n(12) END;
BEGIN
  IF g.n(120) = 0 THEN RETURN repeat(g.pick('long ', 'é', E'\\"'), g.n(20000)); END IF;
  IF g.n(200) = 0 THEN RETURN (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 1 + g.n(400))); END IF;
  RETURN (SELECT coalesce(string_agg(pieces[1 + g.n(array_length(pieces, 1))], ''), '') FROM generate_series(1, size));
END $$;
CREATE FUNCTION g.json(depth int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  size int := CASE g.n(40) WHEN 0 THEN 30 + g.n(80) ELSE g.n(5) END;
  levels int;
BEGIN
  IF depth = 0 OR g.n(3) = 0 THEN
    RETURN CASE g.n(6) WHEN 0 THEN 'null' WHEN 1 THEN 'true' WHEN 2 THEN 'false' WHEN 3 THEN g.finite()::text
      ELSE to_json(g.words())::text END;
  END IF;
  IF g.n(150) = 0 THEN
    levels := g.n(1500);
    IF g.n(2) = 0 THEN RETURN repeat('[', levels) || g.json(0) || repeat(']', levels); END IF;
    RETURN repeat('{"a":1,"b":', levels) || g.json(0) || repeat('}', levels);
  END IF;
  IF size > 9 THEN depth := 1; END IF;
  IF g.n(2) = 0 THEN
    RETURN '[' || (SELECT coalesce(string_agg(g.json(depth - 1), ','), '') FROM generate_series(1, size)) || ']';
  END IF;
  RETURN '{' || (SELECT coalesce(string_agg(to_json(g.words())::text || ':' || g.json(depth - 1), ','), '')
    FROM generate_series(1, size)) || '}';
END $$;
CREATE FUNCTION g.quoted(value text) RETURNS text LANGUAGE sql IMMUTABLE AS
  $$ SELECT '"' || replace(replace(value, '\', '\\'), '"', '\"') || '"' $$;
CREATE FUNCTION g.bounds(lower text, upper text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF g.n(12) = 0 THEN RETURN 'empty'; END IF;
  RETURN g.pick('[', '(') || CASE WHEN g.n(6) > 0 THEN g.quoted(lower) ELSE '' END || ','
    || CASE WHEN g.n(6) > 0 THEN g.quoted(upper) ELSE '' END || g.pick(']', ')');
END $$;
CREATE FUNCTION g.bound(what text, value text) RETURNS text LANGUAGE sql IMMUTABLE AS
  $$ SELECT CASE what WHEN 'date' THEN ('2000-01-01'::date + value::int)::text WHEN 'ints' THEN format('{%s,NULL,4}', value)
      ELSE value END $$;
CREATE FUNCTION g.several(what text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  size int := CASE g.n(30) WHEN 0 THEN 40 + g.n(20) ELSE g.n(4) END;
  at int := g.n(1000) - 500;
  parts text[] := '{}';
  lower text;
  upper text;
BEGIN
  FOR i IN 1 .. size LOOP
    lower := at;
    at := at + 1 + g.n(50);
    upper := at;
    at := at + 2 + g.n(50);
    IF what = 'text' THEN
      lower := lpad(i::text, 4, '0') || repeat('é', g.n(200));
      upper := lower || 'x';
    END IF;
    parts := parts || (g.pick('[', '(') || g.quoted(g.bound(what, lower)) || ',' || g.quoted(g.bound(what, upper))
      || g.pick(']', ')'));
  END LOOP;
  IF g.n(9) = 0 THEN parts := parts || ('(' || g.quoted(g.bound(what, at::text)) || ',)'); END IF;
  RETURN '{' || array_to_string(parts, ',') || '}';
END $$;
CREATE FUNCTION g.points(most int) RETURNS text LANGUAGE sql VOLATILE AS
  $$ SELECT string_agg(format('(%s,%s)', g.real(), g.real()), ',') FROM generate_series(1, 1 + g.n(most)) $$;
CREATE FUNCTION g.address() RETURNS inet LANGUAGE sql VOLATILE AS $$ SELECT CASE g.n(2)
  WHEN 0 THEN host('0.0.0.0'::inet + g.n(2000000000)) || g.pick('', '/0', '/8', '/25', '/32')
  ELSE left(md5(random()::text), 4) || ':' || left(md5(random()::text), 3) || '::1' || g.pick('', '/0', '/64', '/127')
  END::inet $$;
CREATE FUNCTION g.snapshot() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT format('%s:%s:%s', least, least + 100000,
    (SELECT string_agg((least + i * 7)::text, ',') FROM generate_series(0, g.n(9)) i))
  FROM (SELECT 1 + (random() * 10 ^ g.n(15))::bigint AS least) a $$;
CREATE FUNCTION g.document() RETURNS xml LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (g.pick('', '', E'\n', E'\n\n', ' ', '<?xml version="1.0"?>', E'<?xml version="1.0"?>\n',
      E'<?xml version="1.0"?>\n\n', '<?xml version=''1.0'' encoding=''UTF-8''?>',
      E'<?xml  version = "1.0"  encoding = "utf-8" standalone="no" ?>\n',
      '<?xml version="1.0" standalone=''yes''?>', E'<?xml version="1.1"?>\n',
      '<?xml version="1.1" encoding="UTF-8" standalone="yes"?>', '<?xml-stylesheet href="a"?>', '<!-- note -->')
    || g.pick('<a/>', '<é b="€">text</é>', E'<a>\n<b>&amp;&#10;</b></a>',
      '<a>' || repeat('many ', g.n(3000)) || '</a>'))::xml;
END $$;
CREATE FUNCTION g.lexemes() RETURNS tsvector LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN CASE g.n(6) WHEN 0 THEN '' WHEN 1 THEN to_tsvector('simple', repeat(md5(random()::text) || ' a b ', g.n(300)))
    WHEN 2 THEN strip(to_tsvector('english', 'the quick brown ' || md5(random()::text)))
    WHEN 3 THEN array_to_tsvector(ARRAY['é''"\ ' || g.n(50), 'x', repeat('y', 1 + g.n(500))])
    ELSE setweight(to_tsvector('english', g.words()), g.pick('A', 'B', 'C', 'D')::"char")
      || to_tsvector('german', g.words()) END;
END $$;
CREATE FUNCTION g.terms(depth int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF depth = 0 OR g.n(4) = 0 THEN
    RETURN '''' || g.pick('a', 'it''''s', 'é€', 'back\\slash', repeat('z', 1 + g.n(300))) || ''''
      || g.pick('', '', ':*', ':AB', ':*CD');
  END IF;
  RETURN g.pick('', '!') || '(' || g.terms(depth - 1) || g.pick(' & ', ' | ', ' <-> ', ' <7> ')
    || g.terms(depth - 1) || ')';
END $$;
CREATE FUNCTION g.key() RETURNS text LANGUAGE sql VOLATILE AS
  $$ SELECT g.pick('a', 'b', '*', '"é \" \\ \n"', '"' || repeat('k', g.n(300)) || '"', '**', '**{2}', '**{last}', '**{1 to 3}',
      '**{0 to last}', '**{last to 5}') $$;
CREATE FUNCTION g.path(depth int, root text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  path text := root;
BEGIN
  IF g.n(8) = 0 THEN
    path := g.pick('null', 'true', 'false', '"text\t\u00e9"', abs(g.finite())::text, '$variable', '$"a b"',
      CASE WHEN current_setting('server_version_num')::int >= 150000 THEN '(' || abs(g.finite())::text || ')' ELSE '$' END,
      '("text")', '(true)');
  END IF;
  IF depth > 0 AND g.n(4) = 0 THEN
    path := '(' || g.pick('', '-', '+') || g.path(depth - 1, root) || g.pick(' + ', ' - ', ' * ', ' / ', ' % ')
      || g.path(depth - 1, root) || ')';
  END IF;
  IF path NOT IN ('null', 'true', 'false') AND path !~ '^[0-9"]' THEN
    FOR i IN 1 .. g.n(4) LOOP
      path := path || CASE g.n(5) WHEN 0 THEN '.' || g.key() WHEN 1 THEN '[*]'
        WHEN 2 THEN '[' || g.pick('0', 'last', '1,2 to 5', 'last - 1 to last',
          CASE WHEN depth > 0 THEN g.path(depth - 1, root) ELSE '0' END) || ']'
        WHEN 3 THEN g.pick('.type()', '.size()', '.abs()', '.floor()', '.ceiling()', '.double()', '.datetime()',
          '.datetime("HH24:MI")', '.keyvalue()')
        ELSE CASE WHEN depth > 0 THEN ' ? (' || g.predicate(depth - 1) || ')' ELSE '.c' END END;
    END LOOP;
  END IF;
  RETURN path;
END $$;
CREATE FUNCTION g.predicate(depth int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF depth = 0 OR g.n(3) = 0 THEN
    RETURN CASE g.n(5) WHEN 0 THEN 'exists (' || g.path(0, '@') || ')'
      WHEN 1 THEN '@.a like_regex "^a\"b" ' || g.pick('', 'flag "i"', 'flag "sm"', 'flag "qi"')
      WHEN 2 THEN '@ starts with ' || g.pick('"x"', '$v')
      ELSE g.path(0, '@') || g.pick(' == ', ' != ', ' < ', ' <> ', ' >= ', ' <= ', ' > ') || g.path(0, '@') END;
  END IF;
  RETURN CASE g.n(4) WHEN 0 THEN '!(' || g.predicate(depth - 1) || ')'
    WHEN 1 THEN '((' || g.predicate(depth - 1) || ') is unknown)'
    ELSE '(' || g.predicate(depth - 1) || g.pick(' && ', ' || ') || g.predicate(depth - 1) || ')' END;
END $$;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'é"\');
CREATE DOMAIN short AS text;
CREATE DOMAIN document AS jsonb;
CREATE TYPE pair AS (a int, b text, c numeric);
CREATE DOMAIN pairs AS pair[];
CREATE TYPE nest AS (p pair, gone text, d jsonb, e pair[], f mood, g short, h "char", i int8);
CREATE DOMAIN of_nest AS nest;
CREATE TYPE textrange AS RANGE (subtype = text, collation = "C");
CREATE TYPE intsrange AS RANGE (subtype = int[]);
CREATE TYPE moodrange AS RANGE (subtype = mood);
CREATE TYPE pairrange AS RANGE (subtype = pair);
CREATE TYPE shortrange AS RANGE (subtype = short, collation = "C");
CREATE DOMAIN feeling AS mood;
CREATE EXTENSION hstore;
CREATE EXTENSION citext;
CREATE EXTENSION ltree;
CREATE EXTENSION cube;
CREATE TYPE wide AS (a int4range, b textmultirange, c tsvector, d hstore, e inet, f jsonpath, g feeling[], h of_nest, i xml,
  j polygon, k pg_snapshot, l short[], m document, n cube);
CREATE FUNCTION g.pair() RETURNS pair LANGUAGE sql VOLATILE AS $$
  SELECT ROW(CASE WHEN g.n(5) > 0 THEN g.n(1000000) END, CASE WHEN g.n(5) > 0 THEN g.words() END,
    CASE WHEN g.n(5) > 0 THEN g.number() END)::pair $$;
CREATE FUNCTION g.nest() RETURNS nest LANGUAGE sql VOLATILE AS $$
  SELECT ROW(CASE WHEN g.n(5) > 0 THEN g.pair() END, g.words(), g.json(2)::jsonb,
    (ARRAY[g.pair(), NULL, g.pair()])[1:g.n(4)], g.pick('sad', 'ok')::mood, g.words()::short, 'x', g.n(9))::nest $$;
CREATE FUNCTION g.wide() RETURNS wide LANGUAGE sql VOLATILE AS $$
  SELECT ROW('[1,5)', g.several('text'), g.lexemes(), hstore('a', g.words()), g.address(), '$.a[*] ? (@ > 1)', '{ok,NULL}',
    CASE WHEN g.n(2) = 0 THEN g.nest() END, g.document(), '((1,2),(3,4))', g.snapshot()::pg_snapshot, ARRAY[g.words()],
    g.json(1)::jsonb, cube(g.n(9)))::wide $$;
)SQL";

struct Generated {
  const char* type;
  const char* expression;
};

// By tables: some types each.
inline const std::vector<std::vector<Generated>> kGenerated = {
    {{"bool", "g.n(2) = 0"},
     {"bytea", "decode(repeat(md5(random()::text), g.n(9) * g.n(9)), 'hex')"},
     {"\"char\"", "chr(1 + g.n(126))::\"char\""},
     {"name", "left(g.words(), 60)"},
     {"int8", "((random() - 0.5) * 10 ^ g.n(19))::int8"},
     {"int2", "(g.n(65536) - 32768)::int2"},
     {"int4", "g.n(2000000000) - 1000000000"},
     {"text", "g.words()"},
     {"oid", "g.n(2000000000)"},
     {"tid", "format('(%s,%s)', g.n(100000000), g.n(60000))::tid"},
     {"xid", "g.n(2000000000)::text::xid"},
     {"cid", "g.n(2000000000)::text::cid"},
     {"json", "g.json(2)::json"}},
    {{"xml", "g.document()"},
     {"point", "point(g.real(), g.real())"},
     {"lseg", "format('[%s,%s]', point(g.real(), g.real()), point(g.real(), g.real()))::lseg"},
     {"path", "(CASE g.n(2) WHEN 0 THEN '[' || g.points(5) || ']' ELSE '(' || g.points(300) || ')' END)::path"},
     {"box", "box(point(g.n(100), random()), point(random(), g.n(100)))"},
     {"polygon", "('(' || g.points(CASE g.n(20) WHEN 0 THEN 300 ELSE 5 END) || ')')::polygon"},
     {"line", "line(point(g.n(100), random()), point(g.n(100) + 200, g.n(50)))"},
     {"circle", "circle(point(g.real(), g.real()), abs(g.n(1000) * random()))"},
     {"float4", "(random() * 10 ^ (g.n(40) - 20))::float4"},
     {"float8", "g.real()"},
     {"money", "((random() - 0.5) * 10 ^ g.n(14))::numeric::money"}},
    {{"macaddr", "left(md5(random()::text), 12)::macaddr"},
     {"macaddr8", "left(md5(random()::text), 16)::macaddr8"},
     {"inet", "g.address()"},
     {"cidr", "network(g.address())"},
     {"char(7)", "left(g.words(), 7)"},
     {"varchar", "g.words()"},
     {"date",
      "CASE g.n(9) WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE '2000-01-01'::date + g.n(2000000) - 700000 END"},
     {"time", "'00:00'::time + random() * interval '1 day'"},
     {"timestamp",
      "CASE g.n(9) WHEN 0 THEN 'infinity' ELSE '2000-01-01'::timestamp + (random() - 0.5) * interval '4000 years' END"},
     {"timestamptz",
      "CASE g.n(9) WHEN 0 THEN '-infinity' ELSE '2000-01-01'::timestamptz + (random() - 0.5) * interval '4000 years' "
      "END"},
     {"interval", "make_interval(g.n(99) - 50, g.n(30), g.n(9), g.n(99) - 50, g.n(99), 0, random() * 100)"},
     {"timetz", "'00:00+05:30'::timetz + random() * interval '1 day'"},
     {"bit(5)", "g.n(32)::bit(5)"},
     {"varbit", "left(g.n(2000000000)::bit(32)::text || repeat('10110', g.n(100)), g.n(600))::varbit"}},
    {{"numeric", "g.number()"},
     {"numeric(12,3)", "(random() * 10 ^ g.n(9))::numeric"},
     {"refcursor", "g.words()::refcursor"},
     {"uuid", "gen_random_uuid()"},
     {"pg_lsn", "'0/0'::pg_lsn + g.n(2000000000) * g.n(2000000000)::numeric"},
     {"xid8", "(random() * 10 ^ g.n(18))::int8::text::xid8"},
     {"pg_snapshot", "g.snapshot()::pg_snapshot"},
     {"txid_snapshot", "g.snapshot()::txid_snapshot"},
     {"regproc", "'pg_catalog.now'::regproc"},
     {"regprocedure", "(1000 + g.n(2000))::oid::regprocedure"},
     {"regoper", "(15 + g.n(1000))::oid::regoper"},
     {"regoperator", "(15 + g.n(1000))::oid::regoperator"},
     {"regclass", "(1000 + g.n(9000))::oid::regclass"},
     {"regtype", "(16 + g.n(3000))::oid::regtype"},
     {"regconfig", "g.pick('simple', 'english')::regconfig"},
     {"regdictionary", "'simple'::regdictionary"},
     {"regnamespace", "'public'::regnamespace"},
     {"regrole", "'postgres'::regrole"},
     {"regcollation", "'\"C\"'::regcollation"},
     {"int2vector",
      "(SELECT coalesce(string_agg(g.n(30000)::text, ' '), '') FROM generate_series(1, g.n(5)))::int2vector"},
     {"oidvector",
      "(SELECT coalesce(string_agg(g.n(30000)::text, ' '), '') FROM generate_series(1, g.n(5)))::oidvector"}},
    {{"tsvector", "g.lexemes()"},
     {"tsquery", "CASE g.n(9) WHEN 0 THEN '' ELSE g.terms(4) END::tsquery"},
     {"jsonb", "g.json(4)::jsonb"},
     {"document", "g.json(1)::jsonb::document"},
     {"jsonpath",
      "(g.pick('', 'strict ', 'lax ') || CASE g.n(4) WHEN 0 THEN replace(g.predicate(3), '@', '$') ELSE g.path(3, '$') "
      "END)::jsonpath"},
     {"hstore",
      "(SELECT coalesce(hstore(array_agg(g.words()), array_agg(CASE WHEN g.n(5) > 0 THEN g.words() END)), '') FROM "
      "generate_series(1, g.n(5)))"},
     {"citext", "g.words()::citext"},
     {"ltree",
      "(SELECT coalesce(string_agg(left(md5(random()::text), 1 + g.n(30)), '.'), '') FROM generate_series(1, "
      "g.n(6)))::ltree"},
     {"cube",
      "CASE g.n(2) WHEN 0 THEN cube(ARRAY[g.n(9), random()]) ELSE cube(ARRAY[g.n(9), random()], ARRAY[random(), "
      "g.n(9)]) END"}},
    {{"int4range", "g.bounds((g.n(1000))::text, (1000 + g.n(1000))::text)::int4range"},
     {"int8range", "g.bounds((g.n(1000) - 2000)::text, (1000000000000 + g.n(1000))::text)::int8range"},
     {"numrange", "g.bounds((-abs(g.finite()))::text, g.pick('1e40', '7.00', 'NaN', 'Infinity'))::numrange"},
     {"daterange",
      "g.bounds(('2000-01-01'::date - g.n(9999))::text, ('2000-01-02'::date + g.n(9999))::text)::daterange"},
     {"tsrange", "g.bounds('-infinity', now()::timestamp::text)::tsrange"},
     {"tstzrange", "g.bounds((now() - random() * interval '1 year')::text, 'infinity')::tstzrange"},
     {"textrange",
      "(SELECT g.bounds(least(a, b), greatest(a, b)) FROM (SELECT g.words() COLLATE \"C\" AS a, g.words() COLLATE "
      "\"C\" AS b) s)::textrange"},
     {"shortrange", "g.bounds('a', 'b' || g.n(100))::shortrange"},
     {"shortmultirange", "g.several('text')::shortmultirange"},
     {"intsrange", "g.bounds(format('{%s,NULL}', g.n(100)), format('{%s,5}', 100 + g.n(100)))::intsrange"},
     {"moodrange", "g.bounds('sad', 'ok')::moodrange"},
     {"pairrange",
      "pairrange(ROW(g.n(100), g.words(), g.number())::pair, CASE WHEN g.n(4) > 0 THEN ROW(100 + g.n(100), g.words(), "
      "g.number())::pair END)"},
     {"int4multirange", "g.several('int')::int4multirange"},
     {"int8multirange", "g.several('int')::int8multirange"},
     {"nummultirange", "g.several('int')::nummultirange"},
     {"datemultirange", "g.several('date')::datemultirange"},
     {"textmultirange", "g.several('text')::textmultirange"},
     {"intsmultirange", "g.several('ints')::intsmultirange"}},
    {{"mood", "g.pick('sad', 'ok', 'é\"\\')::mood"},
     {"short", "g.words()::short"},
     {"pair", "g.pair()"},
     {"pairs", "(ARRAY[g.pair(), NULL, g.pair()])[1:g.n(4)]::pairs"},
     {"nest", "g.nest()"},
     {"of_nest", "g.nest()::of_nest"},
     {"feeling", "g.pick('sad', 'ok')::feeling"},
     {"wide", "g.wide()"}},
};

}  // namespace thalweg::capture
