"""Tables as they are named in arguments and addresses: schema.table, where either part may be quoted as in SQL."""

import re

QUOTED = r'"(?:[^"]|"")+"'
NAME = re.compile(rf'({QUOTED}|[^".]+)\.({QUOTED}|[^"]+)')


def table_parts(text: str) -> tuple[str, str] | None:
    """The schema and the table as they are written. None: the text is not schema.table."""
    found = NAME.fullmatch(text)
    return None if found is None else (found[1], found[2])


def unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
