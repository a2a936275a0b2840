"""The 99 queries of TPC-DS: stock Spark, Selinger and DuckDB give the same rows.

A run takes an eighth of the queries at random, each adaptively with Spark's default of ANSI, or not
adaptively with a random one; and in both ways those that rules were written for.
``SELINGER_TEST_ALL=1`` runs all queries under all four settings. Code is generated where execution
is adaptive; to generate it takes longer than a query runs on data as small as this. Queries run
without their final LIMIT, so that ties cannot hide a difference; what stock Spark answers is asked
once for each ANSI setting.
Limits are set so that Selinger decides otherwise than Spark on data as small as this; a query whose
plan is never changed proves nothing, and is counted.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import selinger
from pyspark.errors import PySparkException

from benchmarks.datasets import duck
from benchmarks.datasets import generate as data
from benchmarks.datasets.queries import Query, load_queries, without_limit
from benchmarks.paths import ROOT
from benchmarks.runner.compare import OTHER_ENGINE, SAME_ENGINE, compare_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb
    from pyspark.sql import DataFrame, SparkSession

SCALE = 0.01
QUERIES = load_queries("tpcds")
WHOLE_GRID = os.environ.get("SELINGER_TEST_ALL") == "1"
SEED = int(os.environ.get("SELINGER_SEED") or random.SystemRandom().randrange(1_000_000))
# A broadcast limit that nothing fits makes hash joins of Spark's broadcasts.
FORCING = {
    "spark.selinger.join.broadcastMaxBytes": "1",
    "spark.selinger.join.minGain": "0",
    "spark.selinger.ordering.minGain": "0",
}
LEAST_CHANGED = 0.9
#: Queries that rules were written for, and that the history of the code names: in every run.
KNOWN = (
    *("q01", "q04", "q11", "q14", "q17", "q21", "q22", "q23", "q27", "q30", "q31", "q39"),
    *("q51", "q64", "q65", "q67", "q72", "q74", "q75", "q81", "q95"),
)
CHOSEN = (
    sorted(QUERIES)
    if WHOLE_GRID
    else sorted({*KNOWN, *random.Random(SEED).sample(sorted(QUERIES), len(QUERIES) // 8)})
)


@dataclass
class Suite:
    """The two engines, and the queries whose plan Selinger changed."""

    spark: SparkSession
    oracle: duckdb.DuckDBPyConnection
    changed: set[str] = field(default_factory=set)
    run: set[str] = field(default_factory=set)

    def rows(self, sql: str, adaptive: bool, ansi: bool, mode: str) -> tuple[DataFrame, Any]:
        """Give a query's rows, or the class of its error, under these settings."""
        for key, value in {
            "spark.sql.adaptive.enabled": str(adaptive).lower(),
            "spark.sql.ansi.enabled": str(ansi).lower(),
            "spark.selinger.mode": mode,
            "spark.sql.codegen.wholeStage": str(adaptive).lower(),
            "spark.sql.codegen.factoryMode": "FALLBACK" if adaptive else "NO_CODEGEN",
            # The interpreter clears a cache of common expressions for each row.
            "spark.sql.subexpressionElimination.enabled": str(adaptive).lower(),
        }.items():
            self.spark.conf.set(key, value)
        frame = self.spark.sql(sql)
        try:
            return frame, [tuple(row) for row in frame.collect()]
        except PySparkException as failure:
            return frame, f"{type(failure).__name__} {failure.getCondition()}"


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Make the data, and open a session with Selinger and DuckDB on it."""
    from pyspark.sql import SparkSession

    folder = data.make("tpcds", SCALE, root=tmp_path_factory.mktemp("tpcds"))
    builder = SparkSession.builder.master("local[2]")
    for key, value in {
        # Few settings of Hadoop, which go with each scan: see the file in it.
        "spark.driver.extraClassPath": str(ROOT / "tests" / "hadoop"),
        "spark.driver.memory": "3g",
        # Each sort and hash table takes a page: of the usual 64 MiB the heap would soon be full.
        "spark.buffer.pageSize": "1m",
        # This JVM lives for minutes: it is worth compiling for, unlike those of the other tests.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4",
        "spark.selinger.failOnError": "true",
        # Or nothing would be decided on tables as small as these.
        "spark.selinger.planning.smallTableMaxBytes": "0",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        **FORCING,
    }.items():
        builder = builder.config(key, value)
    spark = selinger.configure(builder).getOrCreate()
    # Spark's UI, which nobody sees here, has this listener add up the metrics of every query.
    listener = spark._jsparkSession.sharedState().statusStore().listener().get()
    spark.sparkContext._jsc.sc().removeSparkListener(listener)
    for table in sorted(Path(folder).glob("*.parquet")):
        spark.read.parquet(str(table)).createOrReplaceTempView(table.stem)
    oracle = duck.connect()
    duck.attach_tables(oracle, Path(folder))
    yield Suite(spark, oracle)
    oracle.close()
    spark.stop()


@pytest.mark.parametrize("query", [QUERIES[name] for name in CHOSEN], ids=CHOSEN)
def test_answers_agree(suite: Suite, query: Query) -> None:
    """Stock Spark, Selinger and DuckDB agree under these settings."""
    sql = without_limit(query.spark) or query.spark
    expected = suite.oracle.execute(without_limit(query.duckdb) or query.duckdb).fetchall()
    suite.run.add(query.name)
    stocks: dict[bool, Any] = {}
    for adaptive, ansi in _settings(query.name):
        if ansi not in stocks:
            _, stocks[ansi] = suite.rows(sql, adaptive=False, ansi=ansi, mode="off")
        stock = stocks[ansi]
        where = f"{query.name}, adaptive {adaptive}, ANSI {ansi}, seed {SEED}"
        frame, ours = suite.rows(sql, adaptive, ansi, "on")
        if isinstance(stock, str) or isinstance(ours, str):
            assert ours == stock, where
            continue
        _assert_same(ours, stock, SAME_ENGINE, f"{where}: Selinger against stock")
        _assert_same(ours, expected, OTHER_ENGINE, f"{where}: Selinger against DuckDB")
        if any(d.outcome == "changed" for d in selinger.explain(frame).decisions):
            suite.changed.add(query.name)


def _settings(name: str) -> list[tuple[bool, bool]]:
    """Give what a query runs under: adaptive execution, and ANSI."""
    if WHOLE_GRID:
        return [(adaptive, ansi) for ansi in (True, False) for adaptive in (True, False)]
    rng = random.Random(f"{SEED} {name}")
    other = (False, rng.random() < 0.5)
    return [(True, True), other] if name in KNOWN else [rng.choice([(True, True), other])]


def test_most_plans_were_changed(suite: Suite, record_property: Callable[[str, Any], None]) -> None:
    """Equal answers of equal plans prove nothing."""
    vacuous = sorted(suite.run - suite.changed)
    record_property("vacuous", vacuous)
    print(f"{len(suite.changed)} of {len(suite.run)} queries changed; vacuous: {vacuous}")
    assert len(suite.run) == len(CHOSEN) or not suite.run, "run the whole module"
    # As many as may be vacuous of all queries: chance may choose each of them.
    assert len(vacuous) <= (1 - LEAST_CHANGED) * len(QUERIES), f"seed {SEED}: {vacuous}"


def _assert_same(left: Any, right: Any, relative: float, where: str) -> None:
    difference = compare_rows(left, right, relative)
    assert difference.equal, f"{where}: {difference}"
