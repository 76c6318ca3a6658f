"""Names, values and types of other people's databases as SQL that does the same whatever they hold, and whoever pastes
it where: no text of theirs ends a literal, steers a terminal or changes the order in which it is read. Pure."""

import re
import unicodedata

STEERS = ("Cc", "Cf", "Zl", "Zp")
"""Categories of Unicode that are not shown as themselves: control and format characters, ends of lines."""
SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_WORD = r'(?:[a-z_][a-z0-9_$]*|"(?:[^"]|"")+")'
TYPE = re.compile(rf"({_WORD}(?:\.{_WORD})?(?: [a-z]+)*)(?:\(\d+(?:,-?\d+)?\)(?: [a-z]+)*)?((?:\[\])*)")
"""A type as format_type() writes it."""
LENGTH_IS_ONE = ("character", "bit")
"""A cast to one of these without a length cuts the value."""
WITHOUT_EQUALITY = frozenset(
    {"json", "jsonpath", "xml", "point", "line", "lseg", "box", "path", "polygon", "circle"}
    | {"refcursor", "pg_snapshot", "txid_snapshot"}
)
"""Types that have no equality, or another one than that of their values."""


def identifier(name: str) -> str:
    if not _steers(name):
        return '"' + name.replace('"', '""') + '"'
    escaped = "".join(
        rf"\+{ord(character):06X}" if _steers(character) else character for character in name.replace("\\", "\\\\")
    )
    return 'U&"' + escaped.replace('"', '""') + '"'


def literal(text: str | None) -> str:
    """It means the same whatever standard_conforming_strings says."""
    if text is None:
        return "NULL"
    if "\\" not in text and not _steers(text):
        return "'" + text.replace("'", "''") + "'"
    return "E'" + "".join(_escaped(character) for character in text) + "'"


def typed(text: str | None, type_: str) -> str:
    """A literal with its type. A word that is no type's name is left out: the column has one anyway."""
    found = TYPE.fullmatch(type_)
    if text is None or found is None or _steers(type_) or type_.rstrip("[]") in LENGTH_IS_ONE:
        return literal(text)
    return f"{literal(text)}::{type_}"


def equals(name: str, text: str | None, type_: str) -> str:
    if text is None:
        return f"{identifier(name)} IS NULL"
    if type_.rstrip("[]") in WITHOUT_EQUALITY:
        return f"{identifier(name)}::text = {literal(text)}"
    return f"{identifier(name)} = {typed(text, type_)}"


def shown(name: str) -> str:
    """A name for a sentence or a comment of SQL: it stays on its line."""
    return "".join(
        character.encode("unicode_escape").decode() if _steers(character) else character for character in name
    )


def _steers(text: str) -> bool:
    return any(unicodedata.category(character) in STEERS for character in text)


def _escaped(character: str) -> str:
    if character in SHORT:
        return SHORT[character]
    if character in "\\'":
        return character * 2
    if not _steers(character):
        return character
    code = ord(character)
    return rf"\x{code:02x}" if code < 0x80 else rf"\u{code:04x}" if code <= 0xFFFF else rf"\U{code:08x}"
