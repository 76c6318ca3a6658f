"""Figures in texts: never as powers of ten, sizes in binary prefixes, and what lasts does so "for" a time."""

from io import StringIO

import pytest

from thalweg.cli.commands import advisor
from thalweg.cli.commands.monitoring import _figure
from thalweg.cli.output import Terminal, lag_in_words
from thalweg.kernel.words import amount, figure, statistic_in_words


@pytest.mark.parametrize(
    ("value", "digits", "told"),
    [
        (0, 3, "0"), (0.00321, 3, "0.00321"), (0.0000321, 3, "0.0000321"), (1, 3, "1"), (12.345, 3, "12.3"),
        (999.9, 3, "1,000"), (16_766_100.0, 3, "16,766,100"), (16_766_100.0, 6, "16,766,100"), (-2.5, 3, "-2.5"),
        (123.456, 6, "123.456"), (1e15, 3, "1,000,000,000,000,000"),
    ],
)  # fmt: skip
def test_a_figure_is_no_power_of_ten(value: float, digits: int, told: str) -> None:
    assert figure(value, digits) == told


@pytest.mark.parametrize(
    ("value", "unit", "told"),
    [
        (16_777_216.0, "BYTES", "16.0 MiB"), (2048.0, "BYTES PER SECOND", "2.0 KiB per second"),
        (1234.0, "SECONDS", "21 min"), (97.26, "PERCENT", "97.3 %"), (1e6, "NUMBER", "1,000,000 number"),
        ("sequential scan", "", "sequential scan"), (None, "SECONDS", "–"), (3.0, "", "3"),
    ],
)  # fmt: skip
def test_a_statistic_has_its_unit(value: str | float | None, unit: str, told: str) -> None:
    assert statistic_in_words(value, unit) == told


def test_thresholds_are_told_in_their_units() -> None:
    assert [amount(2.0**50, "bytes"), amount(3600, "seconds"), amount(1e9, "transactions")] == [
        "1024.0 TiB", "60 min", "1,000,000,000 transactions",
    ]  # fmt: skip


def test_evidence_of_a_backlog_is_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(width=200, record=True, file=StringIO())
    monkeypatch.setattr(advisor, "out", terminal)
    evidence = {
        "subject": "Warehouse", "statistic": "BACKLOG", "value": 16_766_100.0, "unit": "BYTES",
        "threshold": float(16 << 20),
    }  # fmt: skip
    advisor._show_finding(
        {
            "rank": 1, "code": "apply_lag", "severity": "advice", "title": "t", "explanation": "e",
            "evidence": [evidence], "expected_gain": None, "cures": [],
        },
        "s → Warehouse",
    )  # fmt: skip
    assert "Warehouse: BACKLOG 16.0 MiB (threshold 16.0 MiB)" in terminal.export_text()


def test_the_monitor_keeps_to_plain_figures() -> None:
    assert [_figure(999_900_000.0), _figure(2.5e12), _figure(1234.5, "sec")] == ["1,000M", "2,500G", "1,234sec"]


def test_a_lag_lasts_for_a_time() -> None:
    lag = {"bytes": 3 << 20, "age_seconds": 70, "seconds_to_full": 600}
    assert lag_in_words(lag) == "3.0 MiB for 70 s, full in 10 min"
    staging = {**lag, "bytes": 0, "reached_limit": "staging_limit_mb"}
    assert lag_in_words(staging) == "0 B, full in 10 min (staging_limit_mb)", "an open transaction, no change"
    assert lag_in_words({**staging, "reached_limit": "queue_spill_limit_mb"}) == "0 B"
