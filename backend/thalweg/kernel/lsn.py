"""Log sequence numbers as PostgreSQL writes them."""


def lsn_of(text: str) -> int:
    """0 for what is not an LSN: the engine writes 0/0 for an unknown one."""
    high, slash, low = text.partition("/")
    try:
        return (int(high, 16) << 32) + int(low, 16) if slash else 0
    except ValueError:
        return 0


def lsn_text(position: int) -> str:
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"
