"""The logic of the benchmarks: no JVM, no data, no clock."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from contextlib import nullcontext
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import duckdb
import pytest
from pyarrow import parquet
from selinger._drawing import tree_of

from benchmarks import analyze, commands, operators, plancost, planning, run
from benchmarks.datasets import own
from benchmarks.datasets.layouts import FILE_ROWS, LAYOUTS, rewrite_table, slices
from benchmarks.datasets.queries import (
    choose,
    load_queries,
    to_spark,
    tokens,
    with_other_numbers,
    without_limit,
)
from benchmarks.datasets.walks import FEWEST_JOINS, MOST_JOINS, Reference, references, walks
from benchmarks.demo import change_table
from benchmarks.estimates.qerror import estimates_table
from benchmarks.estimates.qerror import summarise as summarise_estimates
from benchmarks.paths import ROOT, public_text
from benchmarks.plancost import added, by_joins
from benchmarks.plancost import summarise as summarise_plan_cost
from benchmarks.planning import planning_table
from benchmarks.planning import summarise as summarise_planning
from benchmarks.reporting import results
from benchmarks.reporting.docs import PAGE
from benchmarks.reporting.docs import page as docs_page
from benchmarks.reporting.figures import percentile, q_error, rate, ratio_spread, summarise
from benchmarks.reporting.page import page
from benchmarks.reporting.published import NotPublishable, find_results, load, publish
from benchmarks.reporting.results import of_run
from benchmarks.reporting.state import configuration_key, open_state, read_state
from benchmarks.reporting.table import headlines, progress_line, results_table
from benchmarks.reporting.verdicts import of_all, verdict_of
from benchmarks.runner import joincost
from benchmarks.runner.compare import (
    OTHER_ENGINE,
    SAME_ENGINE,
    compare_files,
    compare_rows,
    same_keys,
)
from benchmarks.runner.judge import Answer, judge, sum_up_answers
from benchmarks.runner.measure import Bench, Runs, ran_same_plan
from benchmarks.runner.yardstick import Yardstick
from benchmarks.sessions.client import Client
from benchmarks.sessions.jvm import drawn, wanted_metrics
from benchmarks.sessions.profiles import COMMON, make_profile

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


def test_other_numbers_are_years_and_prices() -> None:
    sql = "select x1200, '1200', \"1200\", cast(a as decimal(15, 2)) where y = 1998 limit 100"
    assert with_other_numbers(sql, 3) == sql.replace("y = 1998", "y = 2001")
    assert with_other_numbers("select 1 limit 100", 3) is None


def test_choosing_refuses_what_does_not_exist() -> None:
    queries = load_queries("tpch")
    assert [query.name for query in choose(queries, "q3,1-2")] == ["q01", "q02", "q03"]
    assert [query.name for query in choose(queries, "every:10")] == ["q01", "q11", "q21"]
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
    assert (found.only_left, found.only_right) == ([("b",)], [("c",)])


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
    monkeypatch.setattr("benchmarks.runner.compare.PART_ROWS", 10)
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


# ---- until it is clear


def bench_of(
    stock: list[float], selinger: list[float], plans: tuple[str, str], tmp_path: Path
) -> dict[str, Runs]:
    """Run a query on sides that take such times, and run such plans."""

    def client(times: list[float], plan: str) -> MagicMock:
        left = iter(times)
        reply = {"ok": True, "planning_ms": 1.0, "explained": f"== Physical Plan ==\n{plan}"}
        return MagicMock(ask=lambda *_: {**reply, "seconds": next(left)})

    clients: Any = {"stock": client(stock, plans[0]), "selinger": client(selinger, plans[1])}
    bench = Bench(clients, MagicMock(), tmp_path, runs=5, until_clear=True)
    return bench.run_in_turn(MagicMock(), 0, bench.runs, details=True)


def test_the_first_run_warms_up_and_more_runs_follow_until_it_is_clear(tmp_path: Path) -> None:
    found = bench_of([9.0] + [2.0] * 9, [7.0] + [1.0] * 9, ("Sort", "Hash"), tmp_path)
    assert found["stock"].seconds == [2.0] * 4
    assert found["selinger"].seconds == [1.0] * 4
    assert found["selinger"].planning_ms == [1.0] * 4
    found = bench_of([9.0, 1.0, 2.0, 1.0], [7.0, 2.0, 1.0, 2.0], ("Sort", "Hash"), tmp_path)
    assert len(found["stock"].seconds) == 3  # they overlap
    found = bench_of([9.0] + [1.05] * 9, [7.0] + [1.0] * 9, ("Sort", "Hash"), tmp_path)
    assert len(found["stock"].seconds) == 5  # not far apart


def test_one_run_is_measured_where_both_sides_run_the_same_plan(tmp_path: Path) -> None:
    found = bench_of([9.0, 2.0], [7.0, 1.0], ("Sort [a#1]", "Sort [a#7]"), tmp_path)
    assert (found["stock"].seconds, found["selinger"].seconds) == ([2.0], [1.0])
    assert ran_same_plan(found) is True
    found["stock"].first = {}
    assert ran_same_plan(found) is None


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


def test_table_shows_total_and_mean_and_single_queries_where_they_are_published() -> None:
    rows, sides = sample_rows(), ["stock", "selinger"]
    summary = summarise(rows, sides)
    text = results_table(rows, summary, sides)
    for label, figure in (
        ("ratio of the totals", "1.00"),
        ("geometric mean of the ratios", "1.00"),
        ("answers, also DuckDB's", "NOT ALL EQUAL"),
    ):
        assert re.search(rf"^{label} +{re.escape(figure)}$", text, re.M), label
    published = headlines(summary, sides, singles=True)
    assert ("best ratio", "0.25 (q01)") in published
    assert ("worst ratio", "4.00 (q02)") in published


# ---- resuming


def test_a_killed_run_goes_on_even_if_its_last_line_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    state = open_state(path, {"key": "key"})
    state.put("q01", {"row": 1})
    state.put("q01", {"row": 2})
    state.put("q02", {"row": 3})
    with path.open("a") as file:
        file.write('{"name": "q03", "ro')
    again = open_state(path, {"key": "key"})
    assert again.entries == {"q01": {"row": 2}, "q02": {"row": 3}}
    again.put("q03", {"row": 4})
    assert list(open_state(path, {"key": "key"}).entries) == ["q01", "q02", "q03"]


def test_a_run_goes_on_and_measures_again_what_failed(tmp_path: Path) -> None:
    queries = choose(load_queries("tpch"), "q1-q3")
    state = open_state(tmp_path / "s.jsonl", {"key": "key"})
    state.put("q01", {"row": {"name": "q01"}})
    state.put("q02", {"row": {"name": "q02", "failures": {"stock": "CRASH"}}})
    measured = []

    def measure(query: Any, _: int) -> dict[str, Any]:
        measured.append(query.name)
        return {"row": {"name": query.name}}

    bench: Any = SimpleNamespace(clients={}, measure=measure)
    run.measure_all(bench, queries, state, 0)
    assert measured == ["q02", "q03"]
    kept = read_state(tmp_path / "s.jsonl").entries
    assert kept["q02"]["row"]["failed_before"] == {"stock": "CRASH"}
    assert "failed_before" not in kept["q03"]["row"]


def test_another_configuration_starts_afresh_and_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    first, second = ({"key": configuration_key({"runs": runs})} for runs in (1, 2))
    open_state(path, first).put("q01", {"row": 1})
    assert open_state(path, second).entries == {}
    assert read_state(tmp_path / "s.previous.jsonl").entries == {"q01": {"row": 1}}
    open_state(path, second).put("q01", {"row": 1})
    assert open_state(path, second, fresh=True).entries == {}


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


def facts_table(connection: duckdb.DuckDBPyConnection, folder: Path) -> Path:
    source = folder / "facts.parquet"
    source.mkdir()
    connection.execute(
        "COPY (SELECT i, (i * 7) % 100 AS ss_sold_date_sk, 'x' || i AS text FROM range(3000) t(i)) "
        f"TO '{source}/part.parquet' (FORMAT parquet)"
    )
    return source


def test_every_layout_has_the_same_rows(tmp_path: Path) -> None:
    connection = duckdb.connect()
    source = facts_table(connection, tmp_path)
    for name, layout in LAYOUTS.items():
        target = tmp_path / name / "facts.parquet"
        facts = rewrite_table(connection, source, target, layout)
        read = f"read_parquet('{target}/**/*.parquet', hive_partitioning = true)"
        found = connection.execute(
            f"SELECT count(*), sum(i), sum(ss_sold_date_sk), count(DISTINCT text) FROM {read}"
        ).fetchone()
        assert found == (3000, 4498500, 148500, 3000), name
        assert facts["rows"] == 3000
        assert facts["files"] == (100 if layout.partitioned else 1)


def test_layouts_have_the_files_and_row_groups_that_they_promise(tmp_path: Path) -> None:
    connection = duckdb.connect()
    source = tmp_path / "facts.parquet"
    source.mkdir()
    rows = FILE_ROWS + 1000
    connection.execute(
        f"COPY (SELECT (i % 10)::INT AS ss_sold_date_sk, 1 AS one FROM range({rows}) t(i)) "
        f"TO '{source}/part.parquet' (FORMAT parquet)"
    )
    found = {}
    for name in set(LAYOUTS) - {"by-day", "unordered"}:
        rewrite_table(connection, source, tmp_path / name, LAYOUTS[name])
        files = [parquet.read_metadata(file) for file in sorted((tmp_path / name).rglob("*.par*"))]
        found[name] = [
            [file.row_group(i).num_rows for i in range(file.num_row_groups)] for file in files
        ]
        assert sum(map(sum, found[name])) == rows, name
    million = 1 << 20
    assert found["generated"] == [[million] * 4, [1000]]
    assert found["one-file"] == [[million] * 4 + [1000]]
    assert found["one-group"] == [[rows]]
    assert found["small-groups"] == [[1 << 15] * 128, [1000]]
    assert [len(groups) for groups in found["many-files"]] == [1] * 200
    assert max(map(max, found["many-files"])) == -(-rows // 200)
    assert sorted(map(sum, found["by-folder"])) == sorted(
        rows // 10 + (day < rows % 10) for day in range(10)
    )


def test_layouts_order_facts_by_their_day(tmp_path: Path) -> None:
    connection = duckdb.connect()
    source = facts_table(connection, tmp_path)
    orders = {}
    for name in ("by-day", "unordered"):
        target = tmp_path / name
        rewrite_table(connection, source, target, LAYOUTS[name])
        read = f"SELECT ss_sold_date_sk FROM read_parquet('{target}/*.parquet')"
        rows = connection.execute(read).fetchall()
        orders[name] = [day for (day,) in rows]
    assert orders["by-day"] == sorted(orders["by-day"])
    assert orders["unordered"] != sorted(orders["unordered"])


# ---- plans, decisions and the report


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


def test_a_plan_of_stock_spark_is_drawn_like_one_of_selinger() -> None:
    def scan(table: str, counter: int) -> dict[str, Any]:
        return {
            "nodeName": "Scan parquet ",
            "simpleString": "FileScan parquet",
            "metadata": {"Location": f"InMemoryFileIndex(1 paths)[file:/data/{table}.parquet]"},
            "metrics": [{"name": "number of output rows", "accumulatorId": counter}],
        }

    join = {
        "nodeName": "SortMergeJoin",
        "simpleString": "SortMergeJoin [a#1], [b#2], RightOuter",
        "children": [scan("days", 1), scan("sales", 2)],
    }
    spark = MagicMock()
    context = spark._jvm.org.apache.spark.util.AccumulatorContext
    context.get = lambda number: MagicMock(**{"get.return_value.value.return_value": number * 10})
    entries = drawn(spark, join)
    assert [entry.get("rows") for entry in entries] == [None, 20, 10]
    tree = tree_of(entries)
    assert tree
    assert tree.symbol == "⟕"
    assert [node.name for node in tree.inputs] == ["sales", "days"]
    empty = {"nodeName": "EmptyRelation", "simpleString": "", "children": [join]}
    assert len(drawn(spark, empty)) == 1


DECISION = {
    "rule": "selectJoinOperator",
    "node": "Join Inner (a = b) <script>",
    "outcome": "changed",
    "stock": "SortMergeJoin",
    "chosen": "ShuffledHashJoin(right)",
    "reason": "HASH_FITS",
    "why": "it fits",
    "title": "a ⋈ b",
    "brief": ["a ⋈ b: hash b", "It fits. [HASH_FITS]", "b: 2 rows <script>"],
    "full": ["a ⋈ b: hash b", "It fits. [HASH_FITS]"],
    "phase": "static",
    "numbers": [{"name": "right rows", "value": 2.0, "unit": "rows", "origin": "exact"}],
    "setting": None,
}


def sample_results() -> tuple[dict[str, Any], dict[str, Any]]:
    rows = sample_rows()
    profile = {"conf": {"spark.master": "local[2]", "spark.driver.memory": "2g"}}
    results = {
        "benchmark": "tpcds-sf1",
        "command": "python -m benchmarks.run",
        "date": "2026-01-31",
        "commit": "none",
        "spark": "4.3.0",
        "duckdb": "1.5.5",
        "machine": {"cores": 2, "memory_gib": 24.0},
        "partial": "",
        "config": {
            "suite": "tpcds",
            "scale": 1.0,
            "runs": 1,
            "profiles": {"stock": profile, "selinger": profile},
        },
        "rows": rows,
        "summary": summarise(rows, ["stock", "selinger"]),
    }
    tree = [{"depth": 0, "name": "HashJoin", "symbol": "⋈", "rows": 5}]
    said = {"mode": "on", "verdict": "2 joins changed", "decisions": [DECISION] * 2, "tree": tree}
    section = f"== Extended Information (Selinger) ==\n{json.dumps(said)}\n"
    stock = [{**tree[0], "name": "SortMergeJoin"}]
    details = {
        "q01": {
            "stock": {"explained": "== Physical Plan ==\nSortMergeJoin\n", "tree": stock},
            "selinger": {"explained": f"== Physical Plan ==\nHashJoin\n{section}", "tree": []},
        }
    }
    return results, details


def test_report_needs_nothing_else_and_escapes_what_it_shows() -> None:
    html = page(*sample_results())
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    for outside in ("http://", "https://", "src=", "@import", "url("):
        assert outside not in html
    assert ">-SortMergeJoin</span>" in html
    assert ">+HashJoin</span>" in html
    assert html.count('<details class="query">') == 3


def test_report_begins_with_what_came_out_and_folds_all_else() -> None:
    results, details = sample_results()
    html = page(results, details)
    said = of_all(results["rows"], results["summary"], ["stock", "selinger"])
    assert html.index(said) < html.index("<details")
    assert " open" not in html
    query = html.partition("<b>q01</b>")[2].partition("<b>q02</b>")[0]
    assert query.index("2 joins changed") < query.index("a ⋈ b: hash b") < query.index("<svg")
    assert "<p>It fits. <code>HASH_FITS</code></p>" in query
    assert query.count("<svg") == 2
    assert 'class="mark"' in query


def test_report_and_demo_claim_nothing_of_few_runs() -> None:
    results, details = sample_results()
    rows, summary = results["rows"], results["summary"]
    texts = (
        page(results, details),
        change_table(results, details),
        results_table(rows, summary, ["stock", "selinger"]),
    )
    for text in texts:
        assert not re.search(r"best ratio|worst ratio|times as (fast|long)", text)
    assert "too few runs" in change_table(results, details)
    assert "ratio" not in progress_line(rows[0], ["stock", "selinger"])
    assert "too few runs" in progress_line(rows[0], ["stock", "selinger"])
    assert of_all(rows, summary, ["stock", "selinger"]).startswith(
        "Selinger is faster in 0 of 3 queries, 2 ran too few times to tell (4 runs of each side "
        "are needed), 1 have no time that counts: failed, or answers differ. "
        "NOT ALL ANSWERS ARE THE SAME."
    )


def test_report_and_demo_claim_what_the_runs_prove() -> None:
    results, details = sample_results()
    first, second, _ = results["rows"]
    first |= {"stock_s": [4.0, 4.1, 4.2, 4.3], "selinger_s": [2.0, 2.1, 2.2, 2.3]}
    second |= {"stock_s": [2.0, 2.1, 2.2, 2.3], "selinger_s": [4.0, 4.1, 4.2, 4.3], "ratio": 1.9}
    sides = ["stock", "selinger"]
    assert [verdict_of(row, sides).kind for row in results["rows"]] == ["faster", "slower", "none"]
    said = page(results, details)
    assert "Selinger is faster in 1 of 3 queries, 1 are slower, 1 have no time" in said
    assert "of many, one may be luck" in said
    assert '<span class="said faster">1.93 times as fast</span>' in page(results, details)
    assert "slower: 1.93 times as long" in change_table(results, details)
    first["same_plan"] = True
    assert verdict_of(first, sides).kind == "same"
    assert "times as fast" not in change_table(results, details)
    first["equal"] = False
    assert verdict_of(first, sides).kind == "none"


def test_demo_tells_what_changed() -> None:
    text = change_table(*sample_results())
    assert re.search(r"^q01 .* 2 joins changed$", text, re.M)


def test_paths_of_this_machine_stay_here() -> None:
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
    queries = load_queries("skewed")
    assert list(queries) == [f"q{number:02d}" for number in range(1, 19)]
    connection = duckdb.connect()
    connection.execute(own.tables_sql("skewed", 0.01))
    tables = {
        name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    }
    assert tables == {"customer", "product", "orders", "line", "event"}
    top = connection.execute(
        "SELECT max(n) / avg(n) FROM (SELECT count(*) n FROM orders GROUP BY o_customer)"
    ).fetchone()
    assert top is not None
    assert top[0] > 5


def test_the_aggregations_of_our_own_run_on_their_tables() -> None:
    connection = duckdb.connect()
    connection.execute(own.tables_sql("aggregates", 0.001))
    queries = load_queries("aggregates")
    assert list(queries) == [f"q{number:02d}" for number in range(1, 34)]
    for query in queries.values():
        assert connection.execute(query.duckdb).fetchall(), query.name


def test_the_small_tables_are_small_and_their_queries_have_up_to_63_joins() -> None:
    connection = duckdb.connect()
    connection.execute(own.tables_sql("small", 1))
    sizes = connection.execute("SELECT estimated_size FROM duckdb_tables()").fetchall()
    assert len(sizes) == 64
    assert all(3 <= rows <= 10_000 for (rows,) in sizes)
    queries = load_queries("small")
    joins = [query.spark.count(" JOIN ") for query in queries.values()]
    assert {0, 1, 2, 3, 63} <= set(joins)
    for query in queries.values():
        assert connection.execute(query.duckdb).fetchall(), query.name
    costs = {0: (2.0, 3.0), 1: (1.0, 2.0)}
    rows = [
        dict(zip(("stock_cpu_ms", "selinger_cpu_ms"), costs.get(some, (4.0, 4.0)), strict=True))
        for some in joins
    ]
    found = by_joins(rows, list(queries.values()))
    assert found["cpu_ratio_no_join"] == 1.5
    assert 1.0 < found["cpu_ratio_few_joins"] < 2.0
    assert found["cpu_ratio_more_joins"] == 1.0


# ---- planning cost


def test_planning_cost_is_the_difference_of_medians() -> None:
    first: dict[str, Any] = {"stock_first_ms": 100.0, "selinger_first_ms": 250.0}
    first |= {"stock_new_ms": [10.0, 12.0], "selinger_new_ms": [30.0, 33.0]}
    first |= {"stock_cpu_ms": 8.0, "selinger_cpu_ms": 12.0}
    rows = [
        {"name": "q01", "stock_ms": [10.0, 20.0, 12.0], "selinger_ms": [15.0, 40.0, 18.0], **first},
        {"name": "q02", "stock_ms": [50.0, 50.0, 50.0], "selinger_ms": [45.0, 75.0, 50.0], **first},
        {"name": "q03", "stock_ms": [8.0, 8.0, 8.0], "selinger_ms": [16.0, 16.0, 16.0], **first},
    ]
    assert [added(row) for row in rows] == [6.0, 0.0, 8.0]
    summary = summarise_plan_cost(rows)
    assert summary["added_ms_median"] == 6.0
    assert summary["added_ms_p95"] == summary["added_ms_max"] == 8.0
    assert summary["total_ratio"] == pytest.approx(84.0 / 70.0)
    assert summary["new_added_ms_median"] == summary["new_added_ms_p95"] == 20.5
    assert summary["first_plans_selinger_ms"] - summary["first_plans_stock_ms"] == 450.0
    assert (summary["first_added_ms_median"], summary["cpu_ratio"]) == (150.0, 1.5)
    assert summarise_plan_cost([]) == {"queries": 0}


# ---- planning


def test_planning_compares_costs_with_the_best_and_the_greedy_order() -> None:
    def row(relations: int, ms: float, **costs: float) -> dict[str, Any]:
        form = {"shape": "star", "relations": relations, "allocated_mb": 2.0, "written": 9.0}
        return {**form, "ms": ms, **costs}

    rows = [row(20, float(ms), cost=3.0, greedy=3.0) for ms in range(1, 101)]
    rows.append(row(5, 1.0, cost=2.2, greedy=4.0, optimum=2.0))
    summary = summarise_planning(rows)
    assert summary["p95_ms_20"] == 95.0
    assert summary["max_cost_over_optimum"] == 1.1
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
        ["---------", "----", "-----"],
        ["5", "1.0"],
        ["100", "20.0"],
    ]


# ---- published figures


def test_the_page_of_figures_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == docs_page(), "run: make docs-benchmarks"


def test_a_page_without_figures_says_so_and_invents_none(tmp_path: Path) -> None:
    text = docs_page(tmp_path)
    assert text.count("Not measured. `make bench") == 14
    assert "{{" not in text


def full_results() -> dict[str, Any]:
    results, _ = sample_results()
    for row in results["rows"]:
        row.update(equal=True, selinger_s=row["selinger_s"] or [9.0])
        row.update(rate(row, ["stock", "selinger"]), metrics={})
    results["summary"] = summarise(results["rows"], ["stock", "selinger"])
    return results


def test_figures_are_published_from_a_full_run(tmp_path: Path) -> None:
    assert publish(full_results(), tmp_path).name == "tpcds-sf1.json"
    found = load("tpcds-sf1", tmp_path)
    assert found is not None
    assert [(row["name"], row["ratio"]) for row in found["rows"]] == [
        ("q01", 0.25),
        ("q02", 4.0),
        ("q03", 1.0),
    ]
    assert found["summary"]["total_ratio"] == 1.0
    assert found["machine"] == {"cores": 2, "memory_gib": 24.0}
    assert "Few runs: 1 of each query and side. Single runs vary." in found["notes"]
    text = docs_page(tmp_path)
    assert "| TPC-DS, scale factor 1 | 1.00 | time with Selinger / time with stock" in text
    assert "Measured with `python -m benchmarks.run` on 2026-01-31" in text


def test_partial_and_wrong_results_are_not_published(tmp_path: Path) -> None:
    for change, why in (
        ({"partial": "3 of 99 queries"}, "not complete: 3 of 99 queries"),
        ({"summary": {"equal": False}}, "answers differ"),
        ({"config": {"profiles": {"analyzed": {}, "selinger": {}}}}, "does not compare"),
    ):
        with pytest.raises(NotPublishable, match=why):
            publish({**full_results(), **change}, tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_is_refused_does_not_keep_others_from_being_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = ["page.md"]
    monkeypatch.setattr("benchmarks.commands.publish", lambda one: publish(one, tmp_path))
    monkeypatch.setattr("benchmarks.commands.write_docs", pages.pop)
    unknown = {**full_results(), "benchmark": "luck"}
    with pytest.raises(SystemExit, match=r"luck is not among .*\n.*no results of tpch-sf7"):
        commands.publish_all([lambda: unknown, lambda: find_results("tpch-sf7"), full_results])
    assert [path.name for path in tmp_path.iterdir()] == ["tpcds-sf1.json"]
    assert pages == []
    assert "tpcds-sf1.json" in capsys.readouterr().out


def test_the_commit_is_dirty_when_what_is_measured_differs_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", "-C", str(tmp_path), *author, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(results, "ROOT", tmp_path)
    assert results.commit() == "none"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.scala").write_text("a")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "a")
    head = git("rev-parse", "HEAD")
    (tmp_path / "docs.md").write_text("no figure depends on this")
    assert results.commit() == head
    (tmp_path / "src" / "new.scala").write_text("b")
    assert results.commit() == f"{head}-dirty"
    (tmp_path / "src" / "new.scala").rename(tmp_path / "src" / "a.scala")
    assert results.commit() == f"{head}-dirty"


def test_changed_sources_are_told(tmp_path: Path) -> None:
    publish({**full_results(), "commit": "abc-dirty"}, tmp_path)
    found = load("tpcds-sf1", tmp_path)
    assert found is not None
    assert "The sources had changes that are not in the commit." in found["notes"]


def test_a_kept_run_has_all_queries_or_says_how_many(tmp_path: Path) -> None:
    results = full_results()
    config = {**results["config"], "suite_queries": 3}
    about = {**results, "config": config, "rows": [], "summary": {}}
    state = open_state(tmp_path / "x.state.jsonl", {"key": "k", "record": about})
    for row in results["rows"]:
        assert of_run(state)["partial"] == f"{len(state.entries)} of 3 queries"
        state.put(row["name"], {"row": row})
    assert of_run(state)["partial"] == ""
    assert of_run(state)["summary"] == results["summary"]


def test_estimates_are_published_query_by_query(tmp_path: Path) -> None:
    rows = [
        {"suite": "tpcds", "name": name, "joins": 0, "rows": 10, "stock": 40, "selinger": ours}
        for name, ours in (("q01", 10), ("q02", 20))
    ]
    summary = summarise_estimates(rows, ["stock", "selinger"])
    results = {**full_results(), "benchmark": "estimates-tpcds-sf1", "rows": rows}
    publish({**results, "summary": summary}, tmp_path)
    found = load("estimates-tpcds-sf1", tmp_path)
    assert found is not None
    assert [row["ratio"] for row in found["rows"]] == [0.25, 0.5]
    assert found["summary"]["total_ratio"] == 0.25
    assert "| `selinger` | 1.00 | 2.0 | - |" in docs_page(tmp_path)


# ---- the cost model of joins


def test_constants_are_read_from_the_source() -> None:
    known = joincost.constants()
    assert {"shuffleNs", "shuffleByteNs", "buildNs", "probeNs", "stageSeconds"} <= set(known)
    assert all(value > 0 for value in known.values())


def test_constants_are_found_again_from_times_that_they_make() -> None:
    known = {"shuffleNs": 120.0, "shuffleByteNs": 3.0, "probeNs": 0.0, "stageSeconds": 40.0}
    cases = []
    for rows in (1_000_000, 3_000_000):
        for columns in (1, 8):
            side = joincost.Side(rows, columns)
            terms = joincost.step("shuffle", side) + joincost.paid(stageSeconds=1e6)
            for probed in (0, rows):
                case = joincost.Measured("", terms + joincost.paid(probeNs=probed), 1.0)
                cases.append(joincost.Measured("", case.terms, case.predicted(known)))
    found = joincost.fit(cases, {})
    assert found == pytest.approx(known, rel=1e-3, abs=1e-2)
    assert joincost.fit(cases, {"shuffleNs": 120.0})["shuffleByteNs"] == pytest.approx(
        3.0, rel=1e-3
    )


def test_no_constant_is_below_zero() -> None:
    cases = [
        joincost.Measured("", {"a": 1e9, "b": 1e9}, 1.0),
        joincost.Measured("", {"a": 1e9, "b": 2e9}, 0.5),
    ]
    assert min(joincost.fit(cases, {}).values()) == 0.0


# ---- rooms


def test_rooms_use_only_those_below_them() -> None:
    rooms = ["estimates", "runner", "reporting", "sessions", "datasets"]
    for level, room in enumerate(rooms):
        for path in (ROOT / "benchmarks" / room).rglob("*.py"):
            used = re.findall(r"^from benchmarks\.?(\w*)", path.read_text(), re.M)
            assert not set(used) & set(rooms[:level]), path


# ---- commands, with the sessions faked


@pytest.fixture
def results_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("benchmarks.reporting.results.RESULTS", tmp_path)
    return tmp_path


def published_from(name: str, folder: Path) -> dict[str, Any]:
    publish(json.loads((folder / f"{name}.json").read_text()), folder / "published")
    found = load(name, folder / "published")
    assert found is not None
    assert name == found["benchmark"]
    assert docs_page(folder / "published").count("Measured with `python -m benchmarks.") == 1
    return found


def test_planning_command(results_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def submit(_: str, request: dict[str, Any], *__: Any) -> list[dict[str, Any]]:
        return [
            {"shape": shape, "relations": size, "ms": 2.0, "allocated_mb": 1.0}
            | {"cost": 2.2, "optimum": 2.0, "greedy": 2.2, "written": 3.0}
            for shape in request["shapes"]
            for size in request["sizes"]
        ]

    monkeypatch.setattr(planning, "submit", submit)
    assert planning.main(["--shapes", "star"]) == 0
    with pytest.raises(NotPublishable, match="not all forms"):
        published_from("planning", results_in)
    assert planning.main([]) == 0
    found = published_from("planning", results_in)
    assert found["rows"][0]["name"] == "chain of 5"
    assert found["rows"][0]["ratio"] == found["summary"]["total_ratio"] == 1.1


def test_plancost_command(results_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plancost, "make", lambda *_: results_in)

    queries = load_queries("tpch")

    def planned(client: Any, name: str, sql: str, times: int) -> tuple[float, float]:
        if not client.settles:
            assert set(client.tables) <= set(re.findall(r"\w+", sql))
            return (700.0, 0.0) if client.profile.name == "stock" else (1000.0, 0.0)
        other = sql != queries[name].spark
        return (10.0, 4.0) if client.profile.name == "stock" else (17.0 if other else 15.0, 5.0)

    monkeypatch.setattr(plancost, "plan_once", planned)
    monkeypatch.setattr("benchmarks.sessions.profiles.Profile.with_copied_jar", lambda one, _: one)
    assert plancost.main(["--suite", "tpch", "--jvms", "3"]) == 0
    found = published_from("plancost-tpch-sf1", results_in)
    assert len(found["rows"]) == 22
    assert found["rows"][0]["ratio"] == found["summary"]["total_ratio"] == 1.5
    assert found["summary"]["added_ms_p95"] == 5.0
    # Most texts of TPC-H have no large numbers.
    assert 0 < found["summary"]["new_queries"] < 22
    assert found["summary"]["new_added_ms_p95"] == 7.0
    assert (found["summary"]["jvms"], found["summary"]["jvm_added_ms_median"]) == (3, 300.0)
    assert found["summary"]["cpu_ratio"] == 1.25


def test_walks_command(
    results_in: Path, small_tables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plancost, "make", lambda *_: results_in)
    monkeypatch.setattr(plancost, "table_folders", lambda _: small_tables)
    asked: list[str] = []

    def planned(client: Any, name: str, sql: str, times: int) -> tuple[float, float]:
        asked.append(sql)
        return (10.0, 4.0) if client.profile.name == "stock" else (15.0, 8.0)

    monkeypatch.setattr(plancost, "plan_once", planned)
    monkeypatch.setattr("benchmarks.sessions.profiles.Profile.with_copied_jar", lambda one, _: one)
    assert plancost.main(["--walks", "5", "--rounds", "1"]) == 0
    found = published_from("walks-tpcds-sf1", results_in)
    assert [row["name"] for row in found["rows"]] == ["w001", "w002", "w003", "w004", "w005"]
    assert found["summary"]["first_added_ms_p95"] == 5.0
    assert (found["summary"]["total_ratio"], found["summary"]["cpu_ratio"]) == (1.5, 2.0)
    # Others have warmed both sides up.
    measured = {query.spark for query in walks(small_tables, 5, seed=1)}
    assert not measured.intersection(asked[: 2 * plancost.WARM_UP])


@pytest.fixture
def small_tables(tmp_path: Path) -> dict[str, str]:
    texts = {
        "sales": "SELECT i % 7 AS s_item_sk, i % 3 AS s_sold_date_sk, i / 7 AS s_price",
        "item": "SELECT i AS i_item_sk, i % 5 AS i_city_sk, 'a''b' || i AS i_name",
        "dates": "SELECT i AS d_date_sk, DATE '2020-01-01' + i AS d_date, NULL AS d_note",
        "city": "SELECT i AS c_city_sk, 1.5::DECIMAL(5, 2) + i AS c_size",
    }
    folders = {}
    for name, text in texts.items():
        folder = tmp_path / name
        folder.mkdir()
        duckdb.sql(f"{text} FROM (SELECT unnest(range(50))::INT AS i)").write_parquet(
            str(folder / "part.parquet")
        )
        folders[name] = str(folder)
    return folders


def test_references_are_found_by_names() -> None:
    tables = {"sales": {"s_item_sk": "INT", "s_qty": "INT"}, "item": {"i_item_sk": "INT"}}
    found = references(tables, {"item": "i_item_sk"})
    assert found == [Reference("sales", "s_item_sk", "item", "i_item_sk")]


def test_walks_join_along_keys(small_tables: dict[str, str]) -> None:
    made = walks(small_tables, 40, seed=3)
    assert made == walks(small_tables, 40, seed=3) != walks(small_tables, 40, seed=4)
    joins = [query.duckdb.count(" = t") for query in made]
    assert min(joins) == FEWEST_JOINS
    assert max(joins) <= MOST_JOINS
    # Sales have no key of their own, so nothing refers to them.
    assert not any(re.search(r"= t\d+\.s_price", query.duckdb) for query in made)
    for query in made:
        views = (f"CREATE VIEW {t} AS FROM '{p}/*.parquet'" for t, p in small_tables.items())
        with duckdb.connect() as connection:
            for view in views:
                connection.execute(view)
            connection.execute(f"EXPLAIN {query.duckdb}")


def test_analyze_command(results_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (results_in / "item.parquet").mkdir()
    monkeypatch.setattr(analyze, "make", lambda *_: results_in)
    monkeypatch.setattr("benchmarks.sessions.local.session", lambda *_: nullcontext())
    monkeypatch.setattr(analyze, "stock", lambda *_: None)
    monkeypatch.setattr(analyze, "ours", lambda *_: 7)
    seconds = iter((1.0, 4.0, 1.0, 2.0))
    monkeypatch.setattr(
        analyze,
        "timed",
        lambda _, work: {"seconds": next(seconds), "heap_bytes": 1, "result": work()},
    )
    assert analyze.main(["--runs", "2"]) == 0
    found = published_from("analyze-tpcds-sf1", results_in)
    assert [row["ratio"] for row in found["rows"]] == [0.25, 0.5]
    assert found["rows"][0]["name"] == "run 1"


def test_operators_measures_every_constant_of_the_model() -> None:
    tables: Any = SimpleNamespace(read=lambda *_: MagicMock())
    cases = [
        *operators.step_cases(tables, 10, 1),
        *operators.join_cases(tables, 10, 40, 1, pairs=4),
    ]
    paid_for = {name for case in cases for name in case.terms}
    assert set(joincost.constants()) - joincost.UNKNOWN <= paid_for


def test_operators_command(
    results_in: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    joins = [
        {"name": "a", "ratio": 1.0, "pick": "SortMergeJoin", "fastest": "SortMergeJoin"}
        | {"measured_s": dict.fromkeys(operators.HINTS, 2.0)}
        | {"model_s": {"SortMergeJoin": 1.0}, "equation_s": dict.fromkeys(operators.HINTS, 1.0)}
    ]
    shuffled = joincost.step("shuffle", joincost.Side(9, 1))
    cases = [joincost.Measured("", shuffled, 1e-6)] + [
        joincost.Measured(f"a, {operator}", joincost.paid(stageSeconds=1e6 * seconds), seconds)
        for operator, seconds in zip(operators.HINTS, (2.5, 1.5, 2.0), strict=True)
    ]
    found = operators.summarise(joins, cases)
    assert (found["total_ratio"], found["worst"]["ratio"], found["equations_off_by"]) == (1, 1, 0)
    assert found["total_ratio_fitted"] == 0.75
    assert found["constants"]["shuffleNs"]["fitted"] is not None
    assert found["constants"]["networkByteNs"] == {"code": 1.0, "fitted": None}
    monkeypatch.setattr("benchmarks.sessions.local.session", lambda *_: nullcontext())
    monkeypatch.setattr(operators, "measure", lambda *_: (joins, found))
    assert operators.main([]) == 0
    said = capsys.readouterr().out
    assert "regret in all: 1.000 with the constants in the code, 0.750 with the fitted ones" in said
    assert "\n  private val stageSeconds = 1.0\n" in said
    assert "networkByteNs = " not in said
    assert published_from("operators", results_in)["rows"][0]["ratio"] == 1.0


def test_estimates_command(results_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def submit(_: str, request: dict[str, Any], *__: Any) -> list[dict[str, Any]]:
        sub_plan = {"kind": "Filter", "joins": 0, "plan": "x", "rows": 10}
        return [
            {"name": name, **sub_plan, "stock": 20, "selinger": 10} for name in request["queries"]
        ]

    command = importlib.import_module("benchmarks.estimates.__main__")
    monkeypatch.setattr(command, "RESULTS", results_in)
    monkeypatch.setattr(command, "make", lambda *_: results_in)
    monkeypatch.setattr(command, "submit", submit)
    assert command.main(["--suite", "tpch"]) == 0
    found = published_from("estimates-tpch-sf1", results_in)
    assert [row["name"] for row in found["rows"]][21:23] == ["tpch q22", "skewed q01"]
    assert found["rows"][0]["ratio"] == found["summary"]["total_ratio"] == 0.5


def test_run_command(results_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "RESULTS", results_in)
    monkeypatch.setattr(run, "make", lambda *_, **__: results_in)
    monkeypatch.setattr(Bench, "run_in_turn", fake_runs)
    monkeypatch.setattr(Bench, "plan", lambda *_: None)
    monkeypatch.setattr("benchmarks.runner.measure.read_rows", lambda _: [(1,)])
    monkeypatch.setattr(Yardstick, "run", lambda *_: (0.5, [(1,)]))
    monkeypatch.setattr(Yardstick, "join_rows", lambda *_: 7)
    assert run.main(["--suite", "tpch", "--sf", "0.5", "--runs", "1"]) == 0
    found = published_from("tpch-sf0.5", results_in)
    assert (len(found["rows"]), found["summary"]["total_ratio"]) == (22, 0.5)
    text = (results_in / "tpch-sf0.5.json").read_text()
    assert str(ROOT) not in text
    assert str(results_in) not in text
    assert "<b>q22</b>" in (results_in / "tpch-sf0.5.html").read_text()


def fake_runs(bench: Bench, *_: Any, details: bool) -> dict[str, Runs]:
    assert details
    first = {"order_columns": [], "explained": "", "metrics": {}, "tree": []}
    seconds = dict(zip(bench.clients, (2.0, 1.0), strict=True))
    return {name: Runs([taken], [9.0], first) for name, taken in seconds.items()}
