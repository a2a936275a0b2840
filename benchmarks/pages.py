"""The parts of the report that are about single queries: the table of all, and a section each."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from benchmarks.chart import TIMES, kind, times
from benchmarks.fragments import decision_table, plan_table, quantity
from benchmarks.plantext import operator_change, read_plan
from benchmarks.table import answer_word, middle, number

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, Any]


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
