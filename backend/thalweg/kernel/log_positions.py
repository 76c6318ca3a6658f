"""Places in a source's log as people write them: times, LSNs, and the key of a row."""

import re
from datetime import UTC, datetime

from thalweg.kernel.table_names import unquoted

LSN_PATTERN = r"^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$"
KEY = re.compile(r'("(?:[^"]|"")+"|[^"=]+)=(.*)', re.DOTALL)


def moment_of(text: str) -> str | datetime | None:
    """An LSN, or a time in ISO 8601: in UTC unless it says otherwise. None: it is neither."""
    if re.fullmatch(LSN_PATTERN, text):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def key_part(text: str) -> tuple[str, str] | None:
    """Column and value of COLUMN=VALUE, where the column may be quoted as in SQL. None: it is something else."""
    found = KEY.fullmatch(text)
    return None if found is None else (unquoted(found[1]), found[2])
