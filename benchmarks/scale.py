"""
TPC-DS planned at scales that nobody here has the disks for, from statistics of scale factor 1.

``python -m benchmarks.scale`` writes these statistics, ``tests/golden/tpcds-sf1-statistics.json``,
from the benchmark's data. ``tests/python/test_scale.py`` plans all queries by them.
"""

import argparse
import json
from pathlib import Path

import selinger
from pyspark.sql import SparkSession

from benchmarks.datasets.generate import make, table_folders
from benchmarks.paths import ROOT
from benchmarks.sessions.local import session

STATISTICS = ROOT / "tests" / "golden" / "tpcds-sf1-statistics.json"
"""Statistics of TPC-DS at scale factor 1: numbers and names, no frequent values, no paths."""

ROWS = ROOT / "benchmarks" / "datasets" / "tpcds-rows.json"


def rows() -> dict[str, list[int]]:
    """Read the rows of each table at scale factors 1, 100 and 10,000: TPC-DS 3.2.0, table 3-2."""
    found: dict[str, list[int]] = json.loads(ROWS.read_text(encoding="utf-8"))
    return found


def write_statistics(spark: SparkSession, folder: Path, target: Path) -> None:
    """Write the statistics of a folder of tables, without paths and values."""
    selinger.export_stats(spark, table_folders(folder), target, values=False)
    lines = target.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = "".join(line for line in lines if not line.lstrip().startswith('"path":'))
    target.write_text(kept, encoding="utf-8")
    json.loads(target.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write statistics of TPC-DS, scale factor 1.")
    parser.add_argument("--target", type=Path, default=STATISTICS)
    arguments = parser.parse_args()
    conf = {"spark.selinger.mode": "on", "spark.selinger.stats.exportBudgetMs": "60000"}
    with session("2g", conf) as spark:
        write_statistics(spark, make("tpcds", 1), arguments.target)


if __name__ == "__main__":
    main()
