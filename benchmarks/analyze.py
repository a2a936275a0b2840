"""
How long ``selinger.analyze`` takes against Spark's ANALYZE of all columns with histograms.

Run it with ``python -m benchmarks.analyze --sf 10``, from the root of the repository. Both collect
the statistics of all columns of all tables of TPC-DS, in turn, each run from nothing. Driver memory
is what the heap of the session's JVM holds at most while each runs, after a garbage collection
before; in local mode that is executors' memory as well, so it is an upper bound.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import selinger

from benchmarks import micro
from benchmarks.data import make
from benchmarks.jvm import collect_garbage
from benchmarks.paths import scale_text
from benchmarks.progress import say
from benchmarks.table import render

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF = {
    "spark.sql.statistics.histogram.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.selinger.mode": "on",
}


class HeapWatch:
    """
    The largest heap of a session's JVM while a block runs.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A classic session.

    Examples
    --------
    >>> with HeapWatch(spark) as watch:  # doctest: +SKIP
    ...     spark.range(10).count()
    >>> watch.most_bytes  # doctest: +SKIP
    100000000
    """

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
    """
    Run Spark's ANALYZE of all columns of all tables, Selinger off.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with an in-memory catalog.
    tables : mapping of str to str
        Folder of Parquet files by table name.

    Examples
    --------
    >>> stock(spark, {"item": "item.parquet"})  # doctest: +SKIP
    """
    with selinger.disabled(spark):
        for name, path in tables.items():
            spark.sql(f"DROP TABLE IF EXISTS {name}")
            spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{path}'")
            spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")


def ours(spark: SparkSession, tables: Mapping[str, str]) -> int:
    """
    Run ``selinger.analyze`` of all columns of all tables, into a new store.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with Selinger.
    tables : mapping of str to str
        Folder of Parquet files by table name.

    Returns
    -------
    int
        Bytes of the store.

    Examples
    --------
    >>> ours(spark, {"item": "item.parquet"})  # doctest: +SKIP
    100000
    """
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
    """
    Run something after a garbage collection.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session.
    work : callable
        What to run.

    Returns
    -------
    dict
        ``seconds``, ``heap_bytes`` and ``result``.

    Examples
    --------
    >>> timed(spark, lambda: 1)["result"]  # doctest: +SKIP
    1
    """
    collect_garbage(spark)
    with HeapWatch(spark) as watch:
        start = time.perf_counter()
        result = work()
        took = time.perf_counter() - start
    return {"seconds": took, "heap_bytes": watch.most_bytes, "result": result}


def summarise(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """
    Compare the two sides.

    Parameters
    ----------
    rows : sequence of dict
        A run each, with ``stock`` and ``selinger``.

    Returns
    -------
    dict
        ``ratio``: the median of how many times longer stock took, with its least and its most.

    Examples
    --------
    >>> run = {"stock": {"seconds": 20.0, "heap_bytes": 9}}
    >>> run["selinger"] = {"seconds": 2.0, "heap_bytes": 5, "result": 3}
    >>> summarise([run])["ratio"], summarise([run])["ratio_least"]
    (10.0, 10.0)
    """
    ratios = [row["stock"]["seconds"] / row["selinger"]["seconds"] for row in rows]
    return {
        "ratio": statistics.median(ratios),
        "ratio_least": min(ratios),
        "ratio_most": max(ratios),
        "stock_s": statistics.median(row["stock"]["seconds"] for row in rows),
        "selinger_s": statistics.median(row["selinger"]["seconds"] for row in rows),
        "stock_heap_bytes": max(row["stock"]["heap_bytes"] for row in rows),
        "selinger_heap_bytes": max(row["selinger"]["heap_bytes"] for row in rows),
        "store_bytes": max(row["selinger"]["result"] for row in rows),
    }


def main() -> None:
    """Measure both sides in turn, print a table, and write ``benchmarks/results/analyze.json``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.analyze",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--suite", choices=("tpcds", "tpch"), default="tpcds")
    parser.add_argument("--sf", type=float, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--memory", default="8g")
    options = parser.parse_args()
    folder = make(options.suite, options.sf)
    tables = {path.name.removesuffix(".parquet"): str(path) for path in folder.glob("*.parquet")}
    tables = {name: str(Path(path).resolve()) for name, path in sorted(tables.items())}
    spark = micro.session(options.memory, CONF)
    rows = []
    try:
        # The first run of either pays for starting up; a small table each, then it counts.
        smallest = dict([min(tables.items(), key=lambda item: _size(item[1]))])
        stock(spark, smallest)
        ours(spark, smallest)
        for run in range(options.runs):
            say(f"run {run + 1} of {options.runs}")
            rows.append(
                {
                    "selinger": timed(spark, lambda: ours(spark, tables)),
                    "stock": timed(spark, lambda: stock(spark, tables)),
                }
            )
        version = spark.version
    finally:
        spark.stop()
    summary = summarise(rows)
    data = f"{options.suite} sf {scale_text(options.sf)}"
    micro.write(f"analyze-{options.suite}-sf{scale_text(options.sf)}", version, data, rows, summary)
    cells = [
        [side, f"{summary[f'{side}_s']:.1f}", f"{summary[f'{side}_heap_bytes'] / 2**20:,.0f}"]
        for side in ("stock", "selinger")
    ]
    print(render(["side", "time, s", "heap at most, MiB"], cells))
    print(
        f"{data}, {len(tables)} tables: Spark's ANALYZE takes {summary['ratio']:.1f} times as long "
        f"({summary['ratio_least']:.1f} to {summary['ratio_most']:.1f} in {len(rows)} runs); "
        f"the store has {summary['store_bytes'] / 2**20:.1f} MiB"
    )


def _size(path: str) -> int:
    return sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())


if __name__ == "__main__":
    main()
