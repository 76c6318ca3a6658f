"""Quantities in sentences: sizes in binary prefixes, times in the largest unit that fits."""

STEPS = (("days", 86400.0), ("h", 3600.0), ("min", 60.0))


def size(value: float) -> str:
    amount = float(value)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"


def duration(seconds: float) -> str:
    for unit, length in STEPS:
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.3g} s"


def days(count: float) -> str:
    return duration(count * 86400)
