"""One self-contained HTML page about a run: headline figures, ratios, plans and decisions."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from selinger import Decision
from selinger._plan import diff_html, executed, plan_diff
from selinger._render import quantity
from selinger.explain import decisions_html, parse, physical_plan

from benchmarks.paths import scale_text
from benchmarks.reporting.chart import TIMES, kind, ratio_chart, times
from benchmarks.reporting.figures import Row
from benchmarks.reporting.state import read_state, state_path
from benchmarks.reporting.table import answer_word, headlines, number, seconds

Details = dict[str, str]
"""What explain printed of the plan that ran, by profile."""

STYLE = Path(__file__).with_name("report.css")
OPEN_TARGET = (
    "const o=()=>{const d=document.getElementById(location.hash.slice(1));"
    "if(d&&d.open===false){d.open=true;d.scrollIntoView()}};"
    "addEventListener('hashchange',o);o()"
)
FIGURES = (
    ("rows_out_of_joins", "rows out of joins", ""),
    ("shuffled_bytes", "shuffled", "bytes"),
    ("sort_ms", "sorting, all tasks", "ms"),
    ("spilled_bytes", "spilled", "bytes"),
)
SHOWN = (
    "BroadcastHashJoin",
    "BroadcastNestedLoopJoin",
    "CartesianProduct",
    "Exchange",
    "Expand",
    "HashAggregate",
    "ObjectHashAggregate",
    "ShuffledHashJoin",
    "Sort",
    "SortAggregate",
    "SortMergeJoin",
    "Window",
)
"""Operators whose number is worth a word."""


def sides(results: dict[str, Any]) -> tuple[str, str]:
    names = list(results["config"]["profiles"])
    return names[0], names[-1]


def decisions_of(details: Details, side: str) -> tuple[Decision, ...]:
    """Read a side's decisions; a stock side has none."""
    found = parse(details.get(side, ""))
    return found.decisions if found else ()


