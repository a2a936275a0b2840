"""
How long the footers of all tables take, read cold and again from the cache.

Run it with ``python -m benchmarks.footers --sf 10``, from the root of the repository. Each table is
joined with itself, only to have it planned; nothing runs.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import selinger

from benchmarks import micro
from benchmarks.paths import data_folder, scale_text
from benchmarks.table import render

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def measure(spark: SparkSession, table: Path) -> dict[str, object]:
    """
    Plan a query on one table twice.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with Selinger.
    table : pathlib.Path
        A folder of Parquet files.

    Returns
    -------
    dict
        ``name``, ``rows``, ``files``, ``cold_ms`` and ``warm_ms``.

    Examples
    --------
    >>> measure(spark, Path("item.parquet"))  # doctest: +SKIP
    """
    readings = [scan_numbers(spark, table) for _ in range(2)]
    cold, warm = (numbers["time"] for numbers in readings)
    return {
        "name": table.stem,
        "rows": readings[0]["rows"],
        "files": readings[0]["files"],
        "cold_ms": cold,
        "warm_ms": warm,
    }


def scan_numbers(spark: SparkSession, table: Path) -> dict[str, float]:
    """
    Read what Selinger says of the first scan of a table in a fresh plan.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with Selinger.
    table : pathlib.Path
        A folder of Parquet files.

    Returns
    -------
    dict of str to float
        ``rows``, ``footers``, ``files`` and ``time`` in milliseconds.

    Examples
    --------
    >>> scan_numbers(spark, Path("item.parquet"))  # doctest: +SKIP
    """
    from pyspark.sql.functions import expr

    frame = spark.read.parquet(str(table))
    key = frame.columns[0]
    # A range has no footers, so the table's are the only ones that are read.
    joined = frame.join(spark.range(1_000_000_000).toDF("other"), expr(key_is(key)))
    for decision in selinger.explain(joined).decisions:
        if decision.rule == "readFooterStatistics":
            return {number.name: number.value for number in decision.numbers}
    raise RuntimeError(f"no footers were read for {table.name}")


def key_is(column: str) -> str:
    """
    Write a join condition on a column, whatever its type.

    Parameters
    ----------
    column : str
        Its name.

    Returns
    -------
    str
        A SQL condition.

    Examples
    --------
    >>> key_is("i_item_sk")
    'CAST(`i_item_sk` AS STRING) = CAST(other AS STRING)'
    """
    return f"CAST(`{column}` AS STRING) = CAST(other AS STRING)"


def main() -> None:
    """Measure all tables, print a table, and write ``benchmarks/results/footers.json``."""
    parser = argparse.ArgumentParser(description="Time to read the footers of all tables.")
    parser.add_argument("--sf", type=float, default=1)
    parser.add_argument("--memory", default="2g")
    options = parser.parse_args()
    folder = data_folder("tpcds", options.sf)
    tables = sorted(folder.glob("*.parquet"))
    if not tables:
        parser.error(f"no data: run python -m benchmarks.data --sf {scale_text(options.sf)}")
    spark = micro.session(options.memory, {})
    version = spark.version
    try:
        start = time.perf_counter()
        rows = [measure(spark, table) for table in tables]
        took = time.perf_counter() - start
    finally:
        spark.stop()
    cold = sum(float(str(row["cold_ms"])) for row in rows)
    warm = sum(float(str(row["warm_ms"])) for row in rows)
    summary = {"cold_ms": cold, "warm_ms": warm, "all_with_planning_s": took}
    micro.write("footers", version, f"tpcds sf {scale_text(options.sf)}", rows, summary)
    cells = [
        [str(row["name"]), f"{row['rows']:,.0f}", f"{row['files']:.0f}", f"{row['cold_ms']:.1f}"]
        for row in rows
    ]
    print(render(["table", "rows", "files", "cold, ms"], cells))
    print(f"{len(rows)} tables: {cold:.0f} ms cold, {warm:.1f} ms from the cache")


if __name__ == "__main__":
    main()
