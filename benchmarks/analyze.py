"""
How long ``selinger.analyze`` takes against Spark's ANALYZE of all columns with histograms.

Run it with ``python -m benchmarks.analyze --sf 10``, from the root of the repository. Both collect
the statistics of all columns of all tables of TPC-DS, in turn, each run from nothing. Driver memory
is what the heap of the session's JVM holds at most while each runs, after a garbage collection
before; in local mode that is executors' memory as well, so it is an upper bound.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import selinger
from pyspark.sql import SparkSession

from benchmarks import commands
from benchmarks.datasets.generate import make, table_folders
from benchmarks.paths import scale_text
from benchmarks.progress import say
from benchmarks.reporting.results import record
from benchmarks.reporting.table import render
from benchmarks.sessions import local
from benchmarks.sessions.jvm import collect_garbage

CONF = {
    "spark.sql.statistics.histogram.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.selinger.mode": "on",
}


class HeapWatch:
    """The largest heap of a session's JVM while a block runs."""

    def __init__(self, spark: SparkSession) -> None:
        self.most_bytes = 0
        jvm: Any = spark._jvm  # noqa: SLF001
        self._runtime = jvm.java.lang.Runtime.getRuntime()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            used = self._runtime.totalMemory() - self._runtime.freeMemory()
            self.most_bytes = max(self.most_bytes, used)

    def __enter__(self) -> HeapWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


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
    with HeapWatch(spark) as watch:
        start = time.perf_counter()
        result = work()
        took = time.perf_counter() - start
    return {"seconds": took, "heap_bytes": watch.most_bytes, "result": result}


def summarise(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Compare the two sides."""
    ratios = [row["stock"]["seconds"] / row["selinger"]["seconds"] for row in rows]
    return {
        "total_ratio": statistics.median(row["ratio"] for row in rows),
        "ratio": statistics.median(ratios),
        "ratio_least": min(ratios),
        "ratio_most": max(ratios),
        "stock_s": statistics.median(row["stock"]["seconds"] for row in rows),
        "selinger_s": statistics.median(row["selinger"]["seconds"] for row in rows),
        "stock_heap_bytes": max(row["stock"]["heap_bytes"] for row in rows),
        "selinger_heap_bytes": max(row["selinger"]["heap_bytes"] for row in rows),
        "store_bytes": max(row["selinger"]["result"] for row in rows),
    }


def _size(path: str) -> int:
    return sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())


def main(arguments: list[str] | None = None) -> int:
    """Measure both in turn, print a table, and write ``results/analyze-<suite>-sf<SF>.json``."""
    made = commands.parser("analyze", __doc__)
    commands.add_data(made)
    made.add_argument("--runs", type=int, default=1)
    made.add_argument("--memory", default="8g")
    options = commands.parse(made, arguments)
    tables = table_folders(make(options.suite, options.sf).resolve())
    spark = local.session(options.memory, CONF)
    rows: list[dict[str, Any]] = []
    try:
        # The first run of either pays for starting up; a small table each, then it counts.
        smallest = dict([min(tables.items(), key=lambda item: _size(item[1]))])
        stock(spark, smallest)
        ours(spark, smallest)
        for run in range(options.runs):
            say(f"run {run + 1} of {options.runs}")
            rows.append(
                {
                    "name": f"run {run + 1}",
                    "selinger": timed(spark, lambda: ours(spark, tables)),
                    "stock": timed(spark, lambda: stock(spark, tables)),
                }
            )
    finally:
        spark.stop()
    for row in rows:
        row["ratio"] = row["selinger"]["seconds"] / row["stock"]["seconds"]
    summary = summarise(rows)
    cells = [
        [side, f"{summary[f'{side}_s']:.1f}", f"{summary[f'{side}_heap_bytes'] / 2**20:,.0f}"]
        for side in ("stock", "selinger")
    ]
    print(render(["side", "time, s", "heap at most, MiB"], cells))
    print(
        f"{len(tables)} tables: Spark's ANALYZE takes {summary['ratio']:.1f} times as long "
        f"({summary['ratio_least']:.1f} to {summary['ratio_most']:.1f} in {len(rows)} runs); "
        f"the store has {summary['store_bytes'] / 2**20:.1f} MiB"
    )
    name = f"analyze-{options.suite}-sf{scale_text(options.sf)}"
    config = {"suite": options.suite, "scale": options.sf, "runs": options.runs}
    config["memory"] = options.memory
    commands.finish(record(name, options.command, config, rows, summary), options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