def operator_change(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Say which operators a plan has more or fewer of; those that went come first."""
    changed = [
        (after.get(name, 0) - before.get(name, 0), name)
        for name in SHOWN
        if before.get(name, 0) != after.get(name, 0)
    ]
    return ", ".join(
        f"{name} {before.get(name, 0)}→{after.get(name, 0)}" for _, name in sorted(changed)
    )


def change_of(row: Row, details: Details, base: str, candidate: str) -> str:
    """Say in a line what is different about a query's plan, and why."""
    operators = row.get("operators", {})
    change = operator_change(operators.get(base, {}), operators.get(candidate, {}))
    reasons = Counter(
        decision.reason
        for decision in decisions_of(details, candidate)
        if decision.outcome == "changed"
    )
    because = ", ".join(f"{reason} {TIMES}{count}" for reason, count in sorted(reasons.items()))
    return (change or "same operators") + (f" ({because})" if because else "")


def query_section(row: Row, details: Details, base: str, candidate: str) -> str:
    """Write what is known of one query: times, answers and changes; below, folded, the rest."""
    name = escape(row["name"])
    ratio = row.get("ratio")
    said = f'<span class="{kind(ratio)}-text">{times(ratio)}</span>' if ratio else ""
    took = f"{seconds(row, base)} → {seconds(row, candidate)} s, "
    took += f"DuckDB {number(row.get('duckdb_s'))} s"
    word = answer_word(row)
    bad = "" if word in ("equal", "ties") else ' class="bad"'
    change = escape(change_of(row, details, base, candidate))
    return (
        f'<details id="{name}"><summary><b>{name}</b> {took} {said} '
        f'<span{bad}>{escape(word)}</span> <span class="what">{change}</span>'
        f'</summary><div class="inside">{_problems(row)}{_figures(row, base, candidate)}'
        f"{_decisions(decisions_of(details, candidate))}"
        f"{_plans(details, base, candidate)}</div></details>"
    )


def _problems(row: Row) -> str:
    texts = [f"{side} failed: {text}" for side, text in row.get("failures", {}).items()]
    texts += [
        f"{side}: {row.get('verdicts', {}).get(side)}, {text}"
        for side, text in row.get("notes", {}).items()
    ]
    return "".join(f'<p class="quiet">{escape(text)}</p>' for text in texts)


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


def _decisions(decisions: Sequence[Decision]) -> str:
    """Write the decisions: those that changed the plan in sight, all others folded."""
    if not decisions:
        return ""
    folded = {"same": "left as stock has them", "informed": "statistics read"}
    seen = tuple(one for one in decisions if one.outcome not in folded)
    text = decisions_html(seen) if seen else '<p class="quiet">Nothing changed.</p>'
    for outcome, label in folded.items():
        rest = tuple(one for one in decisions if one.outcome == outcome)
        if rest:
            text += f'<details><summary class="quiet">{len(rest)} {label}</summary>'
            text += f"{decisions_html(rest)}</details>"
    return f"<h3>Decisions</h3>{text}"


def _plans(details: Details, base: str, candidate: str) -> str:
    plans = {
        side: executed(physical_plan(details[side]))
        for side in (base, candidate)
        if side in details
    }
    if len(plans) < 2:
        return ""
    diff = plan_diff(plans[base], plans[candidate])
    whole = "".join(
        f"<details><summary>plan of {escape(side)}</summary><pre>{escape(plan)}</pre></details>"
        for side, plan in plans.items()
    )
    shown = diff_html(diff) if diff else '<p class="quiet">The same plan ran on both sides.</p>'
    return f'<h3>Plans that ran, compared</h3><div class="scroll">{shown}</div>{whole}'


def heading(results: dict[str, Any]) -> str:
    config = results["config"]
    data = f"{config['suite'].upper().replace('TPC', 'TPC-')} SF {scale_text(config['scale'])}"
    machine = results["machine"]
    conf = next(iter(config["profiles"].values()))["conf"]
    facts = [
        f"Spark {results['spark']}",
        f"DuckDB {results['duckdb']}",
        f"{config['runs']} run{'s' if config['runs'] != 1 else ''} a query and side, in turn",
        f"{conf['spark.master']}, {conf['spark.driver.memory']} heap each",
        f"{machine['cores']} cores, {machine.get('memory_gib', '?')} GiB",
        f"commit {results['commit'][:12]}",
    ]
    base, candidate = sides(results)
    title = f"{candidate.capitalize()} against {base} Spark, {data}"
    return f'<h1>{escape(title)}</h1><p class="quiet">{escape(" · ".join(facts))}</p>'


def page(results: dict[str, Any], details: Mapping[str, Details]) -> str:
    base, candidate = sides(results)
    rows = results["rows"]
    cards = "".join(
        f'<div class="tile"><b>{escape(figure)}</b><span>{escape(label)}</span></div>'
        for label, figure in headlines(results["summary"], [base, candidate])
    )
    sections = "".join(
        query_section(row, details.get(row["name"], {}), base, candidate) for row in rows
    )
    key = (
        '<p class="key quiet"><i class="faster"></i>faster by more than a tenth'
        '<i class="even"></i>even<i class="slower"></i>slower by more than a tenth</p>'
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(candidate.capitalize())} against {escape(base)} Spark</title>"
        f"<style>{STYLE.read_text()}</style></head><body>{heading(results)}"
        f'<div class="tiles">{cards}</div><h2>Time of each query, {escape(candidate)} / '
        f'{escape(base)}</h2>{key}<div class="scroll">{ratio_chart(rows, base, candidate)}</div>'
        f"<h2>Plans and decisions</h2>{sections}<script>{OPEN_TARGET}</script></body></html>"
    )


def read_details(out: Path) -> dict[str, Details]:
    """Read what the state file beside a results file has of each query's plans."""
    entries = read_state(state_path(out)).entries
    return {name: entry["details"] for name, entry in entries.items()}


def write_report(out: Path) -> Path:
    """Write the page about a results file and its state file, beside them."""
    results = json.loads(out.read_text(encoding="utf-8"))
    path = out.with_suffix(".html")
    path.write_text(page(results, read_details(out)), encoding="utf-8")
    return path
