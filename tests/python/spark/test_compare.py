from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import selinger
from chispa import assert_df_equality
from pyspark.sql import functions as F  # noqa: N812
from selinger import comparison
from selinger._digest import digest
from selinger.session import overridden

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SMALL = {"runs": 1, "max_rows": 10}


@pytest.mark.usefixtures("no_broadcast")
def test_compare_a_dataframe(spark: SparkSession, joined: DataFrame) -> None:
    joined.count()  # it has a plan already
    result = selinger.compare(joined, runs=2)
    assert result.answer.same is True, str(result.answer)
    assert result.answer.method == "rows"
    assert result.stock.rows == result.selinger.rows == 20_000
    assert len(result.stock.seconds) == len(result.selinger.seconds) == 2
    assert "SortMergeJoin" in result.stock.plan
    assert "ShuffledHashJoin" in result.selinger.plan
    assert "SortMergeJoin" not in result.selinger.plan
    assert any(d.outcome == "changed" for d in result.decisions)
    assert result.ratio is not None
    assert result.ratio > 0
    low, high = result.ratio_spread or (0.0, 0.0)
    assert 0 < low <= high
    assert spark.conf.get("spark.selinger.mode", None) is None


@pytest.mark.usefixtures("no_broadcast")
def test_compare_prints_a_table_and_html(joined: DataFrame) -> None:
    result = selinger.compare(joined, runs=1)
    text, html = str(result), result._repr_html_()
    for part in ("stock Spark", "Selinger", "median", "answer: the same"):
        assert part in text
    assert text.startswith(result.verdict)
    assert "Too few runs" in result.verdict
    assert "ShuffledHashJoin" in result.plan_diff
    assert "#" not in result.plan_diff
    assert result.changed.startswith("1 of 1 join changed")
    assert f"{result.changed}\n* facts ⋈ keys: " in text
    assert html.index(result.verdict) < html.index("<table>") < html.index(result.changed)
    assert html.index(result.changed) < html.index("<details>")
    assert "plans, drawn" in html
    assert html.count("<details>") == html.count("</details>")
    assert " open" not in html
    assert "<script" not in html
    for code in {d.reason for d in result.decisions if d.outcome == "changed"}:
        assert f". <code>{code}</code></p>" in html  # behind its sentence
    assert result.page().startswith("<!doctype html>")
    assert result.verdict in result.page()


@pytest.mark.usefixtures("no_broadcast")
def test_compare_draws_both_plans_with_rows_that_came(joined: DataFrame) -> None:
    result = selinger.compare(joined, runs=1)
    stock, ours = result.stock.tree, result.selinger.tree
    assert stock
    assert ours
    assert [n.name for n in stock.nodes() if n.symbol] == ["SortMergeJoin"]
    assert [n.name for n in ours.nodes() if n.symbol] == ["ShuffledHashJoin"]
    assert set(ours.tables) == {"facts", "keys"}
    assert all(node.estimated for join in ours.nodes() if join.symbol for node in join.inputs)
    if os.environ.get("SELINGER_TEST_CONNECT") != "1":  # there each explain plans anew
        for tree in (stock, ours):
            (join,) = (node for node in tree.nodes() if node.symbol)
            assert join.rows == 20_000
            assert sorted(node.rows or 0 for node in join.inputs) == [500, 20_000]
    html = result._repr_html_()
    assert html.count("<svg") == 2
    assert '<g class="gone">' in html
    assert '<g class="come">' in html


def test_compare_draws_the_orders_of_joins(spark: SparkSession, tmp_path: Path) -> None:
    tables = {
        "sold": spark.range(200_000).selectExpr("id % 1000 AS item", "id % 500 AS day"),
        "stored": spark.range(20_000).selectExpr("id % 1000 AS item", "id AS place"),
        "days": spark.range(500).selectExpr("id AS day", "id % 100 AS week"),
    }
    for name, df in tables.items():
        df.write.parquet(str(tmp_path / name))
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    sql = "SELECT count(*) FROM sold JOIN stored USING (item) JOIN days USING (day) WHERE week = 3"
    result = selinger.compare(sql, runs=1, spark=spark)
    assert result.answer.same is True
    lines = str(result).splitlines()
    title = next(i for i, line in enumerate(lines) if line.startswith("order written:"))
    drawing = lines[title : title + 6]
    assert "order chosen:" in drawing[0]
    assert all(any(name in line for line in drawing) for name in tables)
    assert "├─ ⋈" in drawing[2]
    html = result._repr_html_()
    shown = html.partition('<div class="pair">')[2].partition("<details>")[0]
    assert shown.count("<svg") == 2
    assert "Order of 3 tables, as written" in shown
    assert "Order of 3 tables, as chosen" in shown
    assert all(f">{name}</tspan>" in shown for name in tables)
    if os.environ.get("SELINGER_TEST_CONNECT") != "1":
        # 200 of each 1,000 sold items times 20 places: all that the bad order joins first.
        assert "4 M rows, " in shown


