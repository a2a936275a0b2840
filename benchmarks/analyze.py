"""
How long ``selinger.analyze`` takes against Spark's ANALYZE of all columns with histograms.

Run it with ``python -m benchmarks.analyze --sf 10``, from the root of the repository. Both collect
the statistics of all columns of all tables of TPC-DS, in turn, each run from nothing. Driver memory
is what the parts of the JVM's heap hold at most while each runs, after a garbage collection before;
in local mode that is executors' memory as well, so it is an upper bound.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import selinger
from pyspark.sql import SparkSession

from benchmarks import commands
from benchmarks.datasets.generate import make, table_folders
from benchmarks.progress import say
from benchmarks.reporting.table import render
from benchmarks.sessions import local
from benchmarks.sessions.jvm import collect_garbage, heap_pools

CONF = {
    "spark.sql.statistics.histogram.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.selinger.mode": "on",
}

SIDES = ("stock", "selinger")


def stock(spark: SparkSession, tables: Mapping[str, str]) -> None:
    """Run Spark's ANALYZE of all columns of all tables, Selinger off."""
    with selinger.disabled(spark):
        for name, path in tables.items():
            spark.sql(f"DROP TABLE IF EXISTS {name}")
            spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{path}'")
            spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")


def ours(spark: SparkSession, tables: Mapping[str, str]) -> int:
    """Run ``selinger.analyze`` of all columns of all tables, into a new store."""
    written = 0
    with (
        tempfile.TemporaryDirectory(prefix="sketches-") as store,
        selinger.settings(spark, stats_location=store),
    ):
        for path in tables.values():
            columns = spark.read.parquet(path).columns
            done = selinger.analyze(spark, path, columns, progress=False)
            if done[0].files_read != done[0].files:
                raise RuntimeError(f"{path}: {done}")
            written += done[0].bytes_written
    return written


def timed(spark: SparkSession, work: Callable[[], object]) -> dict[str, Any]:
    """Run something after a garbage collection."""
    collect_garbage(spark)
    pools = heap_pools(spark)
    for pool in pools:
        pool.resetPeakUsage()
    start = time.perf_counter()
    result = work()
    took = time.perf_counter() - start
    heap = sum(pool.getPeakUsage().getUsed() for pool in pools)
    return {"seconds": took, "heap_bytes": heap, "result": result}


def summarise(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    ratios = [row["ratio"] for row in rows]
    summary = {
        "total_ratio": statistics.median(ratios),
        "ratio_spread": [min(ratios), max(ratios)],
        "store_bytes": max(row["selinger"]["result"] for row in rows),
    }
    for side in SIDES:
        summary[f"{side}_s"] = statistics.median(row[side]["seconds"] for row in rows)
        summary[f"{side}_heap_bytes"] = max(row[side]["heap_bytes"] for row in rows)
    return summary


def main(arguments: list[str] | None = None) -> int:
    made = commands.parser("analyze", __doc__)
    commands.add_data(made)
    made.add_argument("--runs", type=int, default=1)
    made.add_argument("--memory", default="8g")
    options = commands.parse(made, arguments)
    tables = table_folders(make(options.suite, options.sf).resolve())
    rows: list[dict[str, Any]] = []
    with local.session(options.memory, CONF) as spark:
        # The first run of either pays for starting up; a table each, then it counts.
        first = dict([next(iter(tables.items()))])
        stock(spark, first)
        ours(spark, first)
        for run in range(options.runs):
            say(f"run {run + 1} of {options.runs}")
            rows.append(
                {
                    "name": f"run {run + 1}",
                    "selinger": timed(spark, lambda: ours(spark, tables)),
                    "stock": timed(spark, lambda: stock(spark, tables)),
                }
            )
    for row in rows:
        row["ratio"] = row["selinger"]["seconds"] / row["stock"]["seconds"]
    summary = summarise(rows)
    cells = [
        [side, f"{summary[f'{side}_s']:.1f}", f"{summary[f'{side}_heap_bytes'] / 2**20:,.0f}"]
        for side in SIDES
    ]
    print(render(["side", "time, s", "heap at most, MiB"], cells))
    print(
        f"{len(tables)} tables: selinger.analyze takes {summary['total_ratio']:.2f} times as long "
        f"as Spark's ANALYZE; its store has {summary['store_bytes'] / 2**20:.1f} MiB"
    )
    commands.finish("analyze", options, rows, summary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
