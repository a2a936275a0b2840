"""One self-contained HTML page about a run: what came out, and each query with what changed."""

import json
import math
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from selinger import Explanation, _page
from selinger._drawing import Node, tree_of
from selinger._plan import executed
from selinger._render import quantity
from selinger.explain import parse, physical_plan

from benchmarks.paths import scale_text
from benchmarks.reporting.figures import Row
from benchmarks.reporting.state import read_state, state_path
from benchmarks.reporting.table import answer_word, headlines, number, seconds
from benchmarks.reporting.verdicts import called, of_all, verdict_of

Details = dict[str, dict[str, Any]]
"""By profile: what explain printed of the plan that ran, and that plan as a tree."""

FIGURES = (("rows_out_of_joins", "rows out of joins", ""), ("shuffled_bytes", "shuffled", "bytes"))
KEY = (("faster", "faster"), ("slower", "slower"), ("even", "not proven"))
WIDEST = 5.0
"""The factor at which a query's bar ends."""


def sides(results: Mapping[str, Any]) -> tuple[str, str]:
    names = list(results["config"]["profiles"])
    return names[0], names[-1]


def explained(details: Details, side: str) -> Explanation | None:
    """Read a side's decisions; a stock side has none."""
    return parse(details.get(side, {}).get("explained", ""))


def query_section(row: Row, details: Details, profiles: tuple[str, str]) -> str:
    """Write what is known of one query, folded: the verdict, what changed and why, the rest."""
    verdict, name, word = verdict_of(row, profiles), escape(row["name"]), answer_word(row)
    bad = "" if word in ("equal", "ties") else f'<span class="bad">{escape(word)}</span> '
    took = " → ".join(seconds(row, side) for side in profiles)
    found = explained(details, profiles[1])
    changed = found.verdict if found else ""
    theirs, ours = (
        executed(physical_plan(details.get(side, {}).get("explained", ""))) for side in profiles
    )
    body = _page.query(
        changed,
        found.decisions if found else (),
        (_tree(details, profiles[0]), _tree(details, profiles[1])),
        (theirs, ours),
        "The same plan ran on both sides.",
        called(profiles),
    )
    notes = [
        *(f"{side}: {row['verdicts'].get(side)}, {text}" for side, text in _notes(row)),
        _figures(row, profiles),
    ]
    return (
        f'<details class="query"><summary>{_bar(row.get("ratio"), verdict.kind)}<b>{name}</b> · '
        f'<span class="said {verdict.kind}">{verdict.short}</span> · {bad}'
        f'<span class="quiet">{took} s · {escape(changed)}</span></summary><div>'
        + _page.paragraph(verdict.text, "verdict")
        + body
        + "".join(_page.paragraph(text, "quiet") for text in notes)
        + "</div></details>"
    )


def _bar(ratio: float | None, kind: str) -> str:
    """Draw a ratio: to the left of the middle where it is below 1, in colour where proven."""
    length = max(-1.0, min(1.0, math.log(ratio or 1.0, WIDEST))) * 50
    start = 50 + min(length, 0.0)
    return (
        f'<span class="bar {kind}" aria-hidden="true">'
        f'<i style="left:{start:.0f}%;width:{abs(length):.0f}%"></i></span>'
    )


def _tree(details: Details, side: str) -> Node | None:
    """Take Selinger's own tree, which has estimates, or else what Spark's listener has."""
    found = explained(details, side)
    return (found.tree if found else None) or tree_of(details.get(side, {}).get("tree", ()))


def _notes(row: Row) -> list[tuple[str, str]]:
    return list(row.get("notes", {}).items())


def _figures(row: Row, profiles: tuple[str, str]) -> str:
    metrics = row.get("metrics", {})
    lines = [
        (label, *(metrics.get(side, {}).get(key) for side in profiles), unit)
        for key, label, unit in FIGURES
    ]
    lines.append(("planning", *(row.get(f"planning_{s}_ms") for s in profiles), "ms"))
    said = [
        f"{label} {quantity(theirs, unit)} → {quantity(ours, unit)}"
        for label, theirs, ours, unit in lines
        if ours is not None and theirs is not None
    ]
    return " · ".join([*said, f"DuckDB took {number(row.get('duckdb_s'))} s"])


def heading(results: Mapping[str, Any]) -> tuple[str, str]:
    """Write the title, and the facts of the run."""
    config, machine = results["config"], results["machine"]
    data = f"{config['suite'].upper().replace('TPC', 'TPC-')} SF {scale_text(config['scale'])}"
    conf = next(iter(config["profiles"].values()))["conf"]
    runs = f"{'up to ' * bool(config.get('until_clear'))}{config['runs']} measured runs"
    facts = [
        f"Spark {results['spark']}",
        f"DuckDB {results['duckdb']}",
        f"{runs} of each query and side, in turn",
        f"{conf['spark.master']}, {conf['spark.driver.memory']} heap each",
        f"{machine['cores']} cores, {machine.get('memory_gib', '?')} GiB",
        f"commit {results['commit'][:12]}",
    ]
    base, candidate = called(sides(results))
    return f"{candidate} against {base}, {data}", " · ".join(facts)


def page(results: Mapping[str, Any], details: Mapping[str, Details]) -> str:
    profiles, rows, summary = sides(results), results["rows"], results["summary"]
    title, facts = heading(results)
    key = "".join(f'<span class="said {kind}">■ {word}</span> ' for kind, word in KEY)
    sections = "".join(query_section(row, details.get(row["name"], {}), profiles) for row in rows)
    return _page.document(
        title,
        f"<h1>{escape(title)}</h1>"
        + _page.paragraph(of_all(rows, summary, profiles), "verdict")
        + _page.paragraph(facts, "quiet")
        + _page.folded("figures of all", _page.table(("", ""), headlines(summary, profiles)))
        + "<h2>Queries: what changed, and why</h2>"
        + f'<p class="quiet">Bars: to the left faster, to the right slower. {key}</p>{sections}',
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
