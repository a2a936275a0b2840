"""
Show what Selinger does: queries of TPC-DS, stock Spark against Selinger, in a few minutes.

Makes the data, measures every fifth query on both sides in turn, compares the answers with each
other and with DuckDB's, prints what changed and why, and writes one HTML page with plans and
decisions. What seems slower is measured again: other work on the machine may be the reason.

    python -m benchmarks.demo --sf 1 --queries all
"""

import argparse
import sys
from typing import Any

from benchmarks import commands, run
from benchmarks.paths import RESULTS
from benchmarks.reporting.page import change_of, read_details, sides
from benchmarks.reporting.table import answer_word, number, render, results_table, seconds

WIDEST = 76


def parser() -> argparse.ArgumentParser:
    """Make the parser of the command line: that of `benchmarks.run`, set for a quick look."""
    made = run.parser("demo", __doc__, publishes=False)
    made.set_defaults(
        out=RESULTS / "demo.json",
        queries="every:5",
        runs=1,
        planning_runs=1,
        settle=4,
        remeasure=1.1,
        remeasure_runs=2,
        memory="4g",
    )
    return made


def change_table(results: dict[str, Any], details: dict[str, dict[str, str]]) -> str:
    """Write what changed and why, query by query, the biggest gain first."""
    base, candidate = sides(results)
    lines, same = [], 0
    for row in sorted(results["rows"], key=lambda row: row.get("ratio") or 0.0):
        change = change_of(row, details.get(row["name"], {}), base, candidate)
        if change == "same operators":
            same += 1
            continue
        shown = change if len(change) <= WIDEST else change[: WIDEST - 1] + "…"
        times = [seconds(row, side) for side in (base, candidate)]
        lines.append([row["name"], *times, number(row.get("ratio")), answer_word(row), shown])
    if not lines:
        return "No plan changed."
    header = ["query", f"{base} s", f"{candidate} s", "ratio", "answers", "what changed, and why"]
    text = render(header, lines, left=(0, 5))
    return f"{text}\n\n{same} more queries have the same operators on both sides." if same else text


def main(arguments: list[str] | None = None) -> int:
    options = commands.parse(parser(), arguments)
    results = run.run(options)
    print(results_table(results["rows"], results["summary"], sides(results)))
    print(f"\n{change_table(results, read_details(options.out))}\n")
    equal = results["summary"]["equal"]
    print("All answers agree." if equal else "NOT ALL ANSWERS AGREE: see the table above.")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
