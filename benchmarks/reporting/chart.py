"""The bar chart of ratios, as inline SVG."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

BAR, GAP, LEFT, TOP, HEIGHT, BOTTOM = 11, 3, 74, 22, 300, 44
TICKS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
EVEN = 0.1
TIMES = "\N{MULTIPLICATION SIGN}"


def kind(ratio: float) -> str:
    if ratio < 1 - EVEN:
        return "faster"
    return "slower" if ratio > 1 + EVEN else "even"


def times(ratio: float) -> str:
    return f"{1 / ratio:.1f}{TIMES} faster" if ratio < 1 else f"{ratio:.1f}{TIMES} slower"


def ratio_chart(rows: Sequence[dict[str, Any]], base: str, candidate: str) -> str:
    """Draw one bar a query, best first, on a logarithmic scale with a line at 1.0."""
    rated = sorted((row for row in rows if row.get("ratio")), key=lambda row: float(row["ratio"]))
    ends = [value for row in rated for value in (row["ratio"], *(row.get("ratio_spread") or ()))]
    low, high = min([*ends, 0.7]), max([*ends, 1.5])
    span = math.log(high / low)

    def place(ratio: float) -> float:
        return TOP + HEIGHT * (1 - math.log(ratio / low) / span)

    width = LEFT + len(rated) * (BAR + GAP) + 10
    label = f"Time of {candidate} divided by time of {base}, a bar a query, logarithmic scale"
    opening = (
        f'<svg viewBox="0 0 {width} {TOP + HEIGHT + BOTTOM}" role="img" '
        f'style="min-width:{width * 0.72:.0f}px;max-width:{width}px" aria-label="{escape(label)}">'
    )
    parts = [opening]
    for tick in TICKS:
        if low <= tick <= high:
            y = f"{place(tick):.1f}"
            style = "one" if tick == 1.0 else "grid"
            parts.append(f'<line class="{style}" x1="{LEFT}" x2="{width}" y1="{y}" y2="{y}"/>')
            parts.append(
                f'<text class="tick" x="{LEFT - 8}" y="{y}" dy="3.5">{tick:g} {TIMES}</text>'
            )
    parts.append(f'<text class="side" x="4" y="12">↑ slower than {escape(base)}</text>')
    for number, row in enumerate(rated):
        parts.append(_bar(row, LEFT + number * (BAR + GAP) + GAP, place, base, candidate))
    foot = TOP + HEIGHT + BOTTOM - 4
    parts.append(f'<text class="side" x="4" y="{foot}">↓ faster</text></svg>')
    return "".join(parts)


def _bar(row: dict[str, Any], x: float, place: Any, base: str, candidate: str) -> str:
    name, ratio = escape(row["name"]), float(row["ratio"])
    y, one = place(ratio), place(1.0)
    top, height = min(y, one), max(abs(y - one), 1.0)
    spread = row.get("ratio_spread")
    title = f"{name}: {candidate} takes {ratio:.2f} {TIMES} {base} ({times(ratio)})"
    whisker = ""
    if spread and spread[0] != spread[1]:
        title += f", runs from {spread[0]:.2f} to {spread[1]:.2f}"
        middle = x + BAR / 2
        whisker = (
            f'<path class="whisker" d="M{middle - 2.5} {place(spread[0]):.1f}h5m-2.5 0'
            f'V{place(spread[1]):.1f}m-2.5 0h5"/>'
        )
    turned = f"translate({x + BAR / 2 + 3} {TOP + HEIGHT + 8}) rotate(-90)"
    return (
        f'<a href="#{name}"><g><title>{escape(title)}</title>'
        f'<rect class="hit" x="{x - GAP / 2}" y="{TOP}" width="{BAR + GAP}" height="{HEIGHT}"/>'
        f'<rect class="{kind(ratio)}" x="{x}" y="{top:.1f}" width="{BAR}" height="{height:.1f}"/>'
        f'{whisker}<text class="name" transform="{turned}">{name}</text></g></a>'
    )
