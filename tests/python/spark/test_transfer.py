"""Statistics out of one session and into another, from Python, classic and over Connect."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
import selinger
from selinger import cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

QUERY = (
    "SELECT n.name, count(*) FROM moves m JOIN names n ON m.k = n.k WHERE m.v < 500 GROUP BY n.name"
)


@pytest.fixture
def data(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Give a folder with files of two relations that no session knows by name."""
    spark.range(20_000).selectExpr("id % 500 AS k", "id AS v").write.parquet(
        str(tmp_path / "moves")
    )
    names = spark.range(500).selectExpr("id AS k", "concat('n', id) AS name")
    names.write.orc(str(tmp_path / "names"))
    yield tmp_path
    selinger.forget_imported(spark)


@pytest.fixture
def file(spark: SparkSession, data: Path) -> Path:
    """Give their statistics."""
    target = data / "stats.json"
    selinger.export_stats(spark, [data / "moves", str(data / "names")], target)
    return target


def _decisions(spark: SparkSession, query: str) -> list[tuple[str | None, ...]]:
    found = selinger.explain(spark.sql(query)).decisions
    return [(d.rule, d.node, d.outcome, d.chosen) for d in found if d.outcome != "informed"]


def test_what_is_exported(spark: SparkSession, data: Path) -> None:
    target = data / "out.json"
    written = selinger.export_stats(spark, {"lake.moves": data / "moves"}, target)
    assert [(r.name, r.rows, r.kind) for r in written] == [("lake.moves", 20_000, "exported")]
    assert "lake.moves" in str(written)
    assert "<table" in written._repr_html_()
    relation = json.loads(target.read_text(encoding="utf-8"))["relations"][0]
    assert relation["columns"]["v"]["max"] == {"value": 19_999, "origin": "exact"}
    assert sorted(p.name for p in data.iterdir()) == ["moves", "names", "out.json"]


def test_values_are_left_out(spark: SparkSession, data: Path) -> None:
    path, target = str(data / "skewed"), data / "skewed.json"
    spark.range(20_000).selectExpr("if(id % 3 = 0, concat('r', id), 'secret') AS s").write.parquet(
        path
    )
    selinger.export_stats(spark, path, target)
    assert "secret" in target.read_text(encoding="utf-8")
    selinger.export_stats(spark, path, target, values=False)
    assert "secret" not in target.read_text(encoding="utf-8")


def test_plans_are_those_of_the_data(spark: SparkSession, data: Path, file: Path) -> None:
    with selinger.settings(spark, sample_predicates=False):
        selinger.export_stats(spark, [data / "moves", data / "names"], file)
        spark.read.parquet(str(data / "moves")).createOrReplaceTempView("moves")
        spark.read.orc(str(data / "names")).createOrReplaceTempView("names")
        expected = _decisions(spark, QUERY)
        for view in ("moves", "names"):
            spark.catalog.dropTempView(view)
        imported = selinger.import_stats(spark, file)
        assert [(r.name, r.rows, r.kind) for r in imported] == [
            ("moves", 20_000, "view"),
            ("names", 500, "view"),
        ]
        assert _decisions(spark, QUERY) == expected


def test_scale(spark: SparkSession, file: Path) -> None:
    for scale, rows in ((1000, {"moves": 2e7, "names": 5e5}), ({"moves": 10}, {"moves": 2e5})):
        imported = {r.name: r.rows for r in selinger.import_stats(spark, file, scale=scale)}
        assert imported == {"moves": 20_000, "names": 500} | rows


def test_a_query_without_data_says_so(spark: SparkSession, file: Path) -> None:
    from pyspark.errors import UnsupportedOperationException

    selinger.import_stats(spark, file, tables=["moves"])
    assert [r.name for r in selinger.imported_stats(spark)] == ["moves"]
    with pytest.raises(UnsupportedOperationException, match="moves was planned from imported"):
        spark.table("moves").collect()


def test_plans_are_compared_though_nothing_runs(spark: SparkSession, file: Path) -> None:
    selinger.import_stats(spark, file, scale=1000)
    result = selinger.compare(QUERY, runs=1, spark=spark)
    assert result.answer.same is None
    assert result.answer.method == "none"
    assert result.decisions
    assert "Scan" in result.stock.plan
    assert "Scan" in result.selinger.plan
    assert str(result).startswith("Nothing was run: ")


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, {"moves": 0}])
def test_scales_that_mean_nothing(spark: SparkSession, file: Path, scale: Any) -> None:
    with pytest.raises(selinger.StatisticsUnusable, match="positive number"):
        selinger.import_stats(spark, file, scale=scale)
    assert not selinger.imported_stats(spark)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-200], "not JSON"),
        (lambda text: "", "not JSON"),
        (lambda text: "PAR1" + text, "not JSON"),
        (lambda text: text.replace('"version": 1', '"version": 7'), "version is 7"),
        (lambda text: text.replace("selinger-statistics", "other"), "format"),
        (lambda text: text.replace('"type":"long"', '"type":"longest"'), "schema"),
    ],
)
def test_files_that_cannot_be_used(
    spark: SparkSession, file: Path, change: Any, message: str
) -> None:
    before = file.read_text(encoding="utf-8")
    assert change(before) != before
    file.write_text(change(before), encoding="utf-8")
    with pytest.raises(selinger.StatisticsUnusable, match=message):
        selinger.import_stats(spark, file)
    assert not selinger.imported_stats(spark)
    assert not spark.catalog.tableExists("moves")


