"""Bind names in statements of users, such as :new.amount. The engine finds them in the same way, and both are tested
with the contract's cases (engine/contract/bind-names.cases.json)."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field

COLUMN_KINDS = ("new", "old")
ERROR_KINDS = ("sqlstate", "error", "constraint", "kind")
KINDS = (*COLUMN_KINDS, "operation", "schema", "table", "commit_time", "commit_lsn", "xid", *ERROR_KINDS)
STATEMENTS = ("insert", "update", "delete", "merge", "select", "with")
"""Those that take parameters, and end no transaction."""

_NAME = r"[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*"
_QUOTED = r'"(?:[^"]|"")*+"'
_SPACE = r"[ \n\t\r\f\v]"
_ESCAPED = r"'(?:\\.|''|[^'\\])*+'"
_CONTINUES = rf"(?:[ \t\f\v]|--[^\n\r]*+)*+[\n\r](?:{_SPACE}|--[^\n\r]*(?:[\n\r]|\Z))*(?=')"
# Source: the lexical structure in PostgreSQL's documentation, 4.1, and its scanner (scan.l).
_TOKENS = re.compile(
    rf"""
    (?P<space>{_SPACE}+|--[^\n\r]*)
    |(?P<comment>/\*)
    |(?P<escaped>[eE]{_ESCAPED}(?:{_CONTINUES}{_ESCAPED})*(?!{_CONTINUES}))
    |(?P<unclosed>[eE]')
    |(?P<name>{_NAME})
    |(?P<number>[0-9][A-Za-z0-9_$\u0080-\U0010ffff]*)
    |(?P<quoted>'(?:[^']|'')*+'|{_QUOTED})
    |(?P<dollar>(?P<tag>\$(?:[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*)?\$).*?(?P=tag))
    |(?P<parameter>\$[0-9]+)
    |(?P<colons>::|:=)
    |:(?P<bind>{_NAME})
    |(?P<open>['"]|\$(?:[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*)?\$)
    |(?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COLUMN = re.compile(rf"\.(?:(?P<name>{_NAME})|(?P<quoted>{_QUOTED})|(?P<open>\"))", re.DOTALL)
_BEFORE_INTO = ("insert", "merge", "as", ".")
"""INTO is a reserved word: behind anything else it is that of SELECT."""
_COMMENT_MARK = re.compile(r"/\*|\*/")


class BindFault(ValueError):
    """The fault of a statement, in words."""


@dataclass(frozen=True)
class BindName:
    kind: str
    column: str = ""
    """The column of new or old, as the catalogue has it."""

    @property
    def written(self) -> str:
        return f":{self.kind}.{self.column}" if self.kind in COLUMN_KINDS else f":{self.kind}"


@dataclass(frozen=True)
class BoundStatement:
    sql: str
    """With $1, $2 ..."""
    names: list[BindName] = field(default_factory=list)
    """Of $1, $2 ..., each once."""
    tokens: list[tuple[int, int]] = field(default_factory=list)
    """Where each token begins in `sql`, and in the text as it was written."""
    into: str | None = None
    """Where a SELECT has an INTO, in words."""

    def place_of(self, place: int) -> int:
        """In the text as it was written; both count from 0."""
        in_sql, in_text = self.tokens[max(0, bisect_right(self.tokens, place, key=lambda token: token[0]) - 1)]
        return in_text + place - in_sql


def bind_names(text: str) -> BoundStatement:
    """Raises BindFault where the text is none, or more than one, of the statements that a transaction may contain, or a
    name in it is none."""
    at, semicolon, begun = 0, -1, False
    sql = ""
    numbers: dict[BindName, int] = {}
    tokens: list[tuple[int, int]] = []
    word, into = "", None
    while at < len(text):
        token = _TOKENS.match(text, at)
        if token is None:
            break  # the last branch takes every character
        kind, end = token.lastgroup, token.end()
        if kind == "comment":
            end = _end_of_comment(text, at)
        elif kind != "space":
            if semicolon >= 0:
                where = _at(semicolon)
                raise BindFault(f"the text has more than one statement: something follows the semicolon {where}")
            if token.group() == ";":
                semicolon = at
            elif not begun:
                begun = True
                if (token["name"] or "").translate(_LOWER) not in STATEMENTS:
                    raise BindFault("a statement begins with INSERT, UPDATE, DELETE, MERGE, SELECT or WITH")
            before, word = word, token.group().translate(_LOWER)
            if word == "into" and before not in _BEFORE_INTO:
                into = _at(at)
        if kind in ("open", "unclosed"):
            raise _not_closed(at)
        if kind == "parameter":
            raise BindFault(f"{token.group()} {_at(at)} is a number: values have names here, such as :new.id")
        tokens.append((len(sql), at))
        if kind == "bind":
            bound, end = _bound(text, token)
            number = numbers.setdefault(bound, len(numbers) + 1)
            # A digit behind it would become part of the number.
            glue = " " if re.match(r"[A-Za-z0-9_$\u0080-\U0010ffff]", text[end : end + 1]) else ""
            sql += f"${number}{glue}"
        else:
            sql += text[at:end]
        at = end
    if not begun:
        raise BindFault("the text has no statement")
    return BoundStatement(sql, list(numbers), tokens, into)


def check_expression(text: str) -> None:
    """Raises BindFault where the text could end the parentheses that it is put into: it is no single expression."""
    at, opened = 0, list[int]()
    while (token := _TOKENS.match(text, at)) is not None:
        kind, end = token.lastgroup, token.end()
        if kind == "comment":
            end = _end_of_comment(text, at)
        elif kind in ("open", "unclosed"):
            raise _not_closed(at)
        elif token.group() == ";":
            raise BindFault(f"an expression has no semicolon, as {_at(at)}")
        elif token.group() == "(":
            opened.append(at)
        elif token.group() == ")":
            if not opened:
                raise BindFault(f"the parenthesis {_at(at)} closes none of the expression")
            opened.pop()
        at = end
    if opened:
        raise BindFault(f"the parenthesis {_at(opened[-1])} is not closed")


_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
"""Only ASCII: what the server does with others depends on its encoding, so they have to be quoted."""


def _at(place: int) -> str:
    return f"at character {place + 1}"


def _not_closed(place: int) -> BindFault:
    return BindFault(f"the quote or comment {_at(place)} is not closed")


def _end_of_comment(text: str, begun: int) -> int:
    depth, at = 0, begun
    while (mark := _COMMENT_MARK.search(text, at)) is not None:
        depth += 1 if mark.group() == "/*" else -1
        at = mark.end()
        if depth == 0:
            return at
    raise _not_closed(begun)


def _bound(text: str, token: re.Match[str]) -> tuple[BindName, int]:
    """With the place behind it."""
    at, end = token.start(), token.end()
    kind = token["bind"].translate(_LOWER)
    if kind not in KINDS:
        raise BindFault(
            f"{token.group()} {_at(at)} is no bind name (:{', :'.join(KINDS)}); a colon that begins none has a space "
            "behind it"
        )
    if kind not in COLUMN_KINDS:
        return BindName(kind), end
    column = _COLUMN.match(text, end)
    if column is not None and column["open"]:
        raise _not_closed(end + 1)
    name = ""
    if column is not None:
        name = column["name"].translate(_LOWER) if column["name"] else column["quoted"][1:-1].replace('""', '"')
    if column is None or not name:
        raise BindFault(f':{kind} {_at(at)} is followed by a column, such as :{kind}.id or :{kind}."Id"')
    return BindName(kind, name), column.end()
