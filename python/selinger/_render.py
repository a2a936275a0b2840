"""Tables as text for a terminal and as HTML for a notebook; numbers as people read them."""

from __future__ import annotations

import html
import math
import shutil
import textwrap
from collections.abc import Sequence

_GAP = 2
_NARROWEST = 8
#: From here on, digits after the point say nothing.
_THOUSAND = 1e3
#: From here on, no digit does.
_MOST = 1e15
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def text_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int | None = None,
    right: frozenset[int] = frozenset(),
) -> str:
    """Lay out a table that fits the terminal, wrapping the widest columns.

    Parameters
    ----------
    headers : sequence of str
        Column titles.
    rows : sequence of sequence of str
        Cells, as many a row as there are titles.
    width : int, optional
        Characters a line may have; the terminal's width by default (100 without a terminal).
    right : frozenset of int
        Columns aligned to the right.

    Returns
    -------
    str
        The table, without a newline at its end.

    Examples
    --------
    >>> print(text_table(["rule", "fires"], [["a", "1"], ["bcd", "20"]], right=frozenset({1})))
    rule  fires
    ----  -----
    a         1
    bcd      20
    """
    limit = width or shutil.get_terminal_size((100, 24)).columns
    widths = _fit(
        [max(_longest(row[i]) for row in [headers, *rows]) for i in range(len(headers))], limit
    )
    lines = [*_layout(headers, widths, right), (" " * _GAP).join("-" * w for w in widths)]
    for row in rows:
        lines += _layout(row, widths, right)
    return "\n".join(lines)


def html_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write the same table as HTML, every cell escaped, its lines kept.

    Examples
    --------
    >>> html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(title)}</th>" for title in headers)
    body = "".join("<tr>" + "".join(map(_html_cell, row)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def escape(text: str) -> str:
    """Escape text for HTML.

    Examples
    --------
    >>> escape("a < b")
    'a &lt; b'
    """
    return html.escape(text)


def quantity(value: float, unit: str = "") -> str:
    """Write a number with its unit, short.

    Examples
    --------
    >>> quantity(102000.0, "rows"), quantity(67108864, "bytes"), quantity(0.25, "s")
    ('102,000 rows', '64 MiB', '250 ms')
    >>> quantity(26600000.5, "rows"), quantity(6.2e17, "rows"), quantity(0.5)
    ('26,600,000 rows', 'more than 1,000 trillion rows', '0.5')
    """
    if unit == "bytes" and math.isfinite(value):
        return _bytes(value)
    if unit == "s" and math.isfinite(value):
        return seconds(value)
    return f"{_number(value)} {unit}".rstrip()


def _number(value: float) -> str:
    """Write a number without an exponent: whole, or with four digits that count."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= _MOST:
        return "more than 1,000 trillion"
    whole = float(value).is_integer() or abs(value) >= _THOUSAND
    return f"{value:,.0f}" if whole else f"{value:.4g}"


def short_count(value: float) -> str:
    """Write a count as explain texts do: in full below a million.

    Examples
    --------
    >>> short_count(102000.4), short_count(26600000), short_count(999_999_999), short_count(6e17)
    ('102,000', '26.6 M', '1 billion', 'more than 1,000 trillion')
    """
    if not value < _MOST:
        return _number(value)
    size, unit = value, ""
    for step, name in ((1e6, "M"), (1e9, "billion"), (1e12, "trillion")):
        if value >= step * 0.99995:
            size, unit = value / step, f" {name}"
    return f"{size:.1f}".removesuffix(".0") + unit if unit else f"{value:,.0f}"


def seconds(value: float) -> str:
    """Write a duration.

    Examples
    --------
    >>> seconds(0.0123), seconds(4.5678), seconds(83.2)
    ('12 ms', '4.57 s', '83.2 s')
    """
    if value < 1:
        return f"{value * 1000:.0f} ms"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def _html_cell(cell: str) -> str:
    return f"<td>{escape(cell)}</td>".replace("\n", "<br>")


def _bytes(value: float) -> str:
    size, unit = float(value), 0
    while abs(size) >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.3g} {_UNITS[unit]}" if size < 1000 else f"{size:.0f} {_UNITS[unit]}"


def _longest(cell: str) -> int:
    return max((len(line) for line in cell.splitlines()), default=0)


def _fit(widths: list[int], limit: int) -> list[int]:
    widths = list(widths)
    while sum(widths) + _GAP * (len(widths) - 1) > limit and max(widths) > _NARROWEST:
        widest = widths.index(max(widths))
        widths[widest] -= 1
    return widths


def _layout(cells: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> list[str]:
    wrapped = [_wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    height = max(len(lines) for lines in wrapped)
    out = []
    for i in range(height):
        parts = []
        for column, (lines, width) in enumerate(zip(wrapped, widths, strict=True)):
            cell = lines[i] if i < len(lines) else ""
            parts.append(cell.rjust(width) if column in right else cell.ljust(width))
        out.append((" " * _GAP).join(parts).rstrip())
    return out


def _wrap(cell: str, width: int) -> list[str]:
    lines = [part for line in cell.splitlines() for part in (textwrap.wrap(line, width) or [""])]
    return lines or [""]
