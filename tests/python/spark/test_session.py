from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import selinger
from selinger.errors import AnalyzeFailed
from selinger.session import call_table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

PREFIX = "spark.selinger."


def snapshot(spark: SparkSession) -> dict[str, str]:
    """Give all that the session has set of ours."""
    return {key: value for key, value in spark.conf.getAll.items() if key.startswith(PREFIX)}


def test_status(spark: SparkSession) -> None:
    state = selinger.status(spark)
    assert state.active
    assert state.reason == ""
    assert state.mode == "on"
    assert state.explain_provider
    assert state.spark_version == spark.version
    assert spark.version.startswith(f"{state.built_for}.")
    assert state.version
    assert "active" in str(state)
    assert "<td>active</td><td>true</td>" in state._repr_html_()


def test_rules(spark: SparkSession) -> None:
    rules = selinger.rules(spark)
    assert {"selectJoinOperator", "readFooterStatistics"} <= {rule.rule for rule in rules}
    assert all(rule.description for rule in rules)
    assert {rule.rule for rule in rules if not rule.enabled} == {"shareEstimates"}
    assert all(rule.setting == f"{PREFIX}{rule.rule}.enabled" for rule in rules)
    assert all(0 <= rule.fired <= rule.calls and rule.ms >= 0 for rule in rules)
    assert "selectJoinOperator" in str(rules)
    assert "<table>" in rules._repr_html_()


def test_rule_switch_shows_in_rules(spark: SparkSession) -> None:
    with selinger.settings(spark, select_join_operator=False):
        states = {rule.rule: rule.enabled for rule in selinger.rules(spark)}
        assert states["selectJoinOperator"] is False
        assert states["readFooterStatistics"] is True
    assert {rule.rule for rule in selinger.rules(spark) if not rule.enabled} == {"shareEstimates"}


def test_settings_are_listed_with_their_knobs(spark: SparkSession) -> None:
    shown = selinger.settings(spark)
    knobs = {setting.knob: setting for setting in shown}
    assert len(knobs) == len(list(shown)), "two settings share a knob"
    assert knobs["mode"].key == "spark.selinger.mode"
    assert shown["cbo_weight"].value == shown["cbo_weight"].default
    assert "join_broadcast_max_bytes" in str(shown)
    assert "<table>" in shown._repr_html_()


def test_settings_without_knobs_is_a_block_that_changes_nothing(spark: SparkSession) -> None:
    before = snapshot(spark)
    with selinger.settings(spark) as shown:
        assert snapshot(spark) == before
        assert shown["mode"].value == "on"
    assert snapshot(spark) == before


def test_settings_change_and_restore(spark: SparkSession) -> None:
    before = snapshot(spark)
    assert "spark.selinger.cbo.weight" not in before
    with selinger.settings(
        spark, mode="advise", cbo_weight=0.25, join_broadcast_max_bytes=1 << 20
    ) as now:
        assert selinger.status(spark).mode == "advise"
        assert float(now["cbo_weight"].value) == 0.25
        assert now["join_broadcast_max_bytes"].value.startswith(str(1 << 20))
    assert snapshot(spark) == before


def test_settings_restore_a_value_that_was_set(spark: SparkSession) -> None:
    spark.conf.set("spark.selinger.cbo.weight", "0.125")
    try:
        with selinger.settings(spark, cbo_weight=0.5):
            assert spark.conf.get("spark.selinger.cbo.weight") == "0.5"
        assert spark.conf.get("spark.selinger.cbo.weight") == "0.125"
        with selinger.settings(spark, cbo_weight=None) as now:
            assert now["cbo_weight"].value == now["cbo_weight"].default
        assert spark.conf.get("spark.selinger.cbo.weight") == "0.125"
    finally:
        spark.conf.unset("spark.selinger.cbo.weight")


def test_settings_nest_and_one_can_be_used_again(spark: SparkSession) -> None:
    before = snapshot(spark)
    outer = selinger.settings(spark, mode="advise")
    with outer:
        with selinger.disabled(spark):
            assert selinger.status(spark).mode == "off"
            with outer:
                assert selinger.status(spark).mode == "advise"
            assert selinger.status(spark).mode == "off"
        assert selinger.status(spark).mode == "advise"
    assert snapshot(spark) == before


def test_settings_restore_after_an_exception(spark: SparkSession) -> None:
    before = snapshot(spark)
    with pytest.raises(ZeroDivisionError), selinger.disabled(spark):
        raise ZeroDivisionError
    assert snapshot(spark) == before


def test_settings_made_but_not_entered_change_nothing(spark: SparkSession) -> None:
    before = snapshot(spark)
    selinger.settings(spark, mode="off")
    assert snapshot(spark) == before


def test_unknown_setting_is_refused_at_once(spark: SparkSession) -> None:
    before = snapshot(spark)
    with pytest.raises(selinger.UnknownSetting, match="join_broadcast_max_bytes"):
        selinger.settings(spark, mode="off", broadcast_max_bytes=1)
    assert snapshot(spark) == before


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("mode", "sometimes"),
        ("cbo_weight", 1.5),
        ("cbo_weight", "heavy"),
        ("select_join_operator", "maybe"),
        ("join_broadcast_max_bytes", "many"),
        ("explain_format", "xml"),
    ],
)
def test_bad_value_leaves_nothing_changed(
    spark: SparkSession, knob: str, value: str | float
) -> None:
    before = snapshot(spark)
    other = "advise" if knob != "mode" else None
    with (
        pytest.raises(selinger.InvalidSetting) as caught,
        selinger.settings(spark, **{"mode": other, knob: value}),
    ):
        pytest.fail("the block was entered")
    assert snapshot(spark) == before
    assert caught.value.knob == knob
    assert f"does not take {str(value)!r}" in str(caught.value)


def test_a_size_may_have_a_unit(spark: SparkSession) -> None:
    with selinger.settings(spark, join_broadcast_max_bytes="1m"):
        assert spark.conf.get("spark.selinger.join.broadcastMaxBytes") == "1m"


@pytest.mark.parametrize("kind", [selinger.QueryFailed, AnalyzeFailed])
def test_a_table_function_that_fails_raises_an_error_of_ours(
    spark: SparkSession, tmp_path: Path, kind: type[selinger.SelingerError]
) -> None:
    """In a classic session, a damaged file raises what PySpark has no type for."""
    (tmp_path / "broken.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    broken = spark.read.schema("id BIGINT").parquet(f"{tmp_path}/broken.parquet")
    broken.createOrReplaceTempView("broken")
    with pytest.raises(kind) as caught:
        # What would be the arguments is a comment then.
        call_table(spark, "broken --", failing=kind)
    spark.catalog.dropTempView("broken")
    assert "broken.parquet" in str(caught.value)
    assert "Py4JJavaError" not in str(caught.value)
    assert "org.apache" not in str(caught.value)
