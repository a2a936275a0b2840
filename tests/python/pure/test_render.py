from __future__ import annotations

import pytest
from selinger._render import html_table, quantity, seconds, text_table


def test_table_fits_the_width_and_loses_no_word() -> None:
    words = [f"word{i}" for i in range(40)]
    table = text_table(("a", "b"), [("short", " ".join(words))], width=60)
    assert max(map(len, table.splitlines())) <= 60
    assert all(word in table for word in words)


def test_long_unbroken_cells_are_cut_into_lines() -> None:
    table = text_table(("a",), [("x" * 100,)], width=30)
    assert max(map(len, table.splitlines())) <= 30
    assert table.count("x") == 100


def test_empty_table_has_its_headers() -> None:
    assert text_table(("a", "b"), []).splitlines() == ["a  b", "-  -"]


def test_html_table_is_escaped() -> None:
    assert "<td>&lt;a&gt; &amp; b</td>" in html_table(("h",), [("<a> & b",)])


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "rows", "0 rows"),
        (1234567.0, "rows", "1,234,567 rows"),
        (12345.678, "rows", "12,346 rows"),
        (6.2e17, "rows", "more than 1,000 trillion rows"),
        (0.12345678, "", "0.1235"),
        (float("inf"), "bytes", "inf bytes"),
        (float("nan"), "rows", "nan rows"),
        (1023, "bytes", "1023 B"),
        (1536, "bytes", "1.5 KiB"),
        (1e18, "bytes", "888 PiB"),
    ],
)
def test_quantities(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_seconds() -> None:
    assert [seconds(s) for s in (0.0004, 0.9, 1.234, 12.34)] == [
        "0 ms",
        "900 ms",
        "1.23 s",
        "12.3 s",
    ]
