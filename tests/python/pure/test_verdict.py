"""What a comparison claims, and what it does not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from selinger._spark import constant, error_condition, error_message, raising
from selinger._verdict import is_clear
from selinger.comparison import Answer, Comparison, Side
from selinger.errors import QueryFailed

SLOW = (2.0, 2.1, 2.05, 2.2)
FAST = (1.0, 1.1, 1.05, 1.2)


def comparison(stock: tuple[float, ...], selinger: tuple[float, ...], **more: Any) -> Comparison:
    facts: dict[str, Any] = {
        "query": "SELECT 1",
        "answer": Answer(True, "rows"),
        "stock": Side(stock, "Sort", 1),
        "selinger": Side(selinger, "Hash", 1),
        "decisions": (),
        "plan_diff": "-Sort\n+Hash",
        "same_plan": False,
    }
    return Comparison(**{**facts, **more})


def test_a_gain_is_claimed_with_its_certainty_and_comes_first() -> None:
    found = comparison(SLOW, FAST)
    assert found.faster == "Selinger"
    assert found.sure == pytest.approx(1 - 2 / 70)
    assert found.verdict == (
        "Selinger is 1.93 times as fast (1.08 s instead of 2.08 s), with the same answer: "
        "97.1 % sure, as the runs of the two do not overlap."
    )
    assert str(found).startswith(f"{found.verdict}\n\n")
    assert found._repr_html_().index(found.verdict) < found._repr_html_().index("<table>")


def test_a_loss_is_claimed_in_the_same_way() -> None:
    found = comparison(FAST, SLOW)
    assert found.faster == "stock Spark"
    assert found.verdict.startswith("Selinger is slower: it takes 1.93 times as long (2.08 s ")


def test_nothing_is_claimed_where_the_plan_is_the_same() -> None:
    found = comparison(SLOW, FAST, plan_diff="", same_plan=True)
    assert found.faster is None
    assert found.sure is None
    assert found.verdict == "Same plan: the difference is noise."
    assert "plan: unchanged" in str(found)
    assert "times as" not in str(found) + found._repr_html_()


def test_nothing_is_claimed_where_the_runs_overlap() -> None:
    found = comparison(SLOW, (*FAST[:3], 2.0))
    assert found.faster is None
    assert found.verdict == (
        "No difference shown: the runs overlap (stock Spark 2.00 s to 2.20 s, "
        "Selinger 1.00 s to 2.00 s)."
    )
    assert "times as" not in str(found) + found._repr_html_()


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_nothing_is_claimed_of_few_runs(runs: int) -> None:
    found = comparison(SLOW[:runs], FAST[:runs])
    assert found.faster is None
    assert found.verdict.startswith("Too few runs to prove a difference (")
    alike = comparison((1.0,) * runs, (1.01,) * runs)
    assert alike.verdict.startswith("Too few runs to prove a difference (")


def test_nothing_is_claimed_of_a_difference_that_nobody_notices() -> None:
    found = comparison((1.02, 1.021, 1.022, 1.023), (1.0, 1.001, 1.002, 1.003))
    assert found.faster is None
    assert found.verdict.startswith("No difference that matters: less than 3 % (")


def test_times_of_different_answers_do_not_count() -> None:
    found = comparison(SLOW, FAST, answer=Answer(False, "rows", "only Selinger: Row(a=1)"))
    assert found.faster is None
    assert found.verdict == "The answers are DIFFERENT, so the times do not count."


def test_a_plan_that_adaptive_execution_may_have_changed_is_judged_by_its_runs() -> None:
    found = comparison(SLOW, FAST, plan_diff="", same_plan=None)
    assert found.faster == "Selinger"
    assert "plan: unchanged before the run; what adaptive execution changed cannot be" in str(found)


def test_a_query_that_fails_on_both_sides_is_a_failed_query() -> None:
    why = "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"
    side = Side((), "", None, "DIVIDE_BY_ZERO", why)
    failed = Answer(None, "error", why)
    found = dataclasses.replace(comparison((), ()), stock=side, selinger=side, answer=failed)
    assert found.failed
    assert str(found) == f"The query fails, with stock Spark and with Selinger: {why}"
    assert "the same" not in str(found) + found._repr_html_()


def test_a_query_that_fails_on_one_side_says_on_which() -> None:
    bad = Side((), "", None, "OUT", "[OUT] It is out.")
    failed = Answer(False, "error", "stock Spark: no error\nSelinger: [OUT] It is out.")
    found = dataclasses.replace(comparison((), ()), selinger=bad, answer=failed)
    assert not found.failed
    assert found.verdict == "The query fails with Selinger only: [OUT] It is out."
    assert "<td>failed</td>" in found._repr_html_()


def test_measuring_ends_when_the_answer_is_clear() -> None:
    assert not is_clear([2.0] * 2, [1.0] * 2)
    assert not is_clear([1.0, 2.0], [1.5, 1.5])
    assert is_clear([1.0, 2.0, 3.0], [1.5, 1.5, 1.5])  # overlapping runs stay so
    assert not is_clear([2.0] * 3, [1.0] * 3)
    assert is_clear([2.0] * 4, [1.0] * 4)
    assert not is_clear([1.05] * 4, [1.0] * 4)


JAVA = """An error occurred while calling o41.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 \
times, most recent failure: Lost task 0.0 in stage 3.0 (TID 3) (host executor driver): \
org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file \
file:///t.parquet.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(Q.scala:863)
Caused by: java.io.IOException: bad
"""


def test_an_error_of_java_is_told_in_the_words_of_spark() -> None:
    error = Exception(JAVA)
    assert error_condition(error) == "FAILED_READ_FILE.NO_HINT"
    assert error_message(error) == (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///t.parquet.  "
        "SQLSTATE: KD001"
    )


def test_an_error_of_java_without_a_condition_is_not_named_after_py4j() -> None:
    class Py4JJavaError(Exception):
        pass

    error = Py4JJavaError(": java.lang.OutOfMemoryError: Not enough memory for table 7")
    assert error_condition(error).endswith("Not enough memory for table N")
    assert "Py4J" not in error_condition(error)


def test_an_error_of_java_becomes_one_of_ours() -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(QueryFailed, match=r"^No memory\.$"), raising(QueryFailed):
        raise PySparkException("No memory.\n\nJVM stacktrace:\norg.apache.Thing")


@pytest.mark.parametrize("text", ["it's", "C:\\data", "${a}", "é", "a\nb", '"', "`t`", "%41", "?;"])
def test_no_parser_can_misread_a_constant(text: str) -> None:
    written = constant(text)
    assert written.startswith("CAST(X'")
    assert bytes.fromhex(written.split("'")[1]).decode() == text
