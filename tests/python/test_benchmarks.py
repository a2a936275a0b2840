"""The logic of the benchmarks: no JVM, no data, no clock."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from benchmarks import skewed
from benchmarks.chart import ratio_chart
from benchmarks.client import Client
from benchmarks.compare import OTHER_ENGINE, SAME_ENGINE, compare_rows, same_keys
from benchmarks.data import slices
from benchmarks.decisions import read_decisions
from benchmarks.demo import change_table
from benchmarks.figures import rate, ratio_spread, summarise
from benchmarks.judge import Answer, judge, sum_up_answers
from benchmarks.jvm import operator_counts, wanted_metrics
from benchmarks.plancost import added, quantile
from benchmarks.plancost import summarise as summarise_plan_cost
from benchmarks.planning import planning_table
from benchmarks.planning import summarise as summarise_planning
from benchmarks.plantext import operator_change, read_plan, side_by_side
from benchmarks.profiles import COMMON, make_profile, public_text
from benchmarks.qerror import estimates_table, percentile, q_error
from benchmarks.qerror import summarise as summarise_estimates
from benchmarks.queries import choose, load_queries, to_spark, tokens, without_limit
from benchmarks.report import page
from benchmarks.state import State, configuration_key
from benchmarks.table import results_table
from benchmarks.ties import compare_files
from benchmarks.yardstick import Yardstick

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# ---- dialect


def test_rewriting_keeps_every_character_but_quotes() -> None:
    sql = 'select \'it\'\'s "x"\', "a ""b" from t -- "c"\n where s = \'a\\b\''
    assert "".join(token.text for token in tokens(sql)) == sql
    assert to_spark(sql) == "select 'it\\'s \"x\"', `a \"b` from t  \n where s = 'a\\\\b'"


def test_every_query_of_the_suites_has_a_name_and_no_double_quoted_name_left() -> None:
    for suite, count in (("tpcds", 99), ("tpch", 22)):
        queries = load_queries(suite)
        assert list(queries) == [f"q{number:02d}" for number in range(1, count + 1)]
        for query in queries.values():
            assert not [token for token in tokens(query.spark) if token.kind == "name"]
            assert not query.spark.endswith(";")


def test_only_the_outermost_limit_goes() -> None:
    assert without_limit("select * from (select 1 limit 5) t order by 1\n LIMIT 100 ") == (
        "select * from (select 1 limit 5) t order by 1"
    )
    assert without_limit("select * from (select 1 limit 5)") is None
    assert without_limit("select 'limit 5'") is None
    assert without_limit("select 1 limit 5 -- all") == "select 1"


def test_choosing_refuses_what_does_not_exist() -> None:
    queries = load_queries("tpch")
    assert [query.name for query in choose(queries, "q3,1-2")] == ["q01", "q02", "q03"]
    with pytest.raises(ValueError, match="q23"):
        choose(queries, "q23")
    with pytest.raises(ValueError, match="not a query name"):
        choose(queries, "first")


# ---- comparison


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ([(1, "a"), (2, "b")], [(2, "b"), (1, "a")], True),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)], False),
        ([(1,)], [(1,), (1,)], False),
        ([(None,)], [(0,)], False),
        ([(None, 1.5)], [(None, 1.5)], True),
        ([(0.1 + 0.2,)], [(0.3,)], True),
        ([(1.0,)], [(1.001,)], False),
        ([(0.0,)], [(-0.0,)], True),
        ([(float("nan"),)], [(float("nan"),)], True),
        ([(float("nan"),)], [(1.0,)], False),
        ([(None,), (1.0,)], [(1.0,), (None,)], True),
        ([(Decimal("1.00"),)], [(Decimal("1.0"),)], True),
        ([(Decimal("1.00"),)], [(Decimal("1.01"),)], False),
        ([(Decimal("12345678901234567.01"),)], [(Decimal("12345678901234567.02"),)], False),
        ([("1",)], [(1,)], False),
        ([], [], True),
    ],
)
def test_rows_are_compared_as_a_multiset(left: Any, right: Any, equal: bool) -> None:
    assert compare_rows(left, right, SAME_ENGINE).equal is equal
    assert compare_rows(right, left, SAME_ENGINE).equal is equal


def test_decimals_against_floats_may_differ_by_their_last_place() -> None:
    assert compare_rows([(Decimal("0.333333"),)], [(1 / 3,)], OTHER_ENGINE).equal
    assert not compare_rows([(Decimal("0.333433"),)], [(1 / 3,)], OTHER_ENGINE).equal


def test_floats_that_sort_differently_still_find_their_partner() -> None:
    left = [("k", 1.0, 5.0), ("k", 1.0 + 1e-13, 4.0)]
    right = [("k", 1.0 + 1e-13, 5.0), ("k", 1.0, 4.0)]
    assert compare_rows(left, right, SAME_ENGINE).equal


def test_a_large_group_of_floats_with_one_wrong_value_differs() -> None:
    left = [(float(number),) for number in range(5000)]
    right = [*left[:-1], (0.5,)]
    found = compare_rows(left, right, SAME_ENGINE)
    assert not found.equal
    assert found.only_left


def test_difference_says_what_is_missing() -> None:
    found = compare_rows([("a",), ("b",)], [("a",), ("c",)], SAME_ENGINE)
    assert (found.only_left, found.only_right) == ((("b",),), (("c",),))


def test_sort_keys_are_compared_without_the_other_columns() -> None:
    assert same_keys([(1, "x"), (2, "y")], [(2, "q"), (1, "p")], [0], SAME_ENGINE)
    assert not same_keys([(1, "x")], [(2, "x")], [0], SAME_ENGINE)


def writer(rows: str) -> Callable[[Path], bool]:
    def write(path: Path) -> bool:
        duckdb.sql(f"COPY (SELECT * FROM (VALUES {rows}) t(c0, c1)) TO '{path}'")
        return True

    return write


WHOLE = "(1, 'a'), (1, 'b'), (1, 'c')"


@pytest.mark.parametrize(
    ("theirs", "whole", "order", "outcome"),
    [
        ([(1, "a")], WHOLE, (0,), "equal"),
        ([(1, "b")], WHOLE, (0,), "ties"),
        ([(1, "b")], "(1, 'a'), (1, 'b'), (1, 'd')", (0,), "different"),
        ([(1, "b")], "(1, 'a'), (1, 'b')", (0,), "different"),
        ([(2, "b")], WHOLE, (0,), "different"),
        ([(1, "b")], WHOLE, (0, 1), "different"),
        ([(1, "a"), (1, "b")], WHOLE, (0,), "different"),
        ([(1, "b")], None, (0,), "different"),
    ],
)
def test_ties_are_told_from_differences(
    tmp_path: Path, theirs: Any, whole: str | None, order: tuple[int, ...], outcome: str
) -> None:
    answers = {
        "stock": Answer([(1, "a")], writer(WHOLE), order),
        "selinger": Answer(theirs, writer(whole) if whole else None, order),
    }
    assert judge(answers, tmp_path)["selinger"].outcome == outcome
    assert not list(tmp_path.iterdir())


def test_whole_results_are_compared_part_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.ties.PART_ROWS", 10)
    left, right, wrong = (tmp_path / f"{name}.parquet" for name in ("l", "r", "w"))
    rows = "SELECT i::INTEGER c0, (i / 3)::DOUBLE c1 FROM range(100) t(i)"
    duckdb.sql(f"COPY ({rows}) TO '{left}'")
    duckdb.sql(f"COPY (SELECT c0::DECIMAL(12,2) c0, c1 FROM ({rows}) ORDER BY 1 DESC) TO '{right}'")
    duckdb.sql(f"COPY (SELECT c0, if(c0 = 7, 0.0, c1) c1 FROM ({rows})) TO '{wrong}'")
    assert compare_files(left, right, SAME_ENGINE).equal
    assert not compare_files(left, wrong, SAME_ENGINE).equal


def test_a_failure_is_neither_equal_nor_forgotten() -> None:
    answer = Answer([(1,)], None)
    row = sum_up_answers({"stock": answer}, {}, {"selinger": "TIMEOUT: not done after 5 s"})
    assert row["equal"] is None
    assert row["failures"] == {"selinger": "TIMEOUT: not done after 5 s"}


# ---- figures


def test_ratio_is_of_medians_and_its_spread_of_pairs() -> None:
    row = {"stock_s": [2.0, 4.0, 9.0], "tuned_s": [4.0, 4.0, 4.0], "selinger_s": [1.0, 2.0, 9.0]}
    assert rate(row, ["stock", "tuned", "selinger"]) == {
        "ratio": 0.5,
        "ratio_spread": [0.5, 1.0],
        "ratio_tuned": 1.0,
    }
    assert ratio_spread([1.0], []) is None
    assert rate({"stock_s": [1.0]}, ["stock"]) == {}


def sample_rows() -> list[dict[str, Any]]:
    return [
        {
            "name": "q01",
            "stock_s": [4.0],
            "selinger_s": [1.0],
            "duckdb_s": 0.5,
            "ratio": 0.25,
            "ratio_spread": [0.25, 0.25],
            "planning_stock_ms": 100.0,
            "planning_selinger_ms": 110.0,
            "equal": True,
            "operators": {"stock": {"SortMergeJoin": 1}, "selinger": {"ShuffledHashJoin": 1}},
        },
        {
            "name": "q02",
            "stock_s": [1.0],
            "selinger_s": [4.0],
            "duckdb_s": 0.5,
            "ratio": 4.0,
            "ratio_spread": [3.0, 5.0],
            "planning_stock_ms": 100.0,
            "planning_selinger_ms": 100.0,
            "equal": "ties",
        },
        {"name": "q03", "stock_s": [9.0], "selinger_s": [], "duckdb_s": 1.0, "equal": None},
    ]


def test_summary_has_rows_out_of_joins_of_what_every_side_counted() -> None:
    rows = sample_rows()
    rows[0]["metrics"] = {
        "stock": {"rows_out_of_joins": 900, "shuffled_bytes": 50},
        "selinger": {"rows_out_of_joins": 300, "shuffled_bytes": 40},
        "duckdb": {"rows_out_of_joins": 200},
    }
    rows[1]["metrics"] = {
        "stock": {"rows_out_of_joins": 7, "shuffled_bytes": 5},
        "selinger": {"rows_out_of_joins": 7, "shuffled_bytes": 5},
        "duckdb": {},
    }
    summary = summarise(rows, ["stock", "selinger"])
    assert (summary["stock_join_rows"], summary["selinger_join_rows"]) == (900, 300)
    assert (summary["duckdb_join_rows"], summary["join_rows_over_duckdb"]) == (200, 1.5)
    assert (summary["stock_shuffled_bytes"], summary["selinger_shuffled_bytes"]) == (55, 45)
    assert "join_rows_over_duckdb" not in summarise(sample_rows(), ["stock", "selinger"])


def test_duckdbs_joins_are_counted_by_its_profiler(tmp_path: Path) -> None:
    yardstick = Yardstick(tmp_path, 1, "500MB", tmp_path / "spill")
    yardstick.connection.execute("CREATE TABLE a AS SELECT range % 10 AS k FROM range(100)")
    yardstick.connection.execute("CREATE TABLE b AS SELECT range AS k FROM range(5)")
    assert yardstick.join_rows("SELECT count(*) FROM a JOIN b USING (k)", 60) == 50
    assert yardstick.join_rows("SELECT count(*) FROM a CROSS JOIN b", 60) == 500
    assert yardstick.join_rows("SELECT count(*) FROM a", 60) == 0
    yardstick.close()


def test_summary_has_totals_of_what_both_sides_finished() -> None:
    summary = summarise(sample_rows(), ["stock", "selinger"])
    assert summary["total_ratio"] == 1.0
    assert summary["geomean_ratio"] == pytest.approx(1.0)
    assert summary["best"] == {"name": "q01", "ratio": 0.25}
    assert summary["worst"] == {"name": "q02", "ratio": 4.0}
    assert summary["planning_added_ms_median"] == 5.0
    assert (summary["stock_total_s"], summary["duckdb_total_s"]) == (5.0, 1.0)
    assert summary["equal"] is False
    assert summarise(sample_rows()[:2], ["stock", "selinger"])["equal"] == "ties"
    assert summarise(sample_rows()[:1], ["stock", "selinger"])["equal"] is True


def test_table_shows_total_mean_best_and_worst() -> None:
    rows = sample_rows()
    text = results_table(rows, summarise(rows, ["stock", "selinger"]), ["stock", "selinger"])
    for part in ("total", "geometric mean 1.00", "best           0.25 (q01)", "4.00 (q02)"):
        assert part in text


# ---- resuming


def test_a_killed_run_goes_on_even_if_its_last_line_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    state = State(path, "key")
    state.put("q01", {"row": 1})
    state.put("q01", {"row": 2})
    state.put("q02", {"row": 3})
    with path.open("a") as file:
        file.write('{"name": "q03", "ro')
    again = State(path, "key")
    assert again.entries == {"q01": {"row": 2}, "q02": {"row": 3}}
    again.put("q03", {"row": 4})
    assert list(State(path, "key").entries) == ["q01", "q02", "q03"]


def test_another_configuration_starts_afresh(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    State(path, configuration_key({"commit": "a"})).put("q01", {"row": 1})
    assert State(path, configuration_key({"commit": "b"})).entries == {}
    State(path, "k").put("q01", {"row": 1})
    assert State(path, "k", fresh=True).entries == {}


# ---- sessions


def test_profiles_differ_only_in_their_point() -> None:
    stock, analyzed, tuned = (make_profile(name, "2g") for name in ("stock", "analyzed", "tuned"))
    assert stock.conf.items() < analyzed.conf.items() < tuned.conf.items()
    assert (stock.analyzed, analyzed.analyzed, tuned.analyzed) == (False, True, True)
    assert COMMON.items() <= stock.conf.items()
    assert not [key for key in stock.conf if "selinger" in key or "extensions" in key]
    assert stock.jar_hash() is None
    with pytest.raises(ValueError, match="choose from"):
        make_profile("fast")


FAKE = """
import json, os, sys, time
for line in sys.stdin:
    cmd = json.loads(line)["cmd"]
    if cmd == "die":
        os._exit(3)
    if cmd == "hang":
        json.loads(sys.stdin.readline())
        print(json.dumps({"ok": False}), flush=True)
    elif cmd == "stuck":
        time.sleep(60)
    else:
        print(json.dumps({"ok": True, "spark": "0", "cmd": cmd}), flush=True)
