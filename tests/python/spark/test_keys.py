from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import selinger
from selinger.errors import AnalyzeFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """Give a path of Parquet files, with a place for keys that is set for one test."""
    path = str(tmp_path / "it's keys")
    spark.range(0, 100, 1, 2).selectExpr("id", "id % 10 AS a", "id DIV 10 AS b").write.parquet(path)
    with selinger.settings(spark, stats_location=str(tmp_path / "statistics")):
        yield path


def test_declare_look_and_forget(spark: SparkSession, table: str) -> None:
    key = selinger.declare_key(spark, table, ["b", "a"])
    assert (key.relation, key.columns, key.files, key.rows) == (table, ("b", "a"), 2, 100)
    assert (key.nulls, key.consecutive, key.current) == (0, False, True)
    assert selinger.declare_key(spark, table, "id").consecutive
    keys = selinger.declared_keys(spark, table)
    assert [key.columns for key in keys] == [("id",), ("a", "b")]
    assert "a, b" in str(keys)
    assert "<td>a, b</td>" in keys._repr_html_()
    assert selinger.forget(spark, table) == 3
    assert "No key was declared" in str(selinger.declared_keys(spark, table))


def test_a_key_of_other_files_is_shown_as_such(spark: SparkSession, table: str) -> None:
    selinger.declare_key(spark, table, "id")
    spark.range(1).selectExpr("id", "id AS a", "id AS b").write.mode("append").parquet(table)
    keys = selinger.declared_keys(spark, table)
    assert not keys[0].current
    assert "files have changed" in str(keys)


def test_duplicates_are_an_error_that_names_one(spark: SparkSession, table: str) -> None:
    with pytest.raises(AnalyzeFailed, match=r"10 of its values .* which is in 10 rows") as caught:
        selinger.declare_key(spark, table, "a")
    assert "Py4J" not in str(caught.value)
    assert selinger.declared_keys(spark, table) == ()


def test_a_declared_key_removes_a_join(spark: SparkSession, table: str) -> None:
    frame = spark.range(50).withColumnRenamed("id", "k")
    dims = spark.read.parquet(table)
    query = frame.join(dims, frame["k"] == dims["id"], "left").select("k")
    with selinger.settings(spark, keys_max_rows=0):
        assert "KEY_NOT_PROVEN" in str(selinger.explain(query, all=True))
        selinger.declare_key(spark, table, "id")
        again = frame.join(dims, frame["k"] == dims["id"], "left").select("k")
        assert "JOIN_NOT_NEEDED" in str(selinger.explain(again, all=True))
        assert again.count() == 50
