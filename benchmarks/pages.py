"""The parts of the report that are about single queries: the table, and plans beside each other."""

from __future__ import annotations

import string
from html import escape
from typing import TYPE_CHECKING, Any

from benchmarks.chart import TIMES, kind, times
from benchmarks.plantext import Line, operator_change, read_plan, side_by_side
from benchmarks.table import answer_word, middle, number

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, Any]
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


def change_of(row: Row, details: dict[str, Any], base: str, candidate: str) -> str:
    """
    Say in a line what is different about a query's plan, and why.

    Parameters
    ----------
    row : dict
        Its row.
    details : dict
        Plan and decisions by profile.
    base, candidate : str
        Names of the two sides.

    Returns
    -------
    str
        Operators that came and went, then the reasons of the decisions that changed something.

    Examples
    --------
    >>> change_of({}, {}, "stock", "selinger")
    'same operators'
    """
    operators = row.get("operators", {})
    change = operator_change(operators.get(base, {}), operators.get(candidate, {}))
    reasons: dict[str, int] = {}
    for decision in details.get(candidate, {}).get("decisions", []):
        if decision.get("outcome") == "changed":
            reason = str(decision.get("reason"))
            reasons[reason] = reasons.get(reason, 0) + 1
    because = ", ".join(f"{reason} {TIMES}{count}" for reason, count in sorted(reasons.items()))
    return (change or "same operators") + (f" ({because})" if because else "")


def query_table(
    rows: Sequence[Row], details: dict[str, dict[str, Any]], base: str, candidate: str
) -> str:
    """
    Write the table of all queries.

    Parameters
    ----------
    rows : sequence of dict
        Rows of a result.
    details : dict
        Plans and decisions by query and profile.
    base, candidate : str
        Names of the two sides.

    Returns
    -------
    str
        A ``<table>``.

    Examples
    --------
    >>> "q01" in query_table([{"name": "q01", "equal": True}], {}, "stock", "selinger")
    True
    """
    heads = [f"{base} s", f"{candidate} s", "DuckDB s", "ratio"]
    parts = ["<table><thead><tr><th>query</th>"]
    parts += [f'<th class="n">{escape(head)}</th>' for head in heads]
    parts.append("<th>answers</th><th>what changed</th></tr></thead><tbody>")
    for row in rows:
        name = escape(row["name"])
        ratio = row.get("ratio")
        shade = f" {kind(ratio)}-text" if ratio else ""
        word = answer_word(row)
        bad = "" if word in ("equal", "ties") else ' class="bad"'
        change = change_of(row, details.get(row["name"], {}), base, candidate)
        parts.append(
            f'<tr><td><a href="#{name}">{name}</a></td>'
            f'<td class="n">{number(middle(row.get(f"{base}_s")))}</td>'
            f'<td class="n">{number(middle(row.get(f"{candidate}_s")))}</td>'
            f'<td class="n">{number(row.get("duckdb_s"))}</td>'
            f'<td class="n{shade}">{number(ratio)}</td>'
            f"<td{bad}>{escape(word)}</td><td>{escape(change)}</td></tr>"
        )
    return "".join([*parts, "</tbody></table>"])


def query_section(row: Row, details: dict[str, Any], base: str, candidate: str) -> str:
    """
    Write what is known of one query: figures, decisions, both plans.

    Parameters
    ----------
    row : dict
        Its row.
    details : dict
        Plan and decisions by profile.
    base, candidate : str
        Names of the two sides.

    Returns
    -------
    str
        A ``<details>`` element, closed.

    Examples
    --------
    >>> "<details" in query_section({"name": "q01", "equal": True}, {}, "stock", "selinger")
    True
    """
    name = escape(row["name"])
    ratio = row.get("ratio")
    said = f'<span class="{kind(ratio)}-text">{times(ratio)}</span>' if ratio else ""
    change = escape(change_of(row, details, base, candidate))
    plans = [
        read_plan(plan) if (plan := details.get(side, {}).get("plan")) else []
        for side in (base, candidate)
    ]
    return (
        f'<details id="{name}"><summary><b>{name}</b> {said} <span class="what">{change}</span>'
        f'</summary><div class="inside">{_problems(row)}{_figures(row, base, candidate)}'
        f"{decision_table(details.get(candidate, {}).get('decisions', []))}"
        f"<h3>Plans that ran, differences marked</h3>"
        f"{plan_table(plans[0], plans[1], base, candidate)}</div></details>"
    )


def _problems(row: Row) -> str:
    texts = [f"{side} failed: {text}" for side, text in row.get("failures", {}).items()]
    texts += [
        f"{side}: {row.get('verdicts', {}).get(side)}, {text}"
        for side, text in row.get("notes", {}).items()
    ]
    return "".join(f'<p class="quiet">{escape(text)}</p>' for text in texts)


FIGURES = (
    ("rows_out_of_joins", "rows out of joins", ""),
    ("shuffled_bytes", "shuffled", "bytes"),
    ("sort_ms", "sorting, all tasks", "ms"),
    ("spilled_bytes", "spilled", "bytes"),
)


def _figures(row: Row, base: str, candidate: str) -> str:
    metrics = row.get("metrics", {})
    lines = [
        (label, *(metrics.get(side, {}).get(key) for side in (base, candidate)), unit)
        for key, label, unit in FIGURES
    ]
    lines.append(("planning", *(row.get(f"planning_{s}_ms") for s in (base, candidate)), "ms"))
    said = [
        f"{label} {quantity(ours, unit)} → {quantity(theirs, unit)}"
        for label, ours, theirs, unit in lines
        if ours is not None and theirs is not None and (ours or theirs)
    ]
    return f'<p class="quiet">{escape(" · ".join(said))}</p>' if said else ""


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
