"""A hundred million groups in little memory, and on a cluster that loses an executor.

Each run takes a minute or more, so they are run only with ``SELINGER_TEST_ALL=1``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.python.processes import run

pytestmark = pytest.mark.skipif(
    os.environ.get("SELINGER_TEST_ALL") != "1", reason="takes minutes: make test-all"
)

GROUPS = 100_000_000

# Each key twice, in different tasks and far from its neighbours: 7,919 and a power of ten have no
# divisor in common.
SCRIPT = """
import json, os, signal, subprocess, sys, threading, time
import selinger
from pyspark.sql import SparkSession

master, groups, kill = {master!r}, {groups}, {kill}
spark = selinger.configure(
    SparkSession.builder.master(master)
    .config("spark.driver.memory", {driver!r})
    .config("spark.executor.memory", "1g")
    # So few that in one process no task has memory for its groups.
    .config("spark.sql.shuffle.partitions", "8")
    .config("spark.selinger.failOnError", "true")
    .config("spark.ui.enabled", "false")
).getOrCreate()

def executors():
    lines = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True).stdout
    application = spark.sparkContext.applicationId
    return [
        int(line.split()[0])
        for line in lines.splitlines()
        if "CoarseGrainedExecutorBackend" in line and application in line
    ]

killed = []

def kill_one():
    # When the first tasks have written what they have to shuffle.
    tracker = spark.sparkContext.statusTracker()
    while not any(
        stage and stage.numCompletedTasks > 0
        for stage in map(tracker.getStageInfo, tracker.getActiveStageIds())
    ):
        time.sleep(0.05)
    pid = executors()[0]
    os.kill(pid, signal.SIGKILL)
    killed.append(pid)

if kill:
    threading.Thread(target=kill_one, daemon=True).start()

spark.range(2 * groups, numPartitions=8).createOrReplaceTempView("numbers")
df = spark.sql(f'''
  SELECT count(*), sum(n), sum(length(m)), max(m), sum(k)
  FROM (
    SELECT k, count(*) AS n, max(string(v)) AS m
    FROM (SELECT (id * 7919) % {groups} AS k, id % 1000 + id DIV {groups} AS v FROM numbers)
    GROUP BY k
  )''')
row = df.collect()[0]
explanation = selinger.explain(df, all=True)


def spilled():
    # As Spark's UI shows it. What tasks report at their end arrives after the result.
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    found = []
    for place in range(store.executionsList().size()):
        execution = store.executionsList().apply(place).executionId()
        values = store.executionMetrics(execution)
        nodes = store.planGraph(execution).allNodes()
        for node in (nodes.apply(i) for i in range(nodes.size())):
            for metric in (node.metrics().apply(i) for i in range(node.metrics().size())):
                value = values.get(metric.accumulatorId())
                spills = node.name() == "HeapHashAggregate" and metric.name() == "spill size"
                if spills and value.isDefined():
                    # The sum follows a line that says what numbers these are.
                    found.append(value.get().splitlines()[-1])
    return found

result = {{
    "spilled": spilled(),
    "row": list(row),
    "decisions": [[d.rule, d.outcome] for d in explanation.decisions],
    "plan": explanation.plan,
    "killed": len(killed),
}}
spark.stop()
print(json.dumps(result))
"""


@pytest.mark.parametrize(
    ("master", "driver", "groups", "kill"),
    [
        # (2,000 - 300) MB x 0.6: one gigabyte for execution and storage together.
        ("local[2]", "2000m", GROUPS, False),
        ("local-cluster[2,1,1024]", "1g", GROUPS // 5, False),
        ("local-cluster[2,1,1024]", "1g", GROUPS // 5, True),
    ],
)
def test_each_group_is_returned_once(
    tmp_path: Path,
    spark_home: Path,
    master: str,
    driver: str,
    groups: int,
    kill: bool,
) -> None:
    script = SCRIPT.format(master=master, driver=driver, groups=groups, kill=kill)
    # As users run it, with all compilers of the JVM.
    settings = {"SPARK_HOME": str(spark_home), "JAVA_TOOL_OPTIONS": ""}
    result = run(tmp_path, script, sys.executable, timeout=3600, **settings)
    lengths = sum(len(max(str(v), str(v + 1))) for v in range(1000)) * groups // 1000
    assert result["row"] == [groups, 2 * groups, lengths, "999", groups * (groups - 1) // 2]
    assert ["selectAggregateOperator", "changed"] in result["decisions"]
    assert "HeapHashAggregate" in result["plan"]
    assert result["killed"] == int(kill)
    if groups == GROUPS:
        # The groups of a task on the cluster may fit into its memory.
        assert any(not size.startswith("0.0 B") for size in result["spilled"]), result["spilled"]
