"""
Show what Selinger does: queries of TPC-DS, stock Spark against Selinger, in about ten minutes.

Makes the data, measures every ninth query on both sides in turn until it is clear what can be said
of the times, compares the answers with each other and with DuckDB's, prints what changed, and
writes one HTML page with reasons, orders and plans. What noise explains is not claimed.

    python -m benchmarks.demo --sf 1 --queries all
"""

import argparse
import sys
from typing import Any

from benchmarks import commands, run
from benchmarks.paths import RESULTS
from benchmarks.reporting.page import explained, read_details, sides
from benchmarks.reporting.table import answer_word, render, seconds
from benchmarks.reporting.verdicts import of_all, verdict_of

WIDEST = 76


def parser() -> argparse.ArgumentParser:
    """Make the parser of the command line: that of `benchmarks.run`, set for a quick look."""
    made = run.parser("demo", __doc__, publishes=False)
    made.set_defaults(
        out=RESULTS / "demo.json",
        # Queries of a second, as at scale factor 1, have little to gain.
        sf=3.0,
        queries="every:9",
        runs=4,
        until_clear=True,
        planning_runs=1,
        settle=2,
        memory="4g",
    )
    return made


def change_table(results: dict[str, Any], details: dict[str, Any]) -> str:
    """Write what the times prove, and what changed, query by query."""
    profiles, lines = sides(results), []
    for row in results["rows"]:
        found = explained(details.get(row["name"], {}), profiles[1])
        change = found.verdict if found else ""
        shown = change if len(change) <= WIDEST else change[: WIDEST - 1] + "…"
        times = [seconds(row, side) for side in profiles]
        said = verdict_of(row, profiles).short
        lines.append([row["name"], *times, said, answer_word(row), shown])
    header = ["query", *(f"{side} s" for side in profiles), "times", "answers", "what changed"]
    return render(header, lines, left=(0, 3, 4, 5))


def main(arguments: list[str] | None = None) -> int:
    options = commands.parse(parser(), arguments)
    results = run.run(options)
    print(change_table(results, read_details(options.out)))
    print(f"\n{of_all(results['rows'], results['summary'], sides(results))}")
    return 0 if results["summary"]["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
