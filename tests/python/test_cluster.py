"""Selinger on executors in processes of their own, and under spark-submit."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import selinger

from tests.python.processes import run

JOIN = '''
def checked_join(spark, folder):
    """Join two files, shuffled; give what the test looks at."""
    spark.range(20_000).selectExpr("id % 500 AS k", "id AS v").write.parquet(f"{folder}/facts")
    spark.range(500).selectExpr("id AS k", "id * 10 AS w").write.parquet(f"{folder}/keys")
    facts, keys = (spark.read.parquet(f"{folder}/{name}") for name in ("facts", "keys"))
    df = facts.join(keys, "k")
    rows = df.collect()
    explanation = selinger.explain(df)
    with selinger.disabled(spark):
        stock = facts.join(keys, "k").collect()
    return {
        "rows": len(rows),
        "sum": sum(row.v + row.w for row in rows),
        "same": sorted(rows) == sorted(stock),
        "outcomes": [d.outcome for d in explanation.decisions if d.rule == "selectJoinOperator"],
        "plan": explanation.plan,
        "active": selinger.status(spark).active,
    }
'''

CLUSTER = (
    """
import json, os, sys
import selinger
from pyspark.sql import SparkSession
"""
    + JOIN
    + """
spark = selinger.configure(
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.driver.memory", "1g")
    .config("spark.executor.memory", "1g")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.sql.autoBroadcastJoinThreshold", "-1")
    .config("spark.selinger.failOnError", "true")
    .config("spark.selinger.planning.smallTableMaxBytes", "0")
    .config("spark.selinger.join.minGain", "0")
    .config("spark.ui.enabled", "false")
    .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
).getOrCreate()
result = checked_join(spark, sys.argv[1])

def there(_):
    jars = [name for name in os.listdir(".") if name.endswith(".jar")]
    return [(os.getcwd(), jars)]

everywhere = spark.sparkContext.parallelize(range(8), 8).mapPartitions(there)
result["executors"] = dict(everywhere.collect())
result["driver"] = os.getcwd()
spark.stop()
print(json.dumps(result))
"""
)

SUBMITTED = (
    """
import json, sys
import selinger
from pyspark.sql import SparkSession
"""
    + JOIN
    + """
spark = selinger.configure(SparkSession.builder).getOrCreate()
result = checked_join(spark, sys.argv[1])
spark.stop()
print(json.dumps(result))
"""
)

ROWS = 20_000
SUM = sum(range(20_000)) + 40 * 10 * sum(range(500))


def check(result: dict[str, Any]) -> None:
    assert result["active"]
    assert result["rows"] == ROWS
    assert result["sum"] == SUM
    assert result["same"]
    assert result["outcomes"] == ["changed"]
    assert "ShuffledHashJoin" in result["plan"]


def test_executors_get_the_jar_and_run_our_plan(tmp_path: Path, spark_home: Path) -> None:
    result = run(tmp_path, CLUSTER, sys.executable, SPARK_HOME=str(spark_home))
    check(result)
    executors: dict[str, list[str]] = result["executors"]
    assert len(executors) == 2, "both executors must have worked"
    assert result["driver"] not in executors
    jar = Path(selinger.jar_path()).name
    assert all(jar in jars for jars in executors.values())


def test_spark_submit_with_the_flags_of_conf(tmp_path: Path, spark_home: Path) -> None:
    """As the documentation has it, ``spark-submit $(selinger conf)``, from a path with spaces."""
    jar = tmp_path / "my jars" / Path(selinger.jar_path()).name
    jar.parent.mkdir()
    shutil.copy(selinger.jar_path(), jar)
    conf = f"{sys.executable} -m selinger conf --jar '{jar}'"
    settings = {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.shuffle.partitions": "2",
        "spark.selinger.failOnError": "true",
        "spark.selinger.planning.smallTableMaxBytes": "0",
        "spark.selinger.join.minGain": "0",
        "spark.ui.enabled": "false",
    }
    submit = f"{spark_home}/bin/spark-submit --master local[2] --driver-memory 1g $({conf}) "
    submit += " ".join(f"--conf {key}={value}" for key, value in settings.items())
    launcher = ("bash", "-c", f'exec {submit} "$0" "$1"')
    check(run(tmp_path, SUBMITTED, *launcher, SPARK_HOME=str(spark_home)))
