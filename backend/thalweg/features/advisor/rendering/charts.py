"""Inline SVG for the HTML report: a line over time, and bars of what a stage's time goes to. No scripts."""

from html import escape

from thalweg.features.advisor.schemas import PathSeries
from thalweg.kernel.words import figure

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 120, 70, 18
COLOURS = {
    "IDLE": "#d5dbe3", "FLOW CONTROL": "#e0a030", "CPU": "#2f6fb5", "EXECUTE": "#3a9b6b", "COMMIT": "#7b5cc4",
    "NETWORK": "#c2557f", "SOURCE": "#c2557f", "DEPENDENCY": "#c7552b", "COMMIT ORDER": "#a23b3b", "LOCK": "#8b1e1e",
    "DISK": "#6b6b2f",
}  # fmt: skip


def line_chart(series: PathSeries, values: list[float | None], title: str, unit: str) -> str:
    """Gaps stay gaps: what is not known is not drawn."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return f"<p class=none>{escape(title)}: not enough samples.</p>"
    top = max(known) or 1.0
    first, last = series.at[0].timestamp(), series.at[-1].timestamp()
    span = (last - first) or 1.0
    segments: list[list[str]] = [[]]
    for at, value in zip(series.at, values, strict=True):
        if value is None:
            segments.append([])
            continue
        x = LEFT + (WIDTH - LEFT - 10) * (at.timestamp() - first) / span
        y = 10 + (HEIGHT - BOTTOM - 14) * (1 - value / top)
        segments[-1].append(f"{x:.1f},{y:.1f}")
    lines = "".join(f'<polyline points="{" ".join(points)}"/>' for points in segments if len(points) > 1)
    floor = HEIGHT - BOTTOM
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}"><line x1="{LEFT}" y1="{floor}" x2="{WIDTH - 10}" y2="{floor}" class="axis"/>'
        f'<text x="{LEFT - 6}" y="14" class="end">{figure(top, 4)} {escape(unit)}</text>'
        f'<text x="{LEFT - 6}" y="{floor}" class="end">0</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 4}">{series.at[0]:%H:%M:%S}</text>'
        f'<text x="{WIDTH - 10}" y="{HEIGHT - 4}" class="end">{series.at[-1]:%H:%M:%S} UTC</text>{lines}</svg></figure>'
    )


def share_bars(stages: list[tuple[str, dict[str, float], bool]]) -> str:
    """One bar for each stage: (name, percent by activity, is the bottleneck)."""
    height = 26 * len(stages) + 6
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Where each stage spends its time">']
    for number, (name, shares, limits) in enumerate(stages):
        y, x = 4 + 26 * number, 190.0
        marked = f"▶ {name}" if limits else name
        parts.append(f'<text x="184" y="{y + 14}" class="end{" bottleneck" if limits else ""}">{escape(marked)}</text>')
        for activity, share in shares.items():
            width = (WIDTH - 200) * share / 100
            if width < 0.5:
                continue
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="18" fill="{COLOURS.get(activity, "#888")}">'
                f"<title>{escape(activity)} {share:.1f} %</title></rect>"
            )
            x += width
    return "".join([*parts, "</svg>"])


def legend(names: list[str]) -> str:
    chips = "".join(
        f'<li><span style="background:{COLOURS.get(name, "#888")}"></span>{escape(name)}</li>' for name in names
    )
    return f"<ul class=legend>{chips}</ul>"
