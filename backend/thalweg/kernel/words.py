"""Quantities in sentences: sizes in binary prefixes, times in the largest unit that fits."""

import json

from thalweg.kernel.sums import Sum

STEPS = (("days", 86400.0), ("h", 3600.0), ("min", 60.0))


def size(value: float) -> str:
    """From 1 KiB on with a digit after the point, which is never 0.0."""
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


def figure(value: float, digits: int = 3) -> str:
    """With that many significant digits, and never as a power of ten."""
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{float(f'{value:.{digits}g}'):.9f}".rstrip("0").rstrip(".")


def amount(value: float, unit: str) -> str:
    """A threshold of an alert rule, whole."""
    in_words = {"bytes": size, "seconds": duration, "days": days}.get(unit)
    return in_words(value) if in_words is not None else f"{value:,.15g} {unit}"


def statistic_in_words(value: str | float | None, unit: str) -> str:
    """A figure of the advisor, whose units are written in capitals."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return f"{value} {unit.lower()}".rstrip()
    match unit:
        case "BYTES":
            return size(value)
        case "BYTES PER SECOND":
            return f"{size(value)} per second"
        case "SECONDS":
            return duration(value)
        case "PERCENT":
            return f"{figure(value)} %"
    return f"{figure(value)} {unit.lower()}".rstrip()


def setting_in_words(value: object) -> str:
    """A parameter's value as it is written in requests and commands: true and false are lower case, lists are JSON."""
    if isinstance(value, list):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def share_in_words(share: float) -> str:
    """The share of work in progress: never all of it, however low its estimate was. Rounded like the console's
    shares."""
    percent = 100 * min(0.99, share)
    if 0 < percent < 0.1:
        return "< 0.1 %"
    return f"{percent:.1f} %" if 0 < percent < 9.95 else f"{percent:.0f} %"


def ended(sentence: str) -> str:
    """With a full stop: messages of servers and libraries have none."""
    return sentence if sentence.endswith((".", "!", "?", "”")) else f"{sentence}."


def days(count: float) -> str:
    return duration(count * 86400)


def grouped(count: int) -> str:
    """A whole number with thin spaces between the thousands, as in the console."""
    return f"{count:,}".replace(",", "\u202f")


def counted(count: int, noun: str) -> str:
    """“1 table”, “2 tables”: with the noun that fits."""
    return f"{grouped(count)} {noun if count == 1 else f'{noun}s'}"


def parked_in_words(parked: Sum[int]) -> str:
    """The beginning of a sentence, in lower case. A sum of which no part is known is not told as zero."""
    count = parked.value
    if count is None:
        return "an unknown number of transactions is parked"
    bound = "at least " if parked.at_least else ""
    return f"{bound}{counted(count, 'transaction')} {'is' if count == 1 else 'are'} parked"


def capitalised(sentence: str) -> str:
    """With a capital letter first, and nothing else changed: names in it keep theirs."""
    return sentence[:1].upper() + sentence[1:]


def listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def go_on_in_words(others: list[str]) -> str:
    """A further clause where others go on; empty where none does."""
    if not others:
        return ""
    return f"; {others[0]} continues" if len(others) == 1 else "; the others continue"
