"""Two kinds of plots as SVG text: bars and lines. Readable on white and on dark pages: each has its own background."""

import math
from collections.abc import Sequence
from html import escape

WIDTH = 720
LEFT = 190  # for the bars' names
PLOT_LEFT = 80  # for the lines' scale
RIGHT = 110  # for values and lines' names
TOP = 44
BAR = 26
GAP = 10
PLOT_HEIGHT = 240
COLOURS = ("#1f6feb", "#d29922", "#8b949e", "#2da44e")
TEXT = 'font-family="sans-serif" fill="#1f2328"'

Line = tuple[str, Sequence[tuple[float, float]]]


def bars(title: str, unit: str, values: Sequence[tuple[str, float]], highlight: str = "thalweg") -> str:
    """Horizontal bars from zero; those whose name begins with `highlight` have the first colour."""
    most = max(value for _, value in values) or 1.0
    parts = []
    for number, (name, value) in enumerate(values):
        y = TOP + number * (BAR + GAP)
        length = value / most * (WIDTH - LEFT - RIGHT)
        colour = COLOURS[0] if name.startswith(highlight) else COLOURS[2]
        parts += [_text(LEFT - 10, y + BAR * 0.68, name, anchor="end"),
                  f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" rx="3" fill="{colour}"/>',
                  _text(LEFT + length + 8, y + BAR * 0.68, spoken(value))]
    return _page(f"{title} ({unit})", TOP + len(values) * (BAR + GAP) + 8, parts)


def lines(title: str, x_unit: str, y_unit: str, series: Sequence[Line], logarithmic: bool = False) -> str:
    """One line for each name. A logarithmic scale goes by powers of ten."""
    points = [point for _, line in series for point in line]
    x_low, x_high = min(x for x, _ in points), max(x for x, _ in points)
    scale = _Scale([y for _, y in points], logarithmic)
    wide, bottom = WIDTH - PLOT_LEFT - RIGHT, TOP + PLOT_HEIGHT
    parts = []
    for tick in scale.ticks:
        y = bottom - scale.share(tick) * PLOT_HEIGHT
        parts += [f'<line x1="{PLOT_LEFT}" x2="{PLOT_LEFT + wide}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d0d7de"/>',
                  _text(PLOT_LEFT - 8, y + 4, spoken(tick), anchor="end")]
    for x in (x_low, x_high):
        at = PLOT_LEFT + (x - x_low) / ((x_high - x_low) or 1) * wide
        parts.append(_text(at, bottom + 20, spoken(x), anchor="middle"))
    parts.append(_text(PLOT_LEFT + wide / 2, bottom + 20, x_unit, anchor="middle"))
    for number, (name, line) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{PLOT_LEFT + (x - x_low) / ((x_high - x_low) or 1) * wide:.1f},"
                        f"{bottom - scale.share(y) * PLOT_HEIGHT:.1f}" for x, y in line)
        parts += [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
                  f'<rect x="{PLOT_LEFT + wide + 8}" y="{TOP + 18 * number}" width="10" height="10" fill="{colour}"/>',
                  _text(PLOT_LEFT + wide + 22, TOP + 9 + 18 * number, name)]
    return _page(f"{title} ({y_unit})", bottom + 32, parts)


class _Scale:
    """From zero to the highest value, or between powers of ten."""

    def __init__(self, values: Sequence[float], logarithmic: bool) -> None:
        self.logarithmic = logarithmic
        if logarithmic:
            positive = [value for value in values if value > 0]
            first, last = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
            self.ticks = [10.0**power for power in range(first, max(last, first + 1) + 1)]
        else:
            step = 10.0 ** math.floor(math.log10(max(values) or 1))
            step = next(step * part for part in (0.2, 0.5, 1.0, 2.0) if max(values) / (step * part) <= 6)
            self.ticks = [step * number for number in range(math.ceil(max(values) / step) + 1)]

    def share(self, value: float) -> float:
        """Where the value lies between the first and the last tick."""
        if not self.logarithmic:
            return value / self.ticks[-1]
        low, high = math.log10(self.ticks[0]), math.log10(self.ticks[-1])
        return (math.log10(max(value, self.ticks[0])) - low) / (high - low)


def spoken(value: float) -> str:
    """Three figures, thousands apart."""
    if value >= 1e6:
        return f"{value / 1e6:.3g} M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="13" text-anchor="{anchor}" {TEXT}>{escape(words)}</text>'


def _page(title: str, height: int, parts: Sequence[str]) -> str:
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
                      f"<title>{escape(title)}</title>",
                      f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#ffffff"/>',
                      f'<text x="16" y="26" font-size="15" font-weight="bold" {TEXT}>{escape(title)}</text>',
                      *parts, "</svg>", ""])
