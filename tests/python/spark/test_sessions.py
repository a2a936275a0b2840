"""Two sessions of one JVM at the same time; over Spark Connect they are two clients."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import selinger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "SELECT a.id, b.id AS other FROM range(2000) a JOIN range(100, 300) b ON a.id = b.id"
RULE = "selectJoinOperator"


def calls(spark: SparkSession) -> int:
    """Tell how often the rule was called in this session."""
    return next(rule.calls for rule in selinger.rules(spark) if rule.rule == RULE)


def ask(spark: SparkSession) -> tuple[int, str]:
    """Run the query while counters are read; give its rows and what explain says of the rule."""
    assert calls(spark) >= 0
    frame = spark.sql(QUERY)
    return len(frame.collect()), selinger.explain(frame).text


def test_sessions_count_their_own_calls(spark: SparkSession) -> None:
    other = spark.newSession()
    before = calls(spark)
    assert calls(other) == 0
    assert ask(other)[0] == 200
    assert calls(other) > 0
    assert calls(spark) == before


def test_sessions_have_their_own_switches(spark: SparkSession) -> None:
    other = spark.newSession()
    with selinger.disabled(other):
        assert ask(other)[0] == 200
        assert calls(other) == 0
        assert selinger.status(spark).mode == "on"


def test_clients_at_the_same_time(spark: SparkSession) -> None:
    others = [spark.newSession() for _ in range(2)]
    alone = ask(others[0])
    assert RULE in alone[1]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, others * 4))
    assert {rows for rows, _ in answers} == {200}
    assert all(RULE in text for _, text in answers)
    assert calls(others[0]) > 0
    assert calls(others[1]) > 0