def test_other_mistakes(spark: SparkSession, data: Path, file: Path) -> None:
    with pytest.raises(selinger.StatisticsUnusable, match="neither a table"):
        selinger.export_stats(spark, "no_such_table", data / "x.json")
    with pytest.raises(selinger.StatisticsUnusable, match="has no nowhere"):
        selinger.import_stats(spark, file, tables=["nowhere"])
    with pytest.raises(TypeError):
        selinger.import_stats(spark, file, tables="moves")
    with pytest.raises(TypeError):
        selinger.forget_imported(spark, "moves")
    with pytest.raises(FileNotFoundError):
        selinger.import_stats(spark, data / "none.json")
    with pytest.raises(OSError, match="nowhere"):
        selinger.export_stats(spark, data / "moves", data / "nowhere" / "x.json")
    assert not (data / "x.json").exists()


def test_a_table_with_data(spark: SparkSession, data: Path, file: Path) -> None:
    spark.read.parquet(str(data / "moves")).createOrReplaceTempView("moves")
    try:
        with pytest.raises(selinger.StatisticsUnusable, match="override"):
            selinger.import_stats(spark, file)
        assert not spark.catalog.tableExists("names")
        kinds = {r.name: r.kind for r in selinger.import_stats(spark, file, 10, override=True)}
        assert kinds == {"moves": "override", "names": "view"}
        assert spark.table("moves").count() == 20_000
        facts = selinger.explain(
            spark.sql("SELECT * FROM moves a JOIN moves b USING (k)")
        ).decisions
        assert any(d.reason == "STATISTICS_IMPORTED" for d in facts)
        assert {r.name for r in selinger.forget_imported(spark)} == {"moves", "names"}
        assert spark.table("moves").count() == 20_000
    finally:
        spark.catalog.dropTempView("moves")


def test_sessions_are_apart(spark: SparkSession, file: Path) -> None:
    selinger.import_stats(spark, file)
    other = spark.newSession()
    assert not selinger.imported_stats(other)
    assert not other.catalog.tableExists("moves")


def test_spark_writes_and_reads_files_with_a_scheme(
    spark: SparkSession, data: Path, file: Path
) -> None:
    target = (data / "by-spark.json").as_uri().replace("file:/", "file:///", 1)
    target = target.replace("file://///", "file:///")
    written = selinger.export_stats(spark, data / "moves", target)
    assert [r.name for r in written] == ["moves"]
    assert [r.rows for r in selinger.import_stats(spark, target)] == [20_000]


def test_ninety_nine_wide_tables(spark: SparkSession, data: Path, file: Path) -> None:
    """A file of a real warehouse fits through the door."""
    text = json.loads(file.read_text(encoding="utf-8"))
    model = text["relations"][0]
    known = model["columns"]["v"]
    model["schema"]["fields"] = [
        {"name": f"column_{i}", "type": "long", "nullable": True, "metadata": {}} for i in range(30)
    ]
    model["columns"] = {f"column_{i}": known for i in range(30)}
    text["relations"] = [model | {"name": f"table_{i}"} for i in range(99)]
    file.write_text(json.dumps(text), encoding="utf-8")
    assert len(selinger.import_stats(spark, file, scale=7)) == 99
    query = "SELECT count(*) FROM table_0 a JOIN table_98 b ON a.column_0 = b.column_29"
    facts = selinger.explain(spark.sql(query)).decisions
    assert sum(d.reason == "STATISTICS_IMPORTED" for d in facts) == 2


def test_cli(
    spark: SparkSession,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cli, "_session", lambda _: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    target = str(data / "cli.json")
    moves, names = str(data / "moves"), str(data / "names")
    assert cli.main(["export-stats", target, moves, names, "--no-values"]) == 0
    assert "20,000 rows" in capsys.readouterr().out
    assert (
        cli.main(["explain", QUERY, "--stats", target, "--scale", "1000", "--plan", "--all"]) == 0
    )
    out = capsys.readouterr().out
    assert "STATISTICS_IMPORTED" in out
    assert "imported-statistics" in out
    assert cli.main(["explain", "SELECT * FROM nowhere", "--stats", target]) == 3
    assert cli.main(["explain", QUERY, "--stats", target, "--scale", "0"]) == 3
    assert "nowhere" in capsys.readouterr().err
