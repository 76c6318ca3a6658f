"""Do texts of the source fit the destination: the encodings, and the order in which each side sorts."""

from dataclasses import dataclass

from thalweg.inspection.checks import Checklist
from thalweg.inspection.connection import Connection, read_row

# daticulocale is PostgreSQL 15's and 16's, datlocale 17's; each is read by a name that the others survive.
TEXT = """
SELECT pg_encoding_to_char(d.encoding) AS encoding, d.datcollate AS collate, d.datctype AS ctype,
       coalesce(to_jsonb(d) ->> 'datlocprovider', 'c') AS provider,
       coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale', '') AS locale
  FROM pg_database d WHERE d.datname = current_database()
"""
PROVIDERS = {"c": "libc", "i": "ICU", "b": "builtin"}
NO_ENCODING = "SQL_ASCII"


@dataclass(frozen=True)
class TextSettings:
    encoding: str
    collate: str
    ctype: str
    provider: str
    locale: str

    @property
    def order(self) -> str:
        name = self.locale or self.collate
        return f"{name} ({PROVIDERS.get(self.provider, self.provider)})"


async def read_text_settings(connection: Connection) -> TextSettings:
    return TextSettings(**await read_row(connection, TEXT))


def check_text(checklist: Checklist, source: TextSettings, destination: TextSettings) -> None:
    _check_encoding(checklist, source.encoding, destination.encoding)
    title = "Collation"
    if source.order == destination.order:
        checklist.ok("collation", title, f"Both databases sort by {source.order}.")
    else:
        checklist.warn(
            "collation", title,
            f"The source sorts texts by {source.order}, the destination by {destination.order}: queries may give rows "
            "in another order, and ranges of partitions by text may hold other rows.",
            "Nothing needs to be done where no query depends on the order; else create the destination's database with "
            "the source's locale.",
        )  # fmt: skip


def _check_encoding(checklist: Checklist, source: str, destination: str) -> None:
    title = "Encoding"
    if source == NO_ENCODING:
        checklist.ask(
            "encoding", title,
            "The source's encoding is SQL_ASCII: its server does not know what its bytes mean. They are read as UTF-8; "
            "a text that is not valid UTF-8 stops the copy or the stream.",
            "Convert the source's database to UTF8 if it holds texts in another encoding.", [],
        )  # fmt: skip
    elif destination in (source, "UTF8"):
        checklist.ok("encoding", title, f"{destination} holds every text of the source ({source}).")
    elif destination == NO_ENCODING:
        checklist.warn(
            "encoding", title,
            f"The destination's encoding is SQL_ASCII: texts of the source ({source}) arrive as UTF-8 there.",
            "Create the destination's database with ENCODING 'UTF8'.",
        )  # fmt: skip
    else:
        checklist.ask(
            "encoding", title,
            f"The destination's encoding {destination} does not have all characters of the source's {source}: the "
            "first text with one that it lacks stops the copy or the stream.",
            "Create the destination's database with ENCODING 'UTF8'.", [],
        )  # fmt: skip
