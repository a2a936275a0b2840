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
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import selinger

from benchmarks import scale
from benchmarks.datasets.queries import load_queries
from benchmarks.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession
    from selinger import Decision, Explanation

GOLDEN = ROOT / "tests" / "golden" / "scale-decisions.json"
QUERIES = load_queries("tpcds")
WHOLE_GRID = os.environ.get("SELINGER_TEST_ALL") == "1"
SEED = int(os.environ.get("SELINGER_SEED") or random.SystemRandom().randrange(1_000_000))

FACTORS = (1, 100, 10_000)
"""Scale factors that are planned."""

CLUSTER = {
    "spark.selinger.cluster.cores": "1000",
    "spark.selinger.cluster.executors": "125",
    "spark.selinger.cluster.executorMemoryBytes": "32g",
    "spark.selinger.cluster.driverMemoryBytes": "16g",
    "spark.sql.shuffle.partitions": "2000",
}
"""A cluster of a thousand cores."""


def growth(factor: int) -> dict[str, float]:
    """Give how many times the rows of scale factor 1 each table has."""
    place = FACTORS.index(factor)
    return {table: rows[place] / rows[0] for table, rows in scale.rows().items()}


def problems(explanation: Explanation) -> list[str]:
    """Find what no plan may have: a number that is none, a broadcast too large, no time left."""
    found = [
        f"{decision.node}: {number}"
        for decision in explanation.decisions
        for number in decision.numbers
        if not 0 < number.value < float("inf")
    ]
    found += [
        f"{decision.node}: {decision.chosen} builds more than {decision.numbers}"
        for decision in explanation.decisions
        if _is_too_large(decision)
    ]
    if "planning.budgetMs was reached" in explanation.text or any(
        decision.reason == "PLANNING_BUDGET_EXCEEDED" for decision in explanation.decisions
    ):
        found.append("the planning budget was used up")
    return found


def _is_too_large(decision: Decision) -> bool:
    """Tell whether a broadcast was chosen whose build side exceeds the limit."""
    if decision.chosen is None or not decision.chosen.startswith("Broadcast"):
        return False
    numbers = {number.name: number.value for number in decision.numbers}
    side = "left" if decision.chosen.endswith("(left)") else "right"
    return numbers[f"{side} hash table"] > numbers["broadcast limit"]


def outline(decisions: Sequence[Decision]) -> dict[str, str]:
    """Give what was decided at each node, without numbers."""
    seen: Counter[str] = Counter()
    found = {}
    for decision in decisions:
        # The number of shuffle partitions is set here.
        if decision.outcome == "informed" or decision.rule == "sizeShuffles":
            continue
        node = f"{decision.rule}: {decision.node}"
        seen[node] += 1
        again = f" [{seen[node]}]" if seen[node] > 1 else ""
        parts = (decision.outcome, decision.chosen, decision.reason)
        found[node + again] = ", ".join(part for part in parts if part)
    return found


def changes(
    outlines: Mapping[int, Mapping[str, Mapping[str, str]]],
) -> dict[str, dict[str, dict[str, str | None]]]:
    """Give what is not decided alike at all scale factors."""
    found = {}
    for query in sorted(next(iter(outlines.values()))):
        nodes = sorted({node for outline in outlines.values() for node in outline[query]})
        each = {
            node: {str(factor): outlines[factor][query].get(node) for factor in outlines}
            for node in nodes
        }
        differing = {node: by for node, by in each.items() if len(set(by.values())) > 1}
        if differing:
            found[query] = differing
    return found


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Open a session without tables, on a cluster that it believes to have a thousand cores."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for key, value in {
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4",
        "spark.selinger.failOnError": "true",
        # It would use up ids of columns, by which near-equal plans are told apart.
        "spark.selinger.planning.warmUp": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.maxPlanStringLength": "100000000",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        **CLUSTER,
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


@pytest.mark.parametrize("factor", FACTORS)
def test_plans_at_scale(
    spark: SparkSession, outlines: dict[int, dict[str, dict[str, str]]], factor: int
) -> None:
    """No number is zero, infinite or none, and no broadcast too large.

    Nothing ends for want of time, for what is decided must not depend on the machine: how long
    planning takes is what ``make bench-plancost`` measures.
    """
    spark.conf.set("spark.selinger.planning.budgetMs", "600000")
    imported = selinger.import_stats(spark, scale.STATISTICS, scale=growth(factor))
    rows = {relation.name: relation.rows or 0 for relation in imported}
    assert rows["store_sales"] == pytest.approx(2_880_404 * growth(factor)["store_sales"])
    outlines[factor] = {}
    informed, wrong = 0, []
    for query in QUERIES.values():
        explanation = selinger.explain(spark.sql(query.spark))
        informed += any(d.reason == "STATISTICS_IMPORTED" for d in explanation.decisions)
        wrong += [f"{query.name}: {problem}" for problem in problems(explanation)]
        outlines[factor][query.name] = outline(explanation.decisions)
    assert wrong == []
    # A few queries join nothing but single rows.
    assert informed >= 0.9 * len(QUERIES)


def test_uniform_scale(spark: SparkSession) -> None:
    """The same holds with every table ten thousand times as large, dimensions included."""
    spark.conf.set("spark.selinger.planning.budgetMs", "600000")
    selinger.import_stats(spark, scale.STATISTICS, scale=10_000)
    queries = list(QUERIES.values())
    chosen = queries if WHOLE_GRID else random.Random(SEED).sample(queries, 15)
    wrong = [
        f"{query.name}: {problem}"
        for query in chosen
        for problem in problems(selinger.explain(spark.sql(query.spark)))
    ]
    assert wrong == [], f"seed {SEED}"


def test_decisions_that_change(outlines: dict[int, dict[str, dict[str, str]]]) -> None:
    """What is decided otherwise at another scale factor is known."""
    if set(outlines) != set(FACTORS):
        pytest.skip("run the whole module")
    found = changes(outlines)
    if os.environ.get("SELINGER_WRITE_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == json.loads(GOLDEN.read_text(encoding="utf-8"))
    # A planner that decides alike from gigabytes to terabytes does not look at its numbers.
    assert len(found) > len(QUERIES) / 2
