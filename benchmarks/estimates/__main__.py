"""
How far estimated rows are from true rows, for every filter, join and aggregation of a suite.

    python -m benchmarks.estimates --suite tpcds --sf 1 --analyzed

Rows are counted once and kept beside the data; a second run only estimates again. Estimators:
stock Spark with its cost-based optimizer on and nothing collected, the same after ANALYZE of all
columns with histograms (``--analyzed``), Selinger with nothing collected, and Selinger after
``selinger_analyze`` of all columns, whose store is kept beside the data, in ``_sketches``. Our own
skewed data (`benchmarks.datasets.own`) goes through the same, in a table of its own.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks import commands
from benchmarks.datasets.duck import SUITES
from benchmarks.datasets.generate import make, table_folders
from benchmarks.datasets.queries import Query, choose, load_queries
from benchmarks.estimates.qerror import estimates_table, summarise
from benchmarks.paths import RESULTS, public_text, scale_text
from benchmarks.progress import say
from benchmarks.reporting.figures import Row, q_error
from benchmarks.sessions.client import Client
from benchmarks.sessions.local import submit
from benchmarks.sessions.profiles import COMMON, make_profile

MAIN = "io.selinger.bench.EstimateBench"
COUNTING = {
    # Sorting large sides of joins is what would take most of the time.
    "spark.sql.join.preferSortMergeJoin": "false",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "128MB",
}
ESTIMATORS = ("stock", "stock_analyzed", "selinger", "selinger_analyzed")


def statistics_folder(folder: Path, tables: Mapping[str, str], collect: bool) -> Path | None:
    """Find ANALYZE's statistics of a data set, or collect them."""
    kept = folder / "_analyzed" / f"spark-{version('pyspark')}"
    complete = all((kept / f"{name}.ser").is_file() for name in tables)
    if complete or not collect:
        return kept if complete else None
    say(f"{folder.name}: ANALYZE of all columns, with histograms")
    with tempfile.TemporaryDirectory(prefix="analyze-") as work:
        client = Client(make_profile("tuned", "4g"), tables, folder / "_analyzed", Path(work))
        try:
            client.start()
        finally:
            client.kill()
    return kept


def measure(suite: str, queries: Sequence[Query], options: argparse.Namespace) -> list[Row]:
    folder = make(suite, options.sf)
    tables = table_folders(folder)
    analyzed = statistics_folder(folder, tables, options.analyzed)
    say(f"{folder.name}: {len(queries)} queries")
    rows = submit(
        MAIN,
        {
            "tables": tables,
            "queries": {query.name: query.spark for query in queries},
            "rows": str(folder / "_rows.jsonl"),
            "seconds": options.seconds,
            "analyzed": None if analyzed is None else str(analyzed),
            "sketches": str(folder / "_sketches"),
        },
        options.memory,
        {**COMMON, **COUNTING},
    )
    return [{"suite": suite, **row} for row in rows]


def write_plans(path: Path, rows: Sequence[Row]) -> None:
    """Write the plans that Selinger misjudges, the worst first."""
    found = [(q_error(row.get("selinger"), row["rows"]), row) for row in rows if "rows" in row]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for error, row in sorted(found, key=lambda pair: -pair[0]):
            numbers = {key: row[key] for key in ("rows", *ESTIMATORS) if key in row}
            file.write(f"== {row['suite']} {row['name']} {row['kind']} joins={row['joins']} ")
            file.write(f"off by {error:.1f}: {numbers}\n{public_text(row['plan'])}\n")


def summary_of(options: argparse.Namespace, rows: Sequence[Row]) -> Row:
    """Sum up the suite, and our own data under ``skewed``."""
    suites = {
        suite: [row for row in rows if row["suite"] == suite]
        for suite in dict.fromkeys((options.suite, "skewed"))
    }
    asked = {name for row in rows for name in ESTIMATORS if name in row} | {"selinger"}
    estimators = [name for name in ESTIMATORS if name in asked]
    summaries = {suite: summarise(found, estimators) for suite, found in suites.items()}
    return {**summaries.pop(options.suite), **summaries}


def main(arguments: list[str] | None = None) -> int:
    made = commands.parser("estimates", __doc__)
    commands.add_data(made, *SUITES, "skewed")
    add = made.add_argument
    add("--queries", default="all", help="all, or q01,q05,q20-q29; of the suite")
    add("--analyzed", action="store_true", help="collect ANALYZE statistics; takes minutes")
    add("--seconds", type=int, default=120, help="that a count may take; 0 counts nothing")
    add("--memory", default="4g", help="heap of the session that counts and estimates")
    options = commands.parse(made, arguments)
    rows: list[Row] = []
    if options.suite != "skewed":
        wanted = choose(load_queries(options.suite), options.queries)
        rows += measure(options.suite, wanted, options)
    rows += measure("skewed", list(load_queries("skewed").values()), options)
    summary = summary_of(options, rows)
    if options.suite != "skewed":
        print(f"{options.suite}, scale factor {scale_text(options.sf)}\n")
        print(f"{estimates_table(summary)}\n")
    print("skewed and correlated data\n")
    print(estimates_table(summary.get("skewed", summary)))
    plans = RESULTS / f"estimates-{options.suite}-sf{scale_text(options.sf)}.log"
    write_plans(plans, rows)
    print(f"\nplans, the worst estimates first: {public_text(str(plans))}")
    without_plans = [{key: row[key] for key in row if key != "plan"} for row in rows]
    config = {"seconds": options.seconds, "conf": COMMON}
    commands.finish("estimates", options, without_plans, summary, config)
    beyond = sum(part["above_bound"] for part in (summary, summary.get("skewed", summary)))
    if beyond:
        say(f"{beyond} sub-plans have more rows than Selinger thought possible")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
