from __future__ import annotations

import pytest
import selinger
from selinger.session import Setting, conf_text, knob_of, resolve

KEYS = (
    "spark.selinger.mode",
    "spark.selinger.failOnError",
    "spark.selinger.explain.format",
    "spark.selinger.planning.budgetMs",
    "spark.selinger.join.broadcastMaxBytes",
    "spark.selinger.cbo.weight",
    "spark.selinger.selectJoinOperator.enabled",
)
TABLE = tuple(Setting(knob_of(key), key, "1", "1", "c", "u", "d") for key in KEYS)


@pytest.mark.parametrize(
    ("knob", "key"),
    [
        ("mode", "spark.selinger.mode"),
        ("fail_on_error", "spark.selinger.failOnError"),
        ("explain_format", "spark.selinger.explain.format"),
        ("planning_budget_ms", "spark.selinger.planning.budgetMs"),
        ("join_broadcast_max_bytes", "spark.selinger.join.broadcastMaxBytes"),
        ("cbo_weight", "spark.selinger.cbo.weight"),
        ("select_join_operator", "spark.selinger.selectJoinOperator.enabled"),
        ("select_join_operator_enabled", "spark.selinger.selectJoinOperator.enabled"),
        ("spark.selinger.cbo.weight", "spark.selinger.cbo.weight"),
    ],
)
def test_knob_finds_its_key(knob: str, key: str) -> None:
    assert resolve(knob, TABLE) == key


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("broadcast_max_bytes", "join_broadcast_max_bytes"),
        ("cbo_wieght", "cbo_weight"),
        ("selectJoinOperator", "select_join_operator"),
        ("weight", "cbo_weight"),
        ("bytes", "join_broadcast_max_bytes"),
        ("budget_ms", "planning_budget_ms"),
    ],
)
def test_unknown_knob_names_close_ones(wrong: str, meant: str) -> None:
    with pytest.raises(selinger.UnknownSetting) as caught:
        resolve(wrong, TABLE)
    assert meant in caught.value.suggestions[wrong]
    assert f"{wrong!r} (did you mean" in str(caught.value)


def test_unknown_knob_without_close_ones() -> None:
    with pytest.raises(selinger.UnknownSetting) as caught:
        resolve("zzz", TABLE)
    assert caught.value.suggestions == {"zzz": ()}


def test_values_are_written_as_spark_has_them() -> None:
    assert [conf_text(value) for value in (True, False, 3, 0.5, "on")] == [
        "true",
        "false",
        "3",
        "0.5",
        "on",
    ]
