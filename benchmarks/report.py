"""
One self-contained HTML page about a benchmark: headline figures, ratios, plans and decisions.

    python -m benchmarks.report benchmarks/results/tpcds-sf1.json
"""

from __future__ import annotations

import argparse
import json
import sys
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.chart import TIMES, ratio_chart, times
from benchmarks.fragments import quantity
from benchmarks.pages import FIGURES, query_section, query_table
from benchmarks.paths import scale_text
from benchmarks.results import state_path
from benchmarks.state import read_entries

if TYPE_CHECKING:
    from collections.abc import Sequence

STYLE = Path(__file__).with_name("report.css")
OPEN_TARGET = (
    "const o=()=>{const d=document.getElementById(location.hash.slice(1));"
    "if(d&&d.open===false){d.open=true;d.scrollIntoView()}};"
    "addEventListener('hashchange',o);o()"
)


def sides(results: dict[str, Any]) -> tuple[str, str]:
    """
    Name the two sides that a result is about.

    Parameters
    ----------
    results : dict
        As `benchmarks.run` writes them.

    Returns
    -------
    (str, str)
        The base and what ``ratio`` is about.

    Examples
    --------
    >>> sides({"config": {"profiles": {"stock": {}, "selinger": {}}}})
    ('stock', 'selinger')
    """
    names = list(results["config"]["profiles"])
    return names[0], names[-1]


def tiles(results: dict[str, Any]) -> list[tuple[str, str]]:
    """
    Choose the headline figures.

    Parameters
    ----------
    results : dict
        As `benchmarks.run` writes them.

    Returns
    -------
    list of (str, str)
        Figure, and what it is.
    """
    base, candidate = sides(results)
    summary = results["summary"]
    found = [
        (
            f"{summary[f'{base}_total_s']:.0f} s → {summary[f'{candidate}_total_s']:.0f} s",
            f"all queries, {base} → {candidate}",
        )
    ]
    if summary.get("total_ratio"):
        found += [
            (f"{summary['total_ratio']:.2f} {TIMES}", "of the total time"),
            (f"{summary['geomean_ratio']:.2f} {TIMES}", "geometric mean of the ratios"),
            (times(summary["best"]["ratio"]), f"best query, {summary['best']['name']}"),
            (times(summary["worst"]["ratio"]), f"worst query, {summary['worst']['name']}"),
            (f"{summary['faster']} / {summary['slower']}", "queries faster / slower by > 10 %"),
        ]
        added = summary.get("planning_added_ms_median")
        if added is not None:
            found.append((f"{added:+.1f} ms", "planning time of a query, median"))
    found += _metric_tiles(results["rows"], base, candidate)
    answers = {True: "all equal", "ties": "all equal", False: "not all equal"}[summary["equal"]]
    ties = sum(row.get("equal") == "ties" for row in results["rows"])
    note = f", {ties} but for ties under LIMIT" if ties else ""
    found.append((answers, f"answers of {base}, {candidate} and DuckDB{note}"))
    found.append((f"{summary['duckdb_total_s']:.0f} s", "DuckDB on the same files, a yardstick"))
    return found


def _metric_tiles(
    rows: Sequence[dict[str, Any]], base: str, candidate: str
) -> list[tuple[str, str]]:
    found = []
    for key, label, unit in FIGURES[:2]:
        pairs = [
            tuple(row.get("metrics", {}).get(side, {}).get(key) for side in (base, candidate))
            for row in rows
        ]
        both = [(a, b) for a, b in pairs if a is not None and b is not None]
        if both:
            ours, theirs = (sum(pair[at] for pair in both) for at in (0, 1))
            found.append((f"{quantity(ours, unit)} → {quantity(theirs, unit)}", label))
    return found


def heading(results: dict[str, Any]) -> str:
    """
    Say what was measured.

    Parameters
    ----------
    results : dict
        As `benchmarks.run` writes them.

    Returns
    -------
    str
        HTML.
    """
    config = results["config"]
    data = f"{config['suite'].upper().replace('TPC', 'TPC-')} SF {scale_text(config['scale'])}"
    machine = config["machine"]
    conf = next(iter(config["profiles"].values()))["conf"]
    facts = [
        f"Spark {results['spark']}",
        f"DuckDB {config['duckdb']}",
        f"{config['runs']} run{'s' if config['runs'] != 1 else ''} a query and side, in turn",
        f"{conf['spark.master']}, {conf['spark.driver.memory']} heap each",
        f"{machine['cores']} cores, {machine.get('memory_gib', '?')} GiB",
        f"commit {results['commit'][:12]}",
    ]
    base, candidate = sides(results)
    title = f"{candidate.capitalize()} against {base} Spark, {data}"
    return f'<h1>{escape(title)}</h1><p class="quiet">{escape(" · ".join(facts))}</p>'


def page(results: dict[str, Any], details: dict[str, dict[str, Any]]) -> str:
    """
    Write the page.

    Parameters
    ----------
    results : dict
        As `benchmarks.run` writes them.
    details : dict
        Plans and decisions by query and profile.

    Returns
    -------
    str
        A whole HTML document that needs nothing else.
    """
    base, candidate = sides(results)
    rows = results["rows"]
    cards = "".join(
        f'<div class="tile"><b>{escape(figure)}</b><span>{escape(label)}</span></div>'
        for figure, label in tiles(results)
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
        f'<h2>What changed</h2><div class="scroll">{query_table(rows, details, base, candidate)}'
        f"</div><h2>Plans and decisions</h2>{sections}<script>{OPEN_TARGET}</script></body></html>"
    )


def write_report(results_path: Path, out: Path) -> Path:
    """
    Write the page about a results file and its state file.

    Parameters
    ----------
    results_path : pathlib.Path
        What `benchmarks.run` wrote.
    out : pathlib.Path
        The page.

    Returns
    -------
    pathlib.Path
        The page.
    """
    results = json.loads(results_path.read_text())
    state = state_path(results_path)
    entries = read_entries(state) if state.is_file() else {}
    details = {name: entry["details"] for name, entry in entries.items()}
    out.write_text(page(results, details))
    return out


def main(arguments: list[str] | None = None) -> int:
    """
    Command line.

    Parameters
    ----------
    arguments : list of str or None
        Arguments, by default the process's.

    Returns
    -------
    int
        Exit code.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("results", type=Path, help="a file that benchmarks.run wrote")
    parser.add_argument("--out", type=Path, help="default: beside it, .html")
    options = parser.parse_args(arguments)
    out = options.out or options.results.with_suffix(".html")
    print(write_report(options.results, out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
