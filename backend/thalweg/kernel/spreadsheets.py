"""Text that other people's spreadsheets open."""


def harmless(text: str) -> str:
    """A spreadsheet runs text that begins like a formula, and users choose the names and values."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
