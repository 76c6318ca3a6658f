"""Tables as they are named in arguments: schema.table, where either part may be quoted as in SQL."""

import re

from thalweg.cli.client import CommandError, Json
from thalweg.kernel.table_names import table_parts, unquoted


def table_ref(text: str) -> Json:
    """A table by its exact name."""
    schema, table = _parts(text)
    return {"schema": unquoted(schema), "table": unquoted(table)}


def table_rule(text: str) -> Json:
    """A pattern, in which * and ? are wildcards."""
    for part in _parts(text):
        if part.startswith('"') and re.search(r"[*?]", part):
            raise CommandError(
                f"{part} is quoted, and * and ? are wildcards all the same.",
                "Leave out the quotes: ? matches itself, too, and * any characters.",
            )
    return table_ref(text)


def _parts(text: str) -> tuple[str, str]:
    found = table_parts(text)
    if found is None:
        raise CommandError(
            f"“{text}” is not schema.table.",
            "Write public.orders, or public.* for all where patterns are taken. Case matters. Names with a dot or a "
            "quotation mark are quoted as in SQL: 'public.\"odd.name\"'.",
        )
    return found
