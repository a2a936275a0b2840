"""Pieces of the report: numbers, decisions, and two plans beside each other."""

from __future__ import annotations

import string
from html import escape
from typing import TYPE_CHECKING, Any

from benchmarks.chart import TIMES
from benchmarks.plantext import Line, side_by_side

if TYPE_CHECKING:
    from collections.abc import Sequence

Decision = dict[str, Any]

MILLION = 1_000_000
UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def quantity(value: float, unit: str) -> str:
    """
    Write a number of a decision for people.

    Parameters
    ----------
    value : float
        The number.
    unit : str
        Its unit; bytes are scaled.

    Returns
    -------
    str

    Examples
    --------
    >>> quantity(3 * 2**20, "bytes"), quantity(28810.0, "rows"), quantity(0.0266, "s")
    ('3.0 MiB', '28,810 rows', '0.0266 s')
    """
    if unit == "bytes":
        for size, name in UNITS:
            if value >= size:
                return f"{value / size:.1f} {name}"
    if unit != "bytes" and abs(value) >= MILLION:
        return f"{value / MILLION:,.1f} M {unit}".strip()
    text = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
    return f"{text} {unit}".strip()


def decision_table(decisions: Sequence[Decision]) -> str:
    """
    Write Selinger's decisions: those that changed the plan in sight, all others folded.

    Parameters
    ----------
    decisions : sequence of dict
        Of one query.

    Returns
    -------
    str
        HTML; empty without decisions.

    Examples
    --------
    >>> decision_table([])
    ''
    """
    if not decisions:
        return ""
    changed = [decision for decision in decisions if decision.get("outcome") != "same"]
    informed = [decision for decision in changed if decision.get("outcome") == "informed"]
    changed = [decision for decision in changed if decision.get("outcome") != "informed"]
    same = [decision for decision in decisions if decision.get("outcome") == "same"]
    parts = ["<h3>Decisions</h3>"]
    parts.append(_decisions(changed) if changed else '<p class="quiet">Nothing changed.</p>')
    for label, rest in (("left as stock has them", same), ("statistics read", informed)):
        if rest:
            parts.append(
                f'<details><summary class="quiet">{len(rest)} {label}</summary>'
                f"{_decisions(rest)}</details>"
            )
    return "".join(parts)


def _decisions(decisions: Sequence[Decision]) -> str:
    counted: dict[str, int] = {}
    for decision in decisions:
        line = _decision(decision)
        counted[line] = counted.get(line, 0) + 1
    lines = [
        line.replace("</td>", f" <b>{TIMES}{count}</b></td>", 1) if count > 1 else line
        for line, count in counted.items()
    ]
    return (
        "<table><thead><tr><th>where</th><th>stock → chosen</th><th>why</th>"
        f"<th>numbers and their origin</th></tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _decision(decision: Decision) -> str:
    stock, chosen = decision.get("stock"), decision.get("chosen")
    step = " → ".join(str(side) for side in (stock, chosen) if side) or decision.get("outcome", "")
    numbers = "; ".join(
        f"{one.get('name')} {quantity(float(one.get('value', 0)), one.get('unit', ''))}"
        f" ({one.get('origin')})"
        for one in decision.get("numbers", [])
    )
    setting = decision.get("setting")
    knob = f"<br><code>{escape(str(setting))}</code>" if setting else ""
    rule = f"{decision.get('rule', '')}, {decision.get('phase', '')}"
    why = escape(str(decision.get("why", "")))
    cells = (
        f'{escape(str(decision.get("node", "")))}<br><span class="quiet">{escape(rule)}</span>',
        escape(str(step)),
        f"{why}<br><code>{escape(str(decision.get('reason')))}</code>{knob}",
        escape(numbers),
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def plan_table(left: list[Line], right: list[Line], base: str, candidate: str) -> str:
    """
    Set two plans beside each other.

    Parameters
    ----------
    left, right : list of Line
        The plans.
    base, candidate : str
        Their titles.

    Returns
    -------
    str
        A ``<table>``; lines that the other side lacks are shaded.

    Examples
    --------
    >>> 'class="gone"' in plan_table([Line(0, "Sort")], [], "stock", "selinger")
    True
    """
    titles = "".join(f"<th>{escape(side)}</th>" for side in (base, candidate))
    parts = [f'<table class="plan"><thead><tr>{titles}</tr></thead><tbody>']
    for ours, theirs, same in side_by_side(left, right):
        parts.append(f"<tr>{_cell(ours, '' if same else 'gone')}")
        parts.append(f"{_cell(theirs, '' if same else 'come')}</tr>")
    return "".join([*parts, "</tbody></table>"])


LONGEST = 400
LETTERS = string.ascii_letters


def _cell(line: Line | None, mark: str) -> str:
    if line is None:
        return "<td></td>"
    text = line.text if len(line.text) <= LONGEST else line.text[:LONGEST] + "…"
    name = len(text) - len(text.lstrip(LETTERS))
    shade = f' class="{mark}"' if mark else ""
    return (
        f'<td{shade}><div style="--d:{line.depth}"><strong>{escape(text[:name])}</strong>'
        f"{escape(text[name:])}</div></td>"
    )
