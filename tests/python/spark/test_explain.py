from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import selinger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROVIDERS = "spark.sql.extendedExplainProviders"


@pytest.mark.usefixtures("no_broadcast")
def test_explain_gives_the_decision_about_a_join(joined: DataFrame) -> None:
    explanation = selinger.explain(joined)
    (decision,) = [d for d in explanation.decisions if d.rule == "selectJoinOperator"]
    assert decision.node.startswith("Join Inner")
    assert decision.outcome == "changed"
    assert decision.stock is not None
    assert "SortMergeJoin" in decision.stock
    assert decision.chosen is not None
    assert "ShuffledHashJoin" in decision.chosen
    assert decision.numbers
    assert {n.origin for n in decision.numbers} <= {
        "exact", "measured", "sampled", "derived", "default",
    }  # fmt: skip
    assert "ShuffledHashJoin" in explanation.plan
    assert "Selinger" not in explanation.plan
    assert "== Extended Information (Selinger) ==" in explanation.text
    assert decision.why in " ".join(str(explanation).split()) or decision.reason in str(explanation)
    html = explanation._repr_html_()
    assert f"<p>{decision.why} <code>{decision.reason}</code></p>" in html
    assert html.index(explanation.verdict) < html.index("<li>") < html.index("<details>")
    assert "plan, drawn" in html
    assert "<b>facts ⋈ keys: " in html


@pytest.mark.usefixtures("no_broadcast")
def test_explain_prints_what_changed_and_everything_on_request(
    spark: SparkSession, joined: DataFrame
) -> None:
    brief, everything = selinger.explain(joined), selinger.explain(joined, all=True)
    # Over Connect each call plans anew, so the times to read differ.
    assert [d.title for d in brief.decisions] == [d.title for d in everything.decisions]
    assert str(brief).splitlines()[0] == brief.verdict
    assert brief.verdict.startswith("1 of 1 join changed")
    assert str(brief).count("\n* ") == 1
    assert "To undo it: SET " in str(brief)
    assert str(everything).count("\n* ") == len(everything.decisions)
    with selinger.settings(spark, explain_all=True):
        again = str(selinger.explain(joined))
        assert again.count("\n* ") == str(everything).count("\n* ")


def test_explain_says_why_nothing_was_decided(spark: SparkSession) -> None:
    explanation = selinger.explain(spark.range(3))
    assert explanation.decisions == ()
    assert "the query has no join" in str(explanation)
    if os.environ.get("SELINGER_TEST_CONNECT") != "1":
        # Over Connect the result of a command comes back as rows to query.
        assert selinger.explain(spark.sql("SHOW TABLES")).verdict == ""


def test_explain_leaves_settings_and_output_as_they_were(
    spark: SparkSession, joined: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    selinger.explain(joined)
    assert spark.conf.get("spark.selinger.explain.format", None) is None
    assert capsys.readouterr().out == ""
    spark.conf.set("spark.selinger.explain.format", "text")
    try:
        selinger.explain(joined)
        assert spark.conf.get("spark.selinger.explain.format") == "text"
    finally:
        spark.conf.unset("spark.selinger.explain.format")


def test_explain_takes_sql(spark: SparkSession) -> None:
    sql = "SELECT * FROM range(10) a JOIN range(5) b ON a.id = b.id"
    assert [d.rule for d in selinger.explain(sql, spark=spark).decisions] == ["selectJoinOperator"]
    assert selinger.explain(sql).plan
    with pytest.raises(selinger.NotAQuery, match="compared or explained"):
        selinger.explain("DROP TABLE t", spark=spark)
    with pytest.raises(selinger.QueryFailed, match=r"^\[TABLE_OR_VIEW_NOT_FOUND\]"):
        selinger.explain("SELECT * FROM no_such_table", spark=spark)


def test_explain_when_off_has_no_decisions(spark: SparkSession, joined: DataFrame) -> None:
    with selinger.disabled(spark):
        explanation = selinger.explain(joined)
    assert explanation.decisions == ()
    assert explanation.mode == "off"
    assert "Join" in explanation.plan


@pytest.mark.usefixtures("no_broadcast")
def test_explain_when_advising_leaves_the_plan_alone(
    spark: SparkSession, joined: DataFrame
) -> None:
    with selinger.settings(spark, mode="advise"):
        explanation = selinger.explain(joined)
    assert explanation.mode == "advise"
    assert [d.outcome for d in explanation.decisions if d.rule == "selectJoinOperator"] == [
        "advised"
    ]
    assert "SortMergeJoin" in explanation.plan
    assert "ShuffledHashJoin" not in explanation.plan


def test_explain_without_the_provider_names_the_conf(
    spark: SparkSession, joined: DataFrame
) -> None:
    before = spark.conf.get(PROVIDERS)
    assert before is not None
    spark.conf.unset(PROVIDERS)
    try:
        with pytest.raises(selinger.ExplainMissing, match=PROVIDERS):
            selinger.explain(joined)
    finally:
        spark.conf.set(PROVIDERS, before)
    assert spark.conf.get("spark.selinger.explain.format", None) is None


@pytest.mark.usefixtures("no_broadcast")
def test_explain_after_running(joined: DataFrame) -> None:
    assert len(joined.collect()) == 20_000
    explanation = selinger.explain(joined)
    decisions = explanation.decisions
    assert [d.rule for d in decisions].count("selectJoinOperator") == 1
    if os.environ.get("SELINGER_TEST_CONNECT") != "1":
        assert {(i.name, i.actual) for i in explanation.inputs} == {
            ("facts", 20_000),
            ("keys", 500),
        }
        assert explanation.truth in str(explanation)


def test_a_session_without_selinger_is_told_so(tmp_path: Path) -> None:
    """In a process of its own: a session made first without us, then asked for with us."""
    script = tmp_path / "script.py"
    script.write_text(_WITHOUT)
    env = {**os.environ, "PYTHONPATH": str(Path(selinger.__file__).parents[1])}
    env["SPARK_TESTING"] = "1"  # a Connect server takes a free port, beside the tests' own
    told = subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr[-3000:]
    assert told.stdout.split() == ["early", "late", "restarted"]
    assert "SQLQueryContextLogger" not in told.stderr  # our message is enough


_WITHOUT = """
import os
import selinger
from pyspark.sql import SparkSession

def builder():
    made = SparkSession.builder
    if os.environ.get("SELINGER_TEST_CONNECT") == "1":
        made = made.remote("local[1]")
    else:
        made = made.master("local[1]")
    return made.config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")

def check(spark, label):
    calls = [selinger.status, selinger.rules, selinger.settings, selinger.disabled,
             lambda s: selinger.explain(s.range(3)), lambda s: selinger.compare(s.range(3))]
    for call in calls:
        try:
            call(spark)
        except selinger.NotLoaded as error:
            text = str(error)
            assert "spark.sql.extensions is not set, or was set too late" in text, text
            assert "the jar is missing" in text and "could not be loaded" in text, text
        else:
            raise SystemExit(f"{label}: no error")
    print(label)

check(builder().getOrCreate(), "early")
check(selinger.configure(builder()).getOrCreate(), "late")
if os.environ.get("SELINGER_TEST_CONNECT") == "1":
    print("restarted")  # a Connect session's server stays as it is
else:
    SparkSession.getActiveSession().stop()
    check(selinger.configure(builder()).getOrCreate(), "restarted")
"""
