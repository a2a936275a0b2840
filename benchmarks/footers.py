"""
How long the first look at all tables takes, and another one from the cache.

Run it with ``python -m benchmarks.footers --sf 10``, from the root of the repository. Each table is
filtered on one column, made distinct in all columns and joined, only to have it planned: so its
footers, the dictionaries of all columns and a sample are read. Nothing runs.
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
        ``name``, ``rows``, ``files``; ``cold_ms`` and ``warm_ms`` of footers and dictionaries;
        ``cold_samples_ms`` and ``warm_samples_ms``.

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
        "cold_samples_ms": readings[0]["samples"],
        "warm_samples_ms": readings[1]["samples"],
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
        ``rows``, ``footers``, ``files``, ``time`` and ``samples`` in milliseconds.

    Examples
    --------
    >>> scan_numbers(spark, Path("item.parquet"))  # doctest: +SKIP
    """
    from pyspark.sql.functions import expr

    frame = spark.read.parquet(str(table))
    key = frame.columns[0]
    # A range has no footers, so the table's are the only ones that are read.
    few = frame.where(f"CAST(`{key}` AS STRING) LIKE '%7%'").distinct()
    joined = few.join(spark.range(1_000_000_000).toDF("other"), expr(key_is(key)))
    found = {
        decision.rule: {number.name: number.value for number in decision.numbers}
        for decision in selinger.explain(joined).decisions
    }
    if "readFooterStatistics" not in found:
        raise RuntimeError(f"no footers were read for {table.name}")
    samples = found.get("samplePredicates", {}).get("time", 0.0)
    return {**found["readFooterStatistics"], "samples": samples}


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
    samples = sum(float(str(row["cold_samples_ms"])) for row in rows)
    summary = {
        "cold_ms": cold,
        "warm_ms": warm,
        "cold_samples_ms": samples,
        "all_with_planning_s": took,
    }
    micro.write("footers", version, f"tpcds sf {scale_text(options.sf)}", rows, summary)
    cells = [
        [
            str(row["name"]),
            f"{row['rows']:,.0f}",
            f"{row['files']:.0f}",
            f"{row['cold_ms']:.1f}",
            f"{row['cold_samples_ms']:.1f}",
        ]
        for row in rows
    ]
    print(render(["table", "rows", "files", "footers cold, ms", "sample cold, ms"], cells))
    print(
        f"{len(rows)} tables: footers and dictionaries {cold:.0f} ms cold, {warm:.1f} ms from the "
        f"cache; samples {samples:.0f} ms cold"
    )


if __name__ == "__main__":
    main()
