"""One session with Selinger for all tests of this folder."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import selinger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

CONNECT = os.environ.get("SELINGER_TEST_CONNECT") == "1"
WHOLE_GRID = os.environ.get("SELINGER_TEST_ALL") == "1"
SEED = int(os.environ.get("SELINGER_SEED") or random.SystemRandom().randrange(1_000_000))
#: Tests of what differs over Spark Connect: sessions, and the errors of each kind.
ALWAYS = {"test_session.py", "test_sessions.py", "test_support.py"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave half of the tests out over Connect, which all run in a classic session too."""
    here = [item for item in items if item.path.parent == Path(__file__).parent]
    others = [item for item in here if item.path.name not in ALWAYS]
    if not CONNECT or WHOLE_GRID or len(others) < 20:  # Whoever names a few tests wants them.
        return
    left_out = set(random.Random(SEED).sample(others, len(others) // 2))
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def pytest_report_header() -> str:
    """Say how to repeat the choice."""
    return f"Over Connect, half of the tests: repeat with SELINGER_SEED={SEED}" if CONNECT else ""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Give a session with Selinger; SELINGER_TEST_CONNECT=1 makes it a Connect one."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("selinger tests")
    builder = builder.remote("local[2]") if CONNECT else builder.master("local[2]")
    conf = {
        "spark.driver.memory": "2g",
        # Each sort and hash table takes a page: of the usual 64 MiB the heap would soon be full.
        "spark.buffer.pageSize": "1m",
        "spark.log.level": "ERROR",
        "spark.selinger.failOnError": "true",
        # Or nothing would be decided on tables as small as these.
        "spark.selinger.planning.smallTableMaxBytes": "0",
        # Small joins cost about the same whatever runs them.
        "spark.selinger.join.minGain": "0",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = selinger.configure(builder).getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def joined(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Give a join of Parquet files that Spark and Selinger run differently.

    With broadcasting forbidden, stock Spark sorts both sides; the small side fits a hash table.
    """
    facts, keys = str(tmp_path / "facts"), str(tmp_path / "keys")
    spark.range(20_000).selectExpr("id % 500 AS k", "id AS v").write.parquet(facts)
    spark.range(500).selectExpr("id AS k", "concat('n', id) AS name").write.parquet(keys)
    return spark.read.parquet(facts).join(spark.read.parquet(keys), "k")


@pytest.fixture
def no_broadcast(spark: SparkSession) -> Iterator[None]:
    """Forbid broadcasts for one test, so that joins shuffle."""
    key = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(key, None)
    spark.conf.set(key, "-1")
    yield
    if before is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, before)
