"""
Show what Selinger does: all queries of TPC-DS, stock Spark against Selinger, in a few minutes.

Makes the data, measures every query on both sides in turn, compares the answers with each other
and with DuckDB's, prints what changed and why, and writes one HTML page with plans and decisions.

    python -m benchmarks.demo --sf 1
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks import run
from benchmarks.pages import change_of
from benchmarks.paths import RESULTS
from benchmarks.progress import end_cleanly, say
from benchmarks.report import sides, write_report
from benchmarks.results import state_path
from benchmarks.state import read_entries
from benchmarks.table import answer_word, middle, number, render, results_table

WIDEST = 76


def parser() -> argparse.ArgumentParser:
    """
    Make the parser of the command line.

    Returns
    -------
    argparse.ArgumentParser

    Examples
    --------
    >>> parser().parse_args([]).sf
    1.0
    """
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.demo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--sf", type=float, default=1.0, help="scale factor")
    made.add_argument("--queries", default="all", help="all, or q01,q05,q20-q29")
    made.add_argument("--runs", type=int, default=1, help="measured runs of every query and side")
    made.add_argument("--memory", default="4g", help="heap of each of the two sessions")
    made.add_argument("--fresh", action="store_true", help="do not go on with a killed run")
    return made


def run_arguments(options: argparse.Namespace) -> list[str]:
    """
    Write the demo as a command line of `benchmarks.run`.

    Parameters
    ----------
    options : argparse.Namespace
        Of the demo.

    Returns
    -------
    list of str

    Examples
    --------
    >>> "--settle" in run_arguments(parser().parse_args([]))
    True
    """
    arguments = [
        *("--suite", "tpcds", "--profiles", "stock,selinger", "--out", str(RESULTS / "demo.json")),
        *("--sf", str(options.sf), "--queries", options.queries, "--runs", str(options.runs)),
        *("--memory", options.memory, "--planning-runs", "2", "--settle", "10"),
    ]
    return [*arguments, "--fresh"] if options.fresh else arguments


def change_table(
    results: dict[str, Any], details: dict[str, dict[str, Any]], at_most: int = WIDEST
) -> str:
    """
    Write what changed and why, query by query, the biggest gain first.

    Parameters
    ----------
    results : dict
        As `benchmarks.run` writes them.
    details : dict
        Plans and decisions by query and profile.
    at_most : int
        Characters of a line's last column.

    Returns
    -------
    str
        Queries whose plan has the same operators and the same decisions are only counted.

    Examples
    --------
    >>> row = {"name": "q01", "stock_s": [2.0], "selinger_s": [1.0], "ratio": 0.5, "equal": True}
    >>> config = {"profiles": {"stock": {}, "selinger": {}}}
    >>> print(change_table({"config": config, "rows": [row]}, {}))
    No plan changed.
    """
    base, candidate = sides(results)
    lines, same = [], 0
    for row in sorted(results["rows"], key=lambda row: row.get("ratio") or 0.0):
        change = change_of(row, details.get(row["name"], {}), base, candidate)
        if change == "same operators":
            same += 1
            continue
        shown = change if len(change) <= at_most else change[: at_most - 1] + "…"
        times = [number(middle(row.get(f"{side}_s"))) for side in (base, candidate)]
        lines.append([row["name"], *times, number(row.get("ratio")), answer_word(row), shown])
    if not lines:
        return "No plan changed."
    header = ["query", f"{base} s", f"{candidate} s", "ratio", "answers", "what changed, and why"]
    text = render(header, lines, left=(0, 5))
    return f"{text}\n\n{same} more queries have the same operators on both sides." if same else text


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
        0 if all answers agree, else 1.

    Examples
    --------
    >>> main(["--sf", "0.01", "--queries", "q03"])  # doctest: +SKIP
    0
    """
    options = parser().parse_args(arguments)
    end_cleanly()
    results = run.run(run.parser().parse_args(run_arguments(options)))
    out = RESULTS / "demo.json"
    details = {
        name: entry["details"]
        for name, entry in read_entries(state_path(out)).items()
        if name in {row["name"] for row in results["rows"]}
    }
    base, candidate = sides(results)
    print(results_table(results["rows"], results["summary"], [base, candidate]))
    print(f"\n{change_table(results, details)}\n")
    page = write_report(out, RESULTS / "demo.html")
    equal = results["summary"]["equal"]
    print("All answers agree." if equal else "NOT ALL ANSWERS AGREE: see the table above.")
    say(f"plans and decisions: {page}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
