from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import selinger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.mark.usefixtures("no_broadcast")
def test_a_report_has_plans_decisions_settings_and_versions(joined: DataFrame) -> None:
    text = str(selinger.report(joined))
    for heading in ("Versions", "Settings of Spark that are set", "Decisions", "Plan of stock"):
        assert f"\n## {heading}" in text
    ours, _, stock = text.partition("## Plan of stock Spark")
    assert "ShuffledHashJoin Inner" in ours
    assert "SortMergeJoin Inner" in stock
    assert "ShuffledHashJoin" not in stock
    assert "- selectJoinOperator facts ⋈ keys: changed, HASH_BUILD_CHEAPEST" in text
    assert "spark.sql.autoBroadcastJoinThreshold: -1" in text
    assert "rows rows" not in text


def test_a_report_has_no_literal_no_path_and_no_location(
    spark: SparkSession, joined: DataFrame, tmp_path: Path
) -> None:
    named = joined.where("name <> 'Sesam' AND v NOT IN (7654321, 7654322)").selectExpr(
        "'Oeffne'", "concat(name, 'Dich')", "k"
    )
    with selinger.settings(spark, stats_location=str(tmp_path / "Keller")):
        text = selinger.report(named).text
    for secret in ("Sesam", "Oeffne", "Dich", "765432", "Keller", str(tmp_path)):
        assert secret not in text
    assert "spark.selinger.stats.location: (set)" in text
    assert "facts" in text


def test_a_report_is_written_to_a_file(spark: SparkSession, tmp_path: Path) -> None:
    made = selinger.report(spark.range(3), tmp_path / "report.md")
    assert made.path == tmp_path / "report.md"
    assert made.path.read_text("utf-8") == made.text


def test_a_report_without_the_provider_says_what_is_missing(
    spark: SparkSession, joined: DataFrame
) -> None:
    key = "spark.sql.extendedExplainProviders"
    before = spark.conf.get(key)
    assert before is not None
    spark.conf.unset(key)
    try:
        with pytest.raises(selinger.ExplainMissing, match="report"):
            selinger.report(joined)
    finally:
        spark.conf.set(key, before)
