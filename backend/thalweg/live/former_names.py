"""Samples that an older version has stored, in Redis or in history.

Until November 2026, before the first release, a sample's and a destination's `lag` was called `backlog`, and a
destination's `backlog` was called `spilled`.
"""

import re

OF_TODAY = b',"lag":{'
"""Every sample has it; none of the former ones does."""
FORMER = re.compile(rb'"(destinations\.[^".]+\.)?(backlog|spilled)(\.\w+)?":')
"""A member's name, or a statistic's: `"spilled":`, `"backlog.bytes":`, `"destinations.warehouse.spilled.bytes":`."""
NAMES = {b"backlog": b"lag", b"spilled": b"backlog"}
"""Today's by the former ones."""


def with_todays_names(sample: bytes) -> bytes:
    """A sample as JSON. It is not parsed: there are many, and every tab asks for them."""
    return sample if OF_TODAY in sample else FORMER.sub(_today, sample)


def _today(found: re.Match[bytes]) -> bytes:
    return b'"%s%s%s":' % (found[1] or b"", NAMES[found[2]], found[3] or b"")
