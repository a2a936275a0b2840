"""All queries of TPC-DS planned at scale factors 1, 100 and 10,000 for a thousand cores.

There is neither data nor a cluster: plans come from ``tests/golden/tpcds-sf1-statistics.json``,
scaled table by table as the benchmark's specification has it. What is decided otherwise from one
scale factor to the next is in ``tests/golden/scale-decisions.json``;
``SELINGER_WRITE_GOLDEN=1 pytest tests/python/test_scale.py`` writes it anew, and its difference
shows what a change of the planner means at scale.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
import selinger

from benchmarks import scale
from benchmarks.paths import ROOT
from benchmarks.queries import load_queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

GOLDEN = ROOT / "tests" / "golden" / "scale-decisions.json"
QUERIES = load_queries("tpcds")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Open a session without tables, on a cluster that it believes to have a thousand cores."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for key, value in {
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4",
        "spark.selinger.failOnError": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.maxPlanStringLength": "100000000",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        **scale.CLUSTER,
    }.items():
        builder = builder.config(key, value)
    session = selinger.configure(builder).getOrCreate()
    # The first plan of a JVM loads classes for as long as a budget lasts.
    selinger.import_stats(session, scale.STATISTICS)
    for query in list(QUERIES.values())[:5]:
        selinger.explain(session.sql(query.spark))
    yield session
    session.stop()


@pytest.fixture(scope="module")
def outlines() -> dict[int, dict[str, dict[str, str]]]:
    """Collect what was decided, by scale factor and query."""
    return {}


@pytest.mark.parametrize("factor", scale.FACTORS)
def test_plans_at_scale(
    spark: SparkSession, outlines: dict[int, dict[str, dict[str, str]]], factor: int
) -> None:
    """No number is zero, infinite or none, and no broadcast too large.

    Here nothing ends for want of time, for what is decided must not depend on the machine;
    `test_uniform_scale` plans within the budget.
    """
    spark.conf.set("spark.selinger.planning.budgetMs", "600000")
    imported = selinger.import_stats(spark, scale.STATISTICS, scale=scale.growth(factor))
    rows = {relation.name: relation.rows or 0 for relation in imported}
    assert rows["store_sales"] == pytest.approx(2_880_404 * scale.growth(factor)["store_sales"])
    outlines[factor] = {}
    informed, wrong = 0, []
    for query in QUERIES.values():
        explanation = selinger.explain(spark.sql(query.spark))
        informed += any(d.reason == "STATISTICS_IMPORTED" for d in explanation.decisions)
        wrong += [f"{query.name}: {problem}" for problem in scale.problems(explanation)]
        outlines[factor][query.name] = scale.outline(explanation.decisions)
    assert wrong == []
    # A few queries join nothing but single rows.
    assert informed >= 0.9 * len(QUERIES)


def test_uniform_scale(spark: SparkSession) -> None:
    """With every table ten thousand times as large, dimensions included, time is enough."""
    spark.conf.unset("spark.selinger.planning.budgetMs")
    selinger.import_stats(spark, scale.STATISTICS, scale=10_000)
    wrong = [
        f"{query.name}: {problem}"
        for query in QUERIES.values()
        for problem in scale.problems(selinger.explain(spark.sql(query.spark)))
    ]
    assert wrong == []


def test_decisions_that_change(outlines: dict[int, dict[str, dict[str, str]]]) -> None:
    """What is decided otherwise at another scale factor is known."""
    if set(outlines) != set(scale.FACTORS):
        pytest.skip("run the whole module")
    found = scale.changes(outlines)
    if os.environ.get("SELINGER_WRITE_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == json.loads(GOLDEN.read_text(encoding="utf-8"))
    # A planner that decides alike from gigabytes to terabytes does not look at its numbers.
    assert len(found) > len(QUERIES) / 2
