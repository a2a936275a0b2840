from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import selinger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Give a place for statistics, set for one test."""
    folder = tmp_path / "statistics"
    with selinger.settings(spark, stats_location=str(folder)):
        yield folder


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    """Give a path of Parquet files with a skewed column and one that is not sketched."""
    path = str(tmp_path / "facts")
    frame = spark.range(0, 20_000, 1, 2).selectExpr(
        "id AS k", "if(id % 4 = 0, 'often', string(id)) AS s", "array(id) AS list"
    )
    frame.write.parquet(path)
    return path


def segments(store: Path) -> int:
    return len(list(store.glob("*/*.sketch")))


@pytest.mark.usefixtures("store")
def test_analyze_says_why_it_reads_a_file_again(spark: SparkSession, table: str) -> None:
    assert "again" not in str(selinger.analyze(spark, table, ["k"]))
    again = selinger.analyze(spark, table, ["k", "s"])
    assert again[0].files_other_columns == 2
    assert "read again: 2 files of which other columns were read before" in str(again)
    assert "read again: 2 files of which other columns" in again._repr_html_()


@pytest.mark.usefixtures("store")
def test_analyze_a_path_that_sql_could_misread(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "it's $1 é")
    spark.range(7).write.parquet(path)
    assert selinger.analyze(spark, path, ["id"], sample=1.0)[0].rows_read == 7
    assert selinger.stats(spark, path)[0].rows == 7


def test_analyze_then_stats_then_forget(spark: SparkSession, store: Path, table: str) -> None:
    done = selinger.analyze(spark, table)
    assert (done[0].files, done[0].files_read, done[0].rows_read) == (2, 2, 20_000)
    assert done[0].columns == ("k", "s")
    assert done[0].columns_from == "all"
    assert "list" in done[0].columns_skipped[0]
    assert table[-20:] in str(done).replace("\n", "") or "facts" in str(done)
    assert "<table>" in done._repr_html_()
    known = {column.column: column for column in selinger.stats(spark, table)}
    assert known["k"].complete
    assert abs((known["k"].distinct or 0) - 20_000) < 1_000
    assert (known["k"].min, known["k"].max) == ("0", "19999")
    assert known["s"].frequent[0][0] == "often"
    assert abs(known["s"].frequent[0][1] - 0.25) < 0.01
    assert "often" in str(selinger.stats(spark, table))
    assert "<table>" in selinger.stats(spark, table)._repr_html_()
    assert selinger.forget(spark, table, ["k"]) == 1
    assert [column.column for column in selinger.stats(spark, table)] == ["s"]
    assert selinger.forget(spark, table) == 1
    assert selinger.stats(spark, table) == ()
    assert "Nothing current" in str(selinger.stats(spark, table))


def test_a_second_run_reads_what_is_new(spark: SparkSession, store: Path, table: str) -> None:
    selinger.analyze(spark, table, ["k"])
    assert selinger.analyze(spark, table, ["k"])[0].files_known == 2
    assert segments(store) == 1
    spark.range(10).selectExpr("id AS k", "'x' AS s", "array(id) AS list").coalesce(1).write.mode(
        "append"
    ).parquet(table)
    again = selinger.analyze(spark, table, ["k"], progress=True)
    assert (again[0].files_read, again[0].files_known, again[0].rows_read) == (1, 2, 10)


def test_the_function_runs_once(spark: SparkSession, store: Path, table: str) -> None:
    frame = spark.sql("SELECT * FROM selinger_analyze(:t)", args={"t": table})
    assert frame.collect()[0]["files_read"] == 2
    assert frame.collect()[0]["files_read"] == 2
    assert frame.count() == 1
    assert "files_read" in frame.columns
    assert segments(store) == 1


def test_explain_runs_nothing(spark: SparkSession, store: Path, table: str) -> None:
    spark.sql(f"EXPLAIN SELECT * FROM selinger_analyze('{table}')").collect()
    assert segments(store) == 0


def test_views_and_several_targets(spark: SparkSession, store: Path, table: str) -> None:
    spark.read.parquet(table).createOrReplaceTempView("analyzed_view")
    done = selinger.analyze(spark, ["analyzed_view", table], progress=True)
    assert [one.relation for one in done] == ["analyzed_view", table]
    assert [one.files_read for one in done] == [2, 0]
    assert done[1].files_known == 2


def test_estimates_use_what_was_collected(spark: SparkSession, store: Path, table: str) -> None:
    selinger.analyze(spark, table)
    frame = spark.read.parquet(table).join(spark.range(50).toDF("k"), "k")
    reasons = [d.reason for d in selinger.explain(frame).decisions]
    assert "COLLECTED_STATISTICS_USED" in reasons


def test_without_a_location(spark: SparkSession, table: str) -> None:
    with pytest.raises(selinger.AnalyzeFailed, match=r"stats\.location") as caught:
        selinger.analyze(spark, table)
    assert "spark.conf.set" in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "sample", "words"),
    [(["nope"], None, "no column nope"), ([], None, "columns"), (None, 2.0, "sample must be")],
)
def test_wrong_arguments(
    spark: SparkSession,
    store: Path,
    table: str,
    columns: list[str] | None,
    sample: float | None,
    words: str,
) -> None:
    with pytest.raises(selinger.AnalyzeFailed, match=words):
        selinger.analyze(spark, table, columns, sample)


def test_other_files_are_refused(spark: SparkSession, store: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "text")
    spark.range(10).write.csv(path)
    with pytest.raises(selinger.AnalyzeFailed, match="neither a Parquet nor an ORC"):
        selinger.analyze(spark, path)


def test_forget_takes_names_as_they_are(spark: SparkSession, store: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "commas")
    spark.range(100).selectExpr("id AS a", "id AS b", "id AS `a,b`").write.parquet(path)
    selinger.analyze(spark, path, columns=["a", "b", "a,b"])
    assert selinger.forget(spark, path, columns=["a,b"]) == 1
    assert {column.column for column in selinger.stats(spark, path)} == {"a", "b"}
