"""The self-contained HTML report of a run: verdicts, findings, charts and the six tables. It fetches nothing."""

from html import escape

from thalweg.advisor.finding import Cure, Finding
from thalweg.features.advisor.rendering.charts import COLOURS, legend, line_chart, share_bars
from thalweg.features.advisor.rendering.tables import Table, as_text, tables_of
from thalweg.features.advisor.schemas import PathSeries, Run, RunPath
from thalweg.kernel.words import counted, setting_in_words, statistic_in_words

STYLE = """
body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1b2430;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}h3{font-size:1rem}
table{border-collapse:collapse;width:100%;font-size:12px}
th,td{text-align:left;padding:3px 8px;border-bottom:1px solid #dde3ea}
.scroll{overflow-x:auto}.finding{border-left:4px solid #888;padding:.3rem 1rem;margin:1rem 0;background:#f6f8fa}
.critical{border-color:#b3261e}.warning{border-color:#b06f00}.advice{border-color:#2f6fb5}
pre{background:#eef1f5;padding:.6rem;overflow-x:auto}svg{max-width:40rem;width:100%}polyline{fill:none;stroke:#2f6fb5;stroke-width:1.5}
text{font-size:11px;fill:#445}.end{text-anchor:end}.bottleneck{fill:#b3261e;font-weight:bold}.axis{stroke:#aab}
figure{margin:.5rem 0}figcaption{font-weight:600}.legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:1rem}
.legend span{display:inline-block;width:1em;height:1em;margin-right:.4em;vertical-align:-2px}.none{color:#667}
@media(prefers-color-scheme:dark){body{background:#141a21;color:#dfe6ee}.finding,pre{background:#1d2630}
th,td{border-color:#2c3844}text{fill:#aab8c6}}
"""


def html_page(run: Run) -> str:
    title = f"Advisor run {run.id}" + (f": {run.name}" if run.name else "")
    note = f"<p>{escape(run.note)}</p>" if run.note else ""
    series = {item.path_id: item for item in run.series}
    parts = [
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(title)}</title>",
        f'<meta name=viewport content="width=device-width"><style>{STYLE}</style></head><body><h1>{escape(title)}</h1>',
        f"<p>{as_text(run.at)} UTC, {escape(run.reason)}, by {escape(run.requested_by)}; "
        f"{counted(run.samples, 'sample')}.</p>",
        note,
        *(_path(run, path, series.get(path.path_id)) for path in run.paths),
        "<h2>Findings</h2>",
        *([_finding(finding) for finding in run.findings_ranked] or ["<p>None.</p>"]),
        "<h2>Tables</h2>",
        *(_table(table) for table in tables_of(run)),
        "</body></html>\n",
    ]
    return "".join(parts)


def _path(run: Run, path: RunPath, series: PathSeries | None) -> str:
    charts = ""
    if series is not None:
        charts = line_chart(series, series.messages_per_second, "LCRs applied", "LCR/s")
        charts += line_chart(series, series.latency_p99_ms, "Latency, 99th percentile", "ms")
        if any(value is not None for value in series.latency_at_least_ms):
            charts += line_chart(series, series.latency_at_least_ms, "Latency, at least, while nothing arrived", "ms")
    heading = f"{path.path_name}, from {path.source_db}"
    return (
        f"<h2>{escape(heading)}</h2><p><strong>{escape(path.verdict)}</strong>. {escape(path.explanation)}</p>"
        f"{share_bars(_stages(run, path))}{legend(list(COLOURS))}{charts}"
    )


def _stages(run: Run, path: RunPath) -> list[tuple[str, dict[str, float], bool]]:
    wanted = next(item.component_ids for item in run.analysis.paths if item.path_id == path.path_id)
    stages: dict[tuple[str, str | None], dict[str, float]] = {}
    titles: dict[tuple[str, str | None], str] = {}
    for row in run.analysis.component_statistics:
        name = row.statistic_name.removeprefix("EVENT: ")
        if row.component_id not in wanted or row.thread is not None or name not in COLOURS:
            continue
        key = (row.component_id, row.sub_component_type)
        shares = stages.setdefault(key, {})
        if row.statistic_value is not None:
            shares[name] = row.statistic_value
        titles[key] = row.sub_component_type or row.component_type.value
    limiting = (path.component_id, path.sub_component_type)
    return [(titles[key], shares, key == limiting) for key, shares in stages.items()]


def _finding(finding: Finding) -> str:
    rows = "".join(
        f"<tr><td>{escape(item.subject)}</td><td>{escape(item.statistic)}</td>"
        f"<td>{escape(statistic_in_words(item.value, item.unit))}</td>"
        f"<td>{escape('' if item.threshold is None else statistic_in_words(item.threshold, item.unit))}</td></tr>"
        for item in finding.evidence
    )
    gain = f"<p>Expected: {escape(finding.expected_gain)}</p>" if finding.expected_gain else ""
    return (
        f'<div class="finding {finding.severity}"><h3>{finding.rank}. {escape(finding.title)}</h3>'
        f"<p>{escape(finding.explanation)}</p><table><tr><th>of</th><th>evidence</th><th>value</th><th>threshold</th></tr>"
        f"{rows}</table>{gain}{''.join(cure_in_html(cure) for cure in finding.cures)}</div>"
    )


def cure_in_html(cure: Cure) -> str:
    changes = "\n".join(
        f"{item.name} = {setting_in_words(item.proposed)}   (now {setting_in_words(item.current)})"
        for item in cure.parameters
    )
    code = cure.sql or changes
    where = f" At {escape(cure.database)}:" if cure.database else ""
    return f"<p>Cure: {escape(cure.text)}{where}</p>" + (f"<pre>{escape(code)}</pre>" if code else "")


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(as_text(value))}</td>" for value in row) + "</tr>" for row in table.rows
    )
    return f"<h3>{table.name.view}</h3><div class=scroll><table><tr>{head}</tr>{rows}</table></div>"