"""


def fake_client(work: Path) -> Client:
    client = Client(make_profile("stock"), {}, None, work)
    client.command = [sys.executable, "-c", FAKE]
    client.grace = 0.5
    return client


def test_a_query_that_takes_too_long_is_cancelled_and_the_session_kept(tmp_path: Path) -> None:
    client = fake_client(tmp_path)
    try:
        assert client.ask({"cmd": "run"}, 10)["ok"]
        assert client.ask({"cmd": "hang"}, 0.2)["kind"] == "TIMEOUT"
        assert client.ask({"cmd": "run"}, 10) == {"ok": True, "spark": "0", "cmd": "run"}
        assert client.starts == 1
    finally:
        client.kill()


@pytest.mark.parametrize(("command", "kind"), [("die", "CRASH"), ("stuck", "TIMEOUT")])
def test_a_lost_session_is_recorded_and_replaced(tmp_path: Path, command: str, kind: str) -> None:
    client = fake_client(tmp_path)
    try:
        assert client.ask({"cmd": command}, 0.5 if command == "stuck" else 10)["kind"] == kind
        assert client.ask({"cmd": "run"}, 10)["ok"]
        assert client.starts == 2
    finally:
        client.kill()


def test_slices_cover_a_table_once() -> None:
    assert slices(0) == [(0, 0)]
    assert slices(8, 4) == [(0, 4), (4, 8)]
    assert slices(9, 4) == [(0, 4), (4, 8), (8, 9)]


# ---- plans, decisions and the report

EXPLAINED = """== Physical Plan ==
AdaptiveSparkPlan isFinalPlan=true
+- == Final Plan ==
   ResultQueryStage 1
   +- *(2) Filter (v#1L > Subquery subquery#5, [id=#9])
      :  +- Subquery subquery#5, [id=#9]
      :     +- AdaptiveSparkPlan isFinalPlan=true
            +- == Final Plan ==
               *(1) HashAggregate(keys=[], functions=[avg(v#1L)])
            +- == Initial Plan ==
               Exchange SinglePartition
      +- BroadcastQueryStage 0
         +- Exchange hashpartitioning(k#2, 16), ENSURE_REQUIREMENTS, [plan_id=7]
+- == Initial Plan ==
   Sort [k#2 ASC]
"""


def test_the_plan_that_ran_is_read_without_what_was_only_planned() -> None:
    assert [(line.depth, line.text) for line in read_plan(EXPLAINED)] == [
        (0, "Filter (v > Subquery subquery, [id=])"),
        (1, "Subquery subquery, [id=]"),
        (2, "HashAggregate(keys=[], functions=[avg(v)])"),
        (1, "Exchange hashpartitioning(k, 16)"),
    ]


def test_plans_are_aligned_and_their_differences_marked() -> None:
    before = read_plan("== Physical Plan ==\nSortMergeJoin a\n:- Sort\n:  +- Scan x\n+- Scan y\n")
    after = read_plan("== Physical Plan ==\nShuffledHashJoin a\n:- Scan x\n+- Scan y\n")
    shown = [
        (ours.text if ours else None, theirs.text if theirs else None, same)
        for ours, theirs, same in side_by_side(before, after)
    ]
    assert shown == [
        ("SortMergeJoin a", "ShuffledHashJoin a", False),
        ("Sort", None, False),
        ("Scan x", "Scan x", True),
        ("Scan y", "Scan y", True),
    ]


def test_metrics_of_a_reused_exchange_count_once() -> None:
    exchange = {
        "nodeName": "Exchange",
        "metrics": [{"name": "shuffle bytes written", "accumulatorId": 5}],
    }
    join = {
        "nodeName": "SortMergeJoin(skew=true)",
        "metrics": [{"name": "number of output rows", "accumulatorId": 6}],
        "children": [exchange, exchange],
    }
    unused = {"nodeName": "EmptyRelation", "children": [{"nodeName": "Join"}]}
    tree = {"nodeName": "Union", "children": [join, unused]}
    assert wanted_metrics(tree)["shuffled_bytes"] == {5}
    assert wanted_metrics(tree)["rows_out_of_joins"] == {6}
    assert "Join" not in operator_counts(tree)


def test_operators_that_went_come_before_those_that_came() -> None:
    before, after = {"Sort": 2, "SortMergeJoin": 1}, {"ShuffledHashJoin": 1}
    assert operator_change(before, after).startswith("Sort 2→0, SortMergeJoin 1→0")
    assert operator_change(before, before) == ""


DECISION = {
    "rule": "selectJoinOperator",
    "node": "Join Inner (a = b) <script>",
    "outcome": "changed",
    "stock": "SortMergeJoin",
    "chosen": "ShuffledHashJoin(right)",
    "reason": "HASH_FITS",
    "why": "it fits",
    "phase": "static",
    "numbers": [{"name": "right rows", "value": 2.0, "unit": "rows", "origin": "exact"}],
    "setting": None,
}


def test_decisions_are_read_from_explain() -> None:
    body = json.dumps({"selinger": "0.1.0", "decisions": [DECISION]})
    plan, decisions = read_decisions(f"Scan\n== Extended Information (Selinger) ==\n{body}\n")
    assert (plan, decisions) == ("Scan", [DECISION])
    assert read_decisions("Scan") == ("Scan", [])


def sample_results() -> tuple[dict[str, Any], dict[str, Any]]:
    rows = sample_rows()
    profile = {"conf": {"spark.master": "local[2]", "spark.driver.memory": "2g"}}
    results = {
        "commit": "none",
        "spark": "4.3.0",
        "config": {
            "suite": "tpcds",
            "scale": 1.0,
            "duckdb": "1.5.5",
            "runs": 1,
            "machine": {"cores": 2},
            "profiles": {"stock": profile, "selinger": profile},
        },
        "rows": rows,
        "summary": summarise(rows, ["stock", "selinger"]),
    }
    details = {
        "q01": {
            "stock": {"plan": "== Physical Plan ==\nSortMergeJoin\n", "decisions": []},
            "selinger": {"plan": "== Physical Plan ==\nHashJoin\n", "decisions": [DECISION] * 2},
        }
    }
    return results, details


def test_report_needs_nothing_else_and_escapes_what_it_shows() -> None:
    html = page(*sample_results())
    assert "<script>" not in html.partition("Plans and decisions")[2].partition("<script>const")[0]
    assert "&lt;script&gt;" in html
    for outside in ("http://", "https://", "src=", "@import", "url("):
        assert outside not in html
    assert 'class="gone"' in html
    assert html.count('<details id="q') == 3


def test_chart_has_a_bar_a_rated_query_and_whiskers_for_a_spread() -> None:
    svg = ratio_chart(sample_rows(), "stock", "selinger")
    assert svg.count('class="hit"') == 2
    assert svg.count('class="whisker"') == 1
    assert svg.index("q01") < svg.index("q02")


def test_demo_tells_what_changed_and_why() -> None:
    text = change_table(*sample_results())
    assert "SortMergeJoin 1→0, ShuffledHashJoin 0→1 (HASH_FITS" in text
    assert "2 more queries have the same operators" in text


def test_paths_of_this_machine_stay_here() -> None:
    from benchmarks.paths import ROOT

    assert public_text(f"file:{ROOT}/x") == "file:./x"


# ---- estimates


def test_the_q_error_is_a_factor_in_either_direction() -> None:
    assert q_error(10, 100) == q_error(100, 10) == 10
    assert q_error(0, 0) == q_error(0.01, 1) == 1
    assert q_error(None, 5) == float("inf")


def test_percentiles_are_values_that_occur() -> None:
    values = [float(n) for n in range(1, 21)]
    assert [percentile(values, share) for share in (0.05, 0.5, 0.9, 0.95, 1)] == [1, 10, 18, 19, 20]
    assert percentile([], 0.5) is None


def test_sub_plans_are_summed_up_by_joins() -> None:
    rows: list[dict[str, Any]] = [
        {"joins": 0, "rows": 10, "selinger": 10, "selinger_bound": 5, "stock": 1000},
        {"joins": 3, "rows": 10, "selinger": 200, "selinger_bound": 10, "stock": 10},
        {"joins": 9, "rows": 10, "selinger": 20, "stock": None},
        {"joins": 9, "selinger": 20},
    ]
    summary = summarise_estimates(rows, ["selinger", "stock"])
    assert (summary["sub_plans"], summary["not_counted"]) == (3, 1)
    assert summary["median_q_error"] == 2
    assert summary["share_off_10x_3_joins"] == 0.5
    assert summary["share_off_10x_3_joins_stock"] == 0.5
    assert summary["above_bound"] == 1
    assert summary["tables"]["selinger"]["4+"]["count"] == 1
    assert summary["tables"]["stock"]["4+"]["median"] is None
    assert "none" in estimates_table(summary)


def test_the_skewed_data_is_what_its_queries_ask_for() -> None:
    queries = skewed.load_queries()
    assert list(queries) == [f"q{number:02d}" for number in range(1, 15)]
    connection = duckdb.connect()
    connection.execute(skewed.tables_sql(0.01))
    tables = {
        name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    }
    assert tables == {"customer", "product", "orders", "line", "event"}
    top = connection.execute(
        "SELECT max(n) / avg(n) FROM (SELECT count(*) n FROM orders GROUP BY o_customer)"
    ).fetchone()
    assert top is not None
    assert top[0] > 5


# ---- planning cost


def test_planning_cost_is_the_difference_of_medians_and_its_spread_that_of_rounds() -> None:
    first = {"stock_first_ms": 100.0, "selinger_first_ms": 250.0}
    rows = [
        {"name": "q01", "stock_ms": [10.0, 20.0, 12.0], "selinger_ms": [15.0, 40.0, 18.0], **first},
        {"name": "q02", "stock_ms": [50.0, 50.0, 50.0], "selinger_ms": [45.0, 75.0, 50.0], **first},
        {"name": "q03", "stock_ms": [8.0, 8.0, 8.0], "selinger_ms": [16.0, 16.0, 16.0], **first},
    ]
    assert [added(row) for row in rows] == [6.0, 0.0, 8.0]
    summary = summarise_plan_cost(rows)
    assert summary["added_ms_median"] == 6.0
    assert summary["added_ms_p95"] == summary["added_ms_max"] == 8.0
    assert summary["ratio_spread"] == [1.5, 2.0]
    assert summary["first_plans_selinger_ms"] - summary["first_plans_stock_ms"] == 450.0
    assert summarise_plan_cost([]) == {"queries": 0}


def test_quantiles_are_values_that_occurred() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [quantile(values, share) for share in (0.01, 0.5, 0.95, 1.0)] == [1.0, 50.0, 95.0, 100.0]
    assert quantile([7.0], 0.95) == 7.0


# ---- planning


def test_planning_compares_costs_with_the_best_and_the_greedy_order() -> None:
    def row(relations: int, ms: float, **costs: float) -> dict[str, Any]:
        form = {"shape": "star", "relations": relations, "allocated_mb": 2.0, "written": 9.0}
        return {**form, "ms": ms, **costs}

    rows = [row(20, float(ms), cost=3.0, greedy=3.0) for ms in range(1, 101)]
    rows.append(row(5, 1.0, cost=2.2, greedy=4.0, optimum=2.0))
    summary = summarise_planning(rows)
    assert summary["p95_ms_20"] == 95.0
    assert summary["max_cost_over_optimum"] == summary["max_cost_over_optimum_star"] == 1.1
    assert summary["compared_with_optimum"] == 1
    assert summary["max_cost_over_greedy"] == 1.0
    assert summary["max_allocated_mb"] == 2.0


def test_planning_table_has_a_line_a_size_and_a_column_a_form() -> None:
    rows = [
        {"shape": "star", "relations": 5, "ms": 1.0},
        {"shape": "chain", "relations": 100, "ms": 20.0},
    ]
    assert [line.split() for line in planning_table(rows).splitlines()] == [
        ["relations", "star", "chain"],
        ["5", "1.0"],
        ["100", "20.0"],
    ]