def test_compare_sql(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(100).write.parquet(str(tmp_path / "t"))
    spark.read.parquet(str(tmp_path / "t")).createOrReplaceTempView("t_compare")
    sql = "-- a comment\n(SELECT id % 7 AS k, count(*) AS n FROM t_compare GROUP BY 1)"
    result = selinger.compare(sql, runs=1, spark=spark)
    assert result.query == sql
    assert result.answer.same is True
    assert result.stock.rows == 7


def test_compare_with_nothing_to_change(spark: SparkSession) -> None:
    result = selinger.compare(spark.range(10), runs=1)
    assert result.plan_diff == ""
    assert result.same_plan is True
    assert result.faster is None
    assert str(result).startswith("Same plan: the difference is noise.")
    assert "plan: unchanged" in str(result)
    html = result._repr_html_()
    assert "plan: unchanged" in html
    assert 'class="mark"' not in html
    assert "<li>" not in html


def test_compare_in_a_session_whose_mode_is_off(spark: SparkSession) -> None:
    with selinger.disabled(spark):
        assert selinger.compare(spark.range(10), runs=1).answer.same is True
        assert spark.conf.get("spark.selinger.mode") == "off"


def test_compare_measures_once_where_the_plan_is_the_same(spark: SparkSession) -> None:
    result = selinger.compare(spark.range(10), runs=9)
    assert len(result.stock.seconds) == len(result.selinger.seconds) == 1


@pytest.mark.usefixtures("no_broadcast")
def test_compare_stops_when_the_answer_is_clear(
    joined: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    def time(self: Any, small: bool) -> float:
        return 1.0 if self.spark.conf.get("spark.selinger.mode") == "on" else 2.0

    monkeypatch.setattr(comparison._Comparing, "_time", time)
    result = selinger.compare(joined, runs=9)
    assert len(result.stock.seconds) == 4
    assert result.faster == "Selinger"
    assert "Selinger is 2.0 times as fast" in result.verdict
    monkeypatch.setattr(comparison._Comparing, "_time", lambda *_: 1.0)
    result = selinger.compare(joined, runs=9)
    assert len(result.stock.seconds) == 3
    assert result.faster is None
    assert "the runs overlap" in result.verdict


@pytest.mark.usefixtures("no_broadcast")
def test_compare_warms_up_both_sides_and_runs_them_in_turn(
    joined: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def record(self: Any, what: str) -> None:
        done.append((what, self.spark.conf.get("spark.selinger.mode")))

    warm_up = comparison._Comparing._warm_up

    def warm(self: Any, *, small: bool) -> Any:
        record(self, "first")
        return warm_up(self, small=small)

    def time(self: Any, small: bool) -> float:
        record(self, "timed")
        return 1.0 + len(done) // 4 % 2  # as long on both sides, so that nothing is clear

    monkeypatch.setattr(comparison._Comparing, "_warm_up", warm)
    monkeypatch.setattr(comparison._Comparing, "_time", time)
    result = selinger.compare(joined, runs=3)
    runs = len(result.stock.seconds)
    assert runs == len(result.selinger.seconds) == 3
    assert done[:2] == [("first", "off"), ("first", "on")]
    modes = [mode for what, mode in done if what == "timed"]
    # What is shown comes last, each side first in turn.
    assert modes[-2 * runs :] == ["off", "on", "on", "off", "off", "on"]
    # Before it, both sides run as often, unseen, until little is compiled any more.
    before = modes[: -2 * runs]
    assert before
    assert before == ["off", "on"] * (len(before) // 2)


def test_compare_sees_a_difference_in_a_long_list(spark: SparkSession) -> None:
    """Spark cuts long lists of columns when it prints a plan; what differs may be cut off."""
    columns = ", ".join(f"id + {i} AS c{i}" for i in range(40))
    printed = selinger.compare(f"SELECT {columns} FROM range(3)", runs=1, spark=spark).stock.plan
    assert "c39" in printed
    assert "more fields" not in printed


def test_compare_columns_of_one_name(spark: SparkSession) -> None:
    one = spark.range(5)
    twice = one.join(one.withColumnRenamed("id", "other"), F.expr("id = other"))
    twice = twice.toDF("id", "id")
    for options in (SMALL, {"runs": 1, "max_rows": 2}):
        assert selinger.compare(twice, **options).answer.same is True  # type: ignore[arg-type]


def test_compare_a_query_that_fails_both_ways(spark: SparkSession) -> None:
    result = selinger.compare("SELECT id / (id - 3) FROM range(9)", runs=1, spark=spark)
    assert result.failed
    assert result.answer.same is None
    assert result.answer.method == "error"
    assert result.stock.error == result.selinger.error == "DIVIDE_BY_ZERO"
    assert result.stock.seconds == ()
    assert result.ratio is None
    assert "[DIVIDE_BY_ZERO] Division by zero." in str(result)
    assert "the same" not in str(result)


def test_compare_a_query_on_a_damaged_file(spark: SparkSession, tmp_path: Path) -> None:
    """A classic session gives this error as py4j's own."""
    path = tmp_path / "t"
    spark.range(100).coalesce(1).write.parquet(str(path))
    (part,) = path.glob("*.parquet")
    for sums in path.glob(".*.crc"):
        sums.unlink()
    df = spark.read.parquet(str(path))
    data = bytearray(part.read_bytes())
    data[4:40] = b"\xff" * 36
    part.write_bytes(data)
    result = selinger.compare(df, runs=1)
    assert result.failed, str(result)
    assert (result.stock.error or "").startswith("FAILED_READ_FILE")
    assert result.verdict.startswith(
        "The query fails, with stock Spark and with Selinger: [FAILED_READ_FILE"
    )
    assert "\tat " not in str(result)


def test_compare_gives_an_error_while_it_measures_as_ours(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Any, small: bool) -> float:
        spark.sql("SELECT id / 0 FROM range(3)").collect()
        return 1.0

    monkeypatch.setattr(comparison._Comparing, "_time", fails)
    with pytest.raises(selinger.QueryFailed, match=r"^\[DIVIDE_BY_ZERO\]"):
        selinger.compare(spark.range(3), runs=1)


def test_compare_needs_a_query(spark: SparkSession) -> None:
    for sql in ("CREATE TABLE x AS SELECT 1", "  -- c\nDROP TABLE x", "SET a=1", ""):
        with pytest.raises(selinger.NotAQuery):
            selinger.compare(sql, spark=spark)
    with pytest.raises(ValueError, match="at least 1"):
        selinger.compare("SELECT 1", runs=0, spark=spark)


def test_compare_tells_a_difference(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that changes the answer stands in for a wrong rewrite."""
    _break_selinger(monkeypatch)
    result = selinger.compare("SELECT current_timezone() AS tz FROM range(3)", 1, spark)
    assert result.answer.same is False
    assert "only stock Spark: Row(tz=" in result.answer.detail
    assert "only Selinger: Row(tz='Asia/Tokyo')" in result.answer.detail
    assert "DIFFERENT" in str(result)


def test_compare_tells_a_difference_in_a_big_answer(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    _break_selinger(monkeypatch)
    sql = "SELECT id, if(id = 77, current_timezone(), '') AS tz FROM range(500)"
    result = selinger.compare(sql, 1, spark, max_rows=100)
    assert (result.answer.same, result.answer.method) == (False, "digest")
    assert "hash low differs" in result.answer.detail
    assert result.stock.rows == 500


def test_compare_cannot_tell_when_stock_differs_from_itself(spark: SparkSession) -> None:
    result = selinger.compare("SELECT uuid() AS u FROM range(3)", 1, spark)
    assert result.answer.same is None
    assert "cannot be told" in str(result)


def test_compare_a_big_answer_is_not_collected(joined: DataFrame) -> None:
    result = selinger.compare(joined, **SMALL)  # type: ignore[arg-type]
    assert result.answer.same is True
    assert result.answer.method == "digest"
    assert result.stock.rows == 20_000
    assert "too many rows" in str(result)


def _break_selinger(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(spark: SparkSession, conf: dict[str, str]) -> Any:
        extra = {"spark.sql.session.timeZone": "Asia/Tokyo"} if "on" in conf.values() else {}
        return overridden(spark, {**conf, **extra})

    monkeypatch.setattr(comparison, "overridden", broken)


COLUMNS = {
    "integer": ("CAST(id AS INT)", "CAST(id + 1 AS INT)"),
    "null": ("IF(id = 3, NULL, id)", "IF(id = 4, NULL, id)"),
    "null and zero": ("IF(id = 0, NULL, id)", "id"),
    "string": ("CAST(id AS STRING)", "concat(id, ' ')"),
    "decimal": ("CAST(id AS DECIMAL(38, 10))", "CAST(id AS DECIMAL(38, 10)) + 0.0000000001BD"),
    "float": ("id / 7D", "id / 7D * (1D + 1E-7)"),
    "float swapped": ("CAST(id AS DOUBLE)", "CAST(9 - id AS DOUBLE)"),
    "NaN": ("IF(id = 1, DOUBLE('NaN'), 1D)", "IF(id = 1, NULL, 1D)"),
    "infinity": ("IF(id = 1, DOUBLE('inf'), 1D)", "IF(id = 1, DOUBLE('-inf'), 1D)"),
    "array": ("array(id, NULL)", "array(NULL, id)"),
    "array of strings": ("array('a, b')", "array('a', 'b')"),
    "struct": ("struct(id, 'x' AS y)", "struct(id, 'z' AS y)"),
    "map": ("map(id, 'a', -1L, 'b')", "map(id, 'b', -1L, 'a')"),
    "binary": ("CAST('ab' AS BINARY)", "CAST('ac' AS BINARY)"),
    "timestamp": ("timestamp_micros(id)", "timestamp_micros(id + 1)"),
    "interval": ("make_dt_interval(id)", "make_dt_interval(id + 1)"),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_digest_sees_a_difference_and_only_that(spark: SparkSession, case: str) -> None:
    one, other = COLUMNS[case]
    base = spark.range(10)
    same = digest(base.selectExpr("id AS i", f"{one} AS c"))
    backwards = base.orderBy(F.desc("id")).repartition(3)
    assert same.differs(digest(backwards.selectExpr("id AS i", f"{one} AS c")), 1e-9) == []
    assert same.differs(digest(base.selectExpr("id AS i", f"{other} AS c")), 1e-9)
    assert same.loosely == ()
    assert same.rows == 10


def test_digest_counts_duplicates(spark: SparkSession) -> None:
    one = spark.sql("SELECT * FROM VALUES (1), (1), (2)")
    other = spark.sql("SELECT * FROM VALUES (1), (2), (2)")
    assert digest(one).differs(digest(other), 1e-9)


def test_digest_ignores_last_bits_signed_zeros_and_map_order(spark: SparkSession) -> None:
    one = spark.sql("SELECT 0.1D + 0.2D, 0D, map('a', 1, 'b', 2)")
    other = spark.sql("SELECT 0.3D, -0D, map('b', 2, 'a', 1)")
    assert digest(one).differs(digest(other), 1e-9) == []


def test_digest_names_what_it_cannot_compare(spark: SparkSession) -> None:
    found = digest(spark.sql("SELECT 1 AS a, array(1.5D) AS f, parse_json('{}') AS v"))
    assert found.loosely == ("f", "v")


def test_digest_of_nothing(spark: SparkSession) -> None:
    empty = digest(spark.range(0).selectExpr("id", "CAST(id AS DOUBLE)"))
    assert empty.rows == 0
    assert empty.differs(empty, 1e-9) == []


@pytest.mark.usefixtures("no_broadcast")
def test_rows_are_the_same_on_and_off(spark: SparkSession, joined: DataFrame) -> None:
    with selinger.disabled(spark):
        stock = spark.createDataFrame(joined.alias("s").collect(), joined.schema)
    ours = spark.createDataFrame(joined.alias("o").collect(), joined.schema)
    assert_df_equality(stock, ours, ignore_row_order=True)
