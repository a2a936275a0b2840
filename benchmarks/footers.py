"""
How long the first look at all tables takes, and another one from the cache.

Run it with ``python -m benchmarks.footers --sf 10``, from the root of the repository. Each table is
filtered on one column, made distinct in all columns and joined, only to have it planned: so its
footers, the dictionaries of all columns and a sample are read. Nothing runs.
"""

import sys
import time
from pathlib import Path
from typing import Any

import selinger
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from benchmarks import commands
from benchmarks.datasets.generate import make
from benchmarks.reporting.table import number, render
from benchmarks.sessions import local


def measure(spark: SparkSession, table: Path) -> dict[str, Any]:
    """Plan a query on one table twice."""
    readings = [scan_numbers(spark, table) for _ in range(2)]
    cold, warm = (numbers["time to read"] for numbers in readings)
    return {
        "name": table.stem,
        "rows": readings[0]["rows"],
        "files": readings[0]["files of the relation"],
        "cold_ms": cold,
        "warm_ms": warm,
        "ratio": warm / cold if cold else None,
        "cold_samples_ms": readings[0]["samples"],
    }


def scan_numbers(spark: SparkSession, table: Path) -> dict[str, float]:
    """Read what Selinger says of the first scan of a table in a fresh plan."""
    frame = spark.read.parquet(str(table))
    key = frame.columns[0]
    # A range has no footers, so the table's are the only ones that are read.
    few = frame.where(f"CAST(`{key}` AS STRING) LIKE '%7%'").distinct()
    joined = few.join(
        spark.range(1_000_000_000).toDF("other"),
        expr(f"CAST(`{key}` AS STRING) = CAST(other AS STRING)"),
    )
    found = {
        decision.rule: {number.name: number.value for number in decision.numbers}
        for decision in selinger.explain(joined).decisions
    }
    samples = found.get("samplePredicates", {}).get("time to read", 0.0)
    return {**found["readFooterStatistics"], "samples": samples}


def main(arguments: list[str] | None = None) -> int:
    made = commands.parser("footers", __doc__)
    commands.add_data(made, "tpcds")
    made.add_argument("--memory", default="2g")
    options = commands.parse(made, arguments)
    tables = sorted(make(options.suite, options.sf).glob("*.parquet"))
    with local.session(options.memory, {}) as spark:
        start = time.perf_counter()
        rows = [measure(spark, table) for table in tables]
        took = time.perf_counter() - start
    summary = {
        key: sum(row[key] for row in rows) for key in ("cold_ms", "warm_ms", "cold_samples_ms")
    }
    cells = [
        [row["name"], f"{row['rows']:,.0f}", f"{row['files']:.0f}"]
        + [number(row[key], 1) for key in ("cold_ms", "cold_samples_ms")]
        for row in rows
    ]
    print(render(["table", "rows", "files", "footers cold, ms", "sample cold, ms"], cells))
    print(
        f"{len(rows)} tables: footers and dictionaries {summary['cold_ms']:.0f} ms cold, "
        f"{summary['warm_ms']:.1f} ms from the cache; samples {summary['cold_samples_ms']:.0f} ms "
        f"cold"
    )
    summary["all_with_planning_s"] = took
    summary["total_ratio"] = summary["warm_ms"] / summary["cold_ms"]
    commands.finish("footers", options, rows, summary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
