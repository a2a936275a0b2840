"""Beside Delta Lake, whose parser drops the parameters of queries; `make test-delta` gets its jars.

On a Spark line that this Delta is not built for, its parser works and its tables do not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import selinger

JARS = sorted(Path(os.environ.get("SELINGER_DELTA_JARS", "/nowhere")).resolve().glob("*.jar"))
DELTA = "io.delta.sql.DeltaSparkSessionExtension"

SCRIPT = """
import json, sys
import selinger
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

folder, extensions, jars, tables = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
for key, value in {
    "spark.sql.extensions": extensions,
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.selinger.failOnError": "true",
    # Or nothing would be decided on tables as small as these.
    "spark.selinger.planning.smallTableMaxBytes": "0",
    "spark.selinger.stats.location": f"{folder}/statistics",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}.items():
    builder = builder.config(key, value)
spark = selinger.configure(builder).getOrCreate()
result = {"active": selinger.status(spark).active}
try:
    spark.sql("SELECT :a", args={"a": 1}).collect()
except AnalysisException as error:
    result["parameters"] = error.getCondition()
path, table = f"{folder}/p", f"delta.`{folder}/d`"
rows = spark.range(1000).selectExpr("id AS k", "id % 10 AS g")
rows.write.parquet(path)
result["analyzed"] = selinger.analyze(spark, path)[0].rows_read
result["stats"] = selinger.stats(spark, path)[0].rows
result["exported"] = selinger.export_stats(spark, path, f"{folder}/p.json")[0].rows
result["imported"] = selinger.import_stats(spark, f"{folder}/p.json")[0].rows
if tables == "yes":
    rows.write.format("delta").save(f"{folder}/d")
    spark.sql(f"UPDATE {table} SET g = 99 WHERE k < 10")
    spark.sql(f"DELETE FROM {table} WHERE k >= 990")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT k + 5 AS k, g FROM parquet.`{path}`) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET g = s.g WHEN NOT MATCHED THEN INSERT *"
    )
    result["merged"] = list(spark.sql(f"SELECT count(*), sum(k), sum(g) FROM {table}").first())
    query = f"SELECT d.g, count(*) FROM {table} d JOIN parquet.`{path}` p ON d.k = p.k GROUP BY 1"
    result["same"] = selinger.compare(query, runs=1).answer.same
    result["explained"] = bool(selinger.explain(query).decisions)
spark.stop()
print(json.dumps(result))
"""


def merged() -> list[int]:
    """Do in Python what the statements do."""
    table = {k: 99 if k < 10 else k % 10 for k in range(990)}
    table.update({k + 5: k % 10 for k in range(1000)})
    return [len(table), sum(table), sum(table.values())]


@pytest.mark.skipif(not JARS, reason="no jars of Delta: make test-delta")
@pytest.mark.parametrize("order", ["before", "after"])
def test_everything_works_beside_delta(tmp_path: Path, order: str) -> None:
    line = ".".join(Path(selinger.jar_path()).stem.removeprefix("selinger-spark-").split(".")[:2])
    tables = any(f"delta-spark_{line}_" in jar.name for jar in JARS)
    both = [DELTA, selinger.EXTENSION] if order == "before" else [selinger.EXTENSION, DELTA]
    script = tmp_path / "app.py"
    script.write_text(SCRIPT)
    arguments = [str(tmp_path), ",".join(both), ",".join(map(str, JARS)), "yes" if tables else "no"]
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(selinger.__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    expected = {
        "active": True,
        "parameters": "UNBOUND_SQL_PARAMETER",
        "analyzed": 1000,
        "stats": 1000,
        "exported": 1000.0,
        "imported": 1000.0,
    }
    if tables:
        expected |= {"merged": merged(), "same": True, "explained": True}
    assert json.loads(done.stdout.strip().splitlines()[-1]) == expected
