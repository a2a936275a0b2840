"""Random queries for a minute, the failures that were kept, and whether the fuzzer finds any.

A fuzzer that reports nothing proves nothing unless it would have reported a defect: here, the
text that Selinger runs is rewritten, which plants a wrong answer, an error, or a lost error.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import re
from dataclasses import replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JError

from tests.fuzz import campaign, kept, options, verdict
from tests.fuzz.data import Column, Table, random_tables
from tests.fuzz.engines import (
    Duck,
    Outcome,
    Spark,
    condition_of,
    failures_of,
    is_lost,
    open_spark,
)
from tests.fuzz.grammar import Grammar
from tests.fuzz.shrink import Failure, fewest, shrink
from tests.fuzz.sqltypes import BOOLEAN, DOUBLE, INT, STRING, decimal
from tests.fuzz.tree import (
    DUCK,
    SPARK,
    Agg,
    Col,
    Item,
    Join,
    Named,
    Op,
    Query,
    Select,
    is_portable,
    leaves_sign_of_zero_open,
)
from tests.fuzz.verdict import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "sql" / "fuzz"
OTHERS = ROOT / "target" / "fuzz"
KEPT = sorted(FOLDER.glob("*.sql"))
SECONDS = float(os.environ.get("SELINGER_FUZZ_SECONDS", "45"))
#: The same one each time, and one that is new each day; a failure names it.
SEEDS = [20240229, int(f"{dt.datetime.now(dt.timezone.utc):%Y%m%d}")]
if "SELINGER_SEED" in os.environ:
    SEEDS = [int(os.environ["SELINGER_SEED"])]
#: What may be passed over, as a share of what: if all were, nothing would be tested.
CEILINGS = {
    "queries that Spark refused": ("queries", 0.05),
    "queries that ended with an error in stock Spark too": ("queries", 0.4),
    "runs that ended with another row's error": ("runs of Selinger", 0.1),
    verdict.STOPPED: ("runs of Selinger", 0.02),
    "refused by DuckDB": ("queries", 0.2),
    campaign.LOST_ROWS: ("compared with DuckDB", 0.1),
    campaign.UNSTABLE: ("queries", 0.05),
    campaign.SPARKS_OWN: ("runs of Selinger", 0.05),
}
#: Of few queries, chance alone may pass over some.
CHANCE = 3


@pytest.fixture(scope="module")
def root() -> Iterator[SparkSession]:
    session = open_spark()
    yield session
    session.stop()


@pytest.fixture
def spark(root: SparkSession) -> Iterator[Spark]:
    session = Spark(root)
    yield session
    session.close()


# ---- what runs in every test run -----------------------------------------------------------


def test_a_minute_of_random_queries(root: SparkSession) -> None:
    report = campaign.Report(SEEDS[0])
    for seed in SEEDS:
        part = campaign.run(
            root,
            seed,
            range(100_000),
            seconds=SECONDS / len(SEEDS),
            after=lambda worker, finding: kept.keep(worker, finding, OTHERS, OTHERS, seconds=30),
            most_findings=3,
        )
        report.merge(part)
    print(report)
    found = [f"make fuzz {f.case.name}: {f.verdict.kind}" for f in report.findings]
    assert not found, f"{found}, made small in {OTHERS}"
    # A run whose plans are all stock Spark's, or whose answers are all empty, shows nothing.
    assert report.counts["other runs with another plan than stock Spark's"] > 0
    # A slow machine runs some tens of queries in a minute, few of which have a better order.
    if report.counts["queries"] >= 100:
        assert report.fired["reorderJoins"] > 0
    assert report.fired["selectJoinOperator"] > 0
    assert report.counts["queries with rows"] > 0
    assert report.counts["compared with DuckDB"] > 0
    for reason, (whole, share) in CEILINGS.items():
        assert report.counts[reason] <= share * report.counts[whole] + CHANCE, reason


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_kept_failures(spark: Spark, path: Path) -> None:
    judged, stock = kept.replay(spark, path.read_text(encoding="utf-8"))
    assert not campaign.is_refused(stock), stock.message
    assert not judged.wrong, f"{judged.kind}: {judged.detail}"


# ---- the fuzzer finds what is wrong --------------------------------------------------------


def _planted(root: SparkSession, rewrite: Callable[[str], str], folder: Path, kind: str) -> str:
    """Run cases with a planted defect until some are found, and give one of a kind as it is kept.

    Where a query ends with an error anyway, the defect shows as another kind.
    """

    def keep(worker: campaign.Worker, finding: campaign.Finding) -> None:
        if finding.verdict.kind == kind and not list(folder.glob("*.sql")):
            path = kept.keep(worker, finding, folder, folder / "others", seconds=90)
            # Most become far shorter; how far it gets in its time depends on the machine.
            small = kept.read(path.read_text(encoding="utf-8")).query
            assert len(small) < len(finding.case.query.sql(SPARK))

    report = campaign.run(
        root,
        3,
        range(300),
        seconds=600,
        rewrite=rewrite,
        after=keep,
        most_findings=3,
    )
    files = list(folder.glob("*.sql"))
    assert files, f"no {kind!r} that fails again among {[str(f.verdict) for f in report.findings]}"
    return files[0].read_text(encoding="utf-8")


def _inner_for_left(sql: str) -> str:
    return sql.replace(" LEFT JOIN ", " JOIN ")


def test_finds_and_reduces_a_wrong_answer(root: SparkSession, tmp_path: Path) -> None:
    text = _planted(root, _inner_for_left, tmp_path, verdict.ROWS)
    small = kept.read(text)
    assert verdict.ROWS in text
    assert "LEFT JOIN" in small.query
    assert len(small.views) <= 2
    # The file that is kept fails with the defect, and passes without it.
    for rewrite, wrong in ((_inner_for_left, True), (None, False)):
        spark = Spark(root, rewrite)
        try:
            assert kept.replay(spark, text)[0].wrong is wrong
        finally:
            spark.close()


def test_finds_a_failure(root: SparkSession, tmp_path: Path) -> None:
    def fail(sql: str) -> str:
        return sql.replace(" AS c1", ", raise_error('planted') AS c1")

    assert verdict.FAILS in _planted(root, fail, tmp_path, verdict.FAILS)


def _try_divide(sql: str) -> str:
    return re.sub(r"\((\S+) / (\S+)\)", r"try_divide(\1, \2)", sql)


@pytest.mark.parametrize(("rewrite", "kinds"), [(_try_divide, [verdict.PASSES]), (None, [])])
def test_finds_a_lost_error(
    root: SparkSession, rewrite: Callable[[str], str] | None, kinds: list[str]
) -> None:
    by_zero = Op(DOUBLE, "({0} / {0})", [Col(INT, "a", "k")], portable=False)
    case = _case(Select([Item(by_zero, "c")], Named("t", "a")), {"spark.sql.ansi.enabled": "true"})
    case.variants.append({options.MODE: "on"})
    worker = campaign.Worker(root, options.Space({}, (), distorts=False), rewrite)
    report = campaign.Report(0)
    try:
        worker.spark.put(_numbers(3))
        worker.case(case, report)
    finally:
        worker.close()
    assert [finding.verdict.kind for finding in report.findings] == kinds


def _numbers(rows: int) -> Table:
    columns = [Column("k", INT, tame=True), Column("v", DOUBLE, tame=True)]
    return Table("t", columns, [(i, i / 4) for i in range(rows)])


def _case(query: Query, common: options.Conf) -> campaign.Case:
    return campaign.Case(0, 0, [], query, common, [])


def test_what_changes_in_stock_spark_itself_is_no_finding(root: SparkSession) -> None:
    worker = campaign.Worker(root, options.Space({}, (), distorts=False))
    report = campaign.Report(0)
    try:
        worker.spark.put(_numbers(3))
        query = Select([Item(Op(STRING, "uuid()", [], portable=False), "c")], Named("t", "a"))
        case = _case(query, {})
        case.variants.append({options.MODE: "on"})
        worker.case(case, report)
    finally:
        worker.close()
    assert report.counts[campaign.UNSTABLE] == 1
    assert not report.findings


def test_rows_that_pushed_filters_lose_are_told_apart(root: SparkSession) -> None:
    """Stock Spark skips a row group whose statistics leave NaN out."""
    worker = campaign.Worker(root, options.Space({}, (), distorts=False))
    columns = [Column("d", DOUBLE, tame=True)]
    table = Table("t", columns, [(1.0,), (NAN,)])
    is_nan = Op(BOOLEAN, "({0} = CAST('NaN' AS DOUBLE))", [Col(DOUBLE, "a", "d")])
    query = Select([Item(Col(DOUBLE, "a", "d"), "c")], Named("t", "a"), [is_nan])
    report = campaign.Report(0)
    try:
        worker.spark.put(table)
        worker.duck.load([table])
        worker.case(_case(query, {}), report)
    finally:
        worker.close()
    assert report.counts[campaign.LOST_ROWS] == 1
    assert not report.findings


def test_other_rows_in_duckdb_are_a_finding(root: SparkSession) -> None:
    """Stock Spark is the same jar, switched off: only DuckDB shows what that breaks."""
    worker = campaign.Worker(root, options.Space({}, (), distorts=False))
    query = Select([Item(Col(INT, "a", "k"), "c")], Named("t", "a"))
    report = campaign.Report(0)
    try:
        worker.spark.put(_numbers(3))
        worker.duck.load([_numbers(4)])
        worker.case(_case(query, {}), report)
    finally:
        worker.close()
    assert [finding.verdict.kind for finding in report.findings] == [verdict.DUCK]


def test_a_case_that_breaks_the_fuzzer_is_a_finding(
    root: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def breaks(worker: campaign.Worker, case: campaign.Case, report: campaign.Report) -> None:
        report.counts["queries"] += 1
        if case.index == 1:
            raise ValueError("planted")

    monkeypatch.setattr(campaign.Worker, "case", breaks)
    report = campaign.run(
        root,
        3,
        range(4),
        threads=1,
        after=lambda worker, finding: kept.keep(worker, finding, tmp_path / "tests", tmp_path),
    )
    assert [(f.case.index, f.verdict.kind) for f in report.findings] == [(1, verdict.BROKEN)]
    assert report.counts["queries"] == 4
    (written,) = tmp_path.glob("*.sql")
    assert written.read_text(encoding="utf-8").startswith(kept.NOT_REPRODUCED)
    assert not (tmp_path / "tests").exists()


def test_a_query_that_nothing_stops_ends_the_run() -> None:
    """The connection breaks off; an error of the JVM's own is an answer."""
    assert is_lost(Py4JError("An error occurred while calling o1.collectToPython"))
    assert is_lost(ConnectionRefusedError())
    assert not is_lost(ValueError("[DIVIDE_BY_ZERO]"))


# ---- what is excused -----------------------------------------------------------------------

ADAPTIVE = "spark.sql.adaptive.enabled"
ZERO = Outcome(None, "DIVIDE_BY_ZERO")


class _Scripted:
    """Answers as stock Spark does in each mode, without any."""

    def __init__(self, adaptive: Outcome, static: Outcome) -> None:
        self._answers = {"true": adaptive, "false": static}

    def run(self, text: str, conf: options.Conf) -> Outcome:
        assert text
        assert conf[options.MODE] == "off"
        return self._answers[conf[ADAPTIVE]]


def _excuse(adaptive: Outcome, static: Outcome, found: Outcome) -> str:
    case = _case(Select([Item(Col(INT, "a", "k"), "c")], Named("t", "a")), {ADAPTIVE: "true"})
    judged = campaign.judge_case(case, adaptive, found)
    assert judged.wrong
    stock: Any = _Scripted(adaptive, static)
    return campaign.excuse(stock, case, {options.MODE: "on"}, judged, found)


def test_excuses_what_stock_spark_answers_in_another_mode() -> None:
    rows = Outcome([(1,)])
    assert _excuse(rows, ZERO, ZERO) == campaign.SPARKS_OWN
    assert _excuse(rows, ZERO, Outcome(None, "CAST_OVERFLOW")) == campaign.SPARKS_OWN
    assert _excuse(ZERO, rows, rows) == campaign.SPARKS_OWN


def test_excuses_no_other_error_and_no_other_rows() -> None:
    rows = Outcome([(1,)])
    for error in ("INTERNAL_ERROR", "java.lang.ClassCastException", "DIVIDE_BY_ZERO and X"):
        assert not _excuse(rows, ZERO, Outcome(None, error))
    assert not _excuse(ZERO, rows, Outcome([(2,)]))


def test_a_query_that_only_selinger_does_not_end_is_a_finding() -> None:
    rows, stopped = Outcome([(1,)]), Outcome(None, "SPARK_JOB_CANCELLED", timed_out=True)
    assert not _excuse(rows, rows, stopped)
    # An error of this name that no timer caused is one like others.
    assert not _excuse(rows, rows, Outcome(None, "SPARK_JOB_CANCELLED"))


def test_instability_must_be_of_the_same_kind() -> None:
    """Stock Spark has other rows each time, which excuses other rows, and no error."""
    case = _case(Select([Item(Col(INT, "a", "k"), "c")], Named("t", "a")), {})
    numbers = count()

    class Changing:
        def run(self, text: str, conf: options.Conf) -> Outcome:
            assert text
            assert conf
            return Outcome([(next(numbers),)])

    def excuse(found: Outcome) -> str:
        stock: Any = Changing()
        judged = campaign.judge_case(case, Outcome([(-1,)]), found)
        return campaign.excuse(stock, case, {options.MODE: "on"}, judged, found)

    assert excuse(Outcome([(-2,)])) == campaign.UNSTABLE
    assert not excuse(Outcome(None, "INTERNAL_ERROR"))
    # The number of rows was the same each time.
    assert not excuse(Outcome([(-2,), (-3,)]))


def test_instability_of_one_column_excuses_no_other() -> None:
    case = _case(Select([Item(Col(INT, "a", "k"), "c")], Named("t", "a")), {})
    numbers = count()

    class Changing:
        def run(self, text: str, conf: options.Conf) -> Outcome:
            assert text
            assert conf
            return Outcome([(next(numbers), 7)])

    def excuse(found: Outcome) -> str:
        stock: Any = Changing()
        judged = campaign.judge_case(case, Outcome([(-1, 7)]), found)
        return campaign.excuse(stock, case, {options.MODE: "on"}, judged, found)

    assert excuse(Outcome([(-2, 7)])) == campaign.UNSTABLE
    assert not excuse(Outcome([(-2, 8)]))


# ---- judging -------------------------------------------------------------------------------

NAN = math.nan


@pytest.mark.parametrize(
    ("expected", "found", "kind"),
    [
        ([(1,), (2,)], [(2,), (1,)], verdict.SAME),
        ([(1,), (1,)], [(1,)], verdict.ROWS),
        ([(None,)], [(0,)], verdict.ROWS),
        ([(NAN,)], [(NAN,)], verdict.SAME),
        ([(NAN,)], [(None,)], verdict.ROWS),
        ([(0.1 + 0.2,)], [(0.3,)], verdict.SAME),
        ([(1.0,)], [(1.00001,)], verdict.ROWS),
        ([(0.0,)], [(-0.0,)], verdict.ZERO),
        ([(Decimal("1.0"),)], [(Decimal("1.1"),)], verdict.ROWS),
        ([("a",)], [("A",)], verdict.ROWS),
    ],
)
def test_judges_rows(expected: list[Any], found: list[Any], kind: str) -> None:
    judged = judge(Outcome(expected), Outcome(found), ordered=False, zero_open=False)
    assert judged.kind == kind


def test_judges_order_and_zero() -> None:
    up, down = Outcome([(1,), (2,)]), Outcome([(2,), (1,)])
    assert judge(up, down, ordered=True, zero_open=False).kind == verdict.ORDER
    assert not judge(up, down, ordered=False, zero_open=False).wrong
    zero, minus = Outcome([(0.0,)]), Outcome([(-0.0,)])
    assert not judge(zero, minus, ordered=True, zero_open=True).wrong


def test_judges_errors() -> None:
    def of(expected: Outcome, found: Outcome) -> str:
        return judge(expected, found, ordered=False, zero_open=False).kind

    zero, overflow = Outcome(None, "DIVIDE_BY_ZERO"), Outcome(None, "ARITHMETIC_OVERFLOW")
    assert of(zero, zero) == verdict.SAME
    assert of(zero, overflow) == verdict.OPEN_ERROR
    assert of(zero, Outcome(None, "INTERNAL_ERROR")) == verdict.OTHER_ERROR
    assert of(zero, Outcome([])) == verdict.PASSES
    assert of(Outcome([]), zero) == verdict.FAILS
    several = Outcome(None, "ARITHMETIC_OVERFLOW and DIVIDE_BY_ZERO")
    assert of(zero, several) == verdict.OPEN_ERROR
    assert of(zero, Outcome(None, "DIVIDE_BY_ZERO and INTERNAL_ERROR")) == verdict.OTHER_ERROR
    cancelled = Outcome(None, "SPARK_JOB_CANCELLED")
    assert of(cancelled, zero) == verdict.OPEN_ERROR
    assert of(cancelled, Outcome(None, "INTERNAL_ERROR")) == verdict.OTHER_ERROR
    assert of(cancelled, Outcome([])) == verdict.PASSES
    stopped = Outcome(None, "SPARK_JOB_CANCELLED", timed_out=True)
    assert of(stopped, zero) == verdict.STOPPED
    assert of(zero, stopped) == verdict.ENDLESS
    assert of(Outcome([]), Outcome(None, "SPARK_JOB_CANCELLED")) == verdict.FAILS


class _Thrown:
    """An error as the JVM gives it."""

    def __init__(self, text: str, cause: _Thrown | None = None, *others: _Thrown) -> None:
        self.toString = lambda: text
        self.getCause = lambda: cause
        self.getSuppressed = lambda: others
        self.getClass = lambda: SimpleNamespace(getName=lambda: text.partition(":")[0])


def test_failures_of_several_stages_are_all_named() -> None:
    zero = _Thrown("a.SparkException: Job aborted", _Thrown("a.Error: [DIVIDE_BY_ZERO] by"))
    wrong = _Thrown("a.SparkException: [INTERNAL_ERROR] x")
    several = _Thrown("a.Error: [STAGE_MATERIALIZATION_MULTIPLE_FAILURES] x", zero, wrong)
    assert failures_of(several) == {"DIVIDE_BY_ZERO", "INTERNAL_ERROR"}
    assert failures_of(zero) == {"DIVIDE_BY_ZERO"}
    # Cancelled because of the first failure: its own error is none of the query's.
    cancelled = _Thrown("java.util.concurrent.CancellationException: x")
    several = _Thrown("a.Error: [STAGE_MATERIALIZATION_MULTIPLE_FAILURES] x", zero, cancelled)
    assert failures_of(several) == {"DIVIDE_BY_ZERO"}
    assert failures_of(cancelled) == {"java.util.concurrent.CancellationException"}


@pytest.mark.parametrize(
    ("message", "condition"),
    [
        # As PySpark gives what the thread of a broadcast raised.
        (": java.util.ExecutionException: a.SparkException: [DIVIDE_BY_ZERO] by", "DIVIDE_BY_ZERO"),
        (": a.OuterException: x\nCaused by: a.InnerError: [CAST_OVERFLOW] y", "CAST_OVERFLOW"),
        (": a.OuterException: x\nCaused by: a.InnerError: y", "a.InnerError"),
        ("something else", "ValueError"),
    ],
)
def test_errors_are_named_by_their_cause(message: str, condition: str) -> None:
    assert condition_of(ValueError(message))[0] == condition


# ---- cases ---------------------------------------------------------------------------------


def test_a_case_depends_on_its_seed_and_index_alone() -> None:
    space = options.Space({"spark.selinger.some.enabled": True}, (), distorts=False)
    cases = [campaign.make_case(5, 70, campaign.make_tables(5, 70), space) for _ in range(2)]
    assert cases[0] == cases[1]
    assert cases[0] != campaign.make_case(5, 71, campaign.make_tables(5, 71), space)


def test_the_grammar_reaches_every_construct() -> None:
    texts = []
    for seed in range(20):
        tables = random_tables(Random(seed))
        texts += [Grammar(Random(f"{seed} {i}"), tables).query() for i in range(50)]
    all_sql = "\n".join(query.sql(SPARK) for query in texts)
    for construct in (
        *("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "CROSS"),
        *("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"),
        *("ROLLUP", "CUBE", "GROUPING SETS", "HAVING", "FILTER", "DISTINCT", "LIMIT", "OVER"),
        *("(EXISTS", "(NOT EXISTS", "NOT IN (SELECT", " IN (SELECT", "WITH", "<=>", "USING"),
        *("CASE WHEN", "coalesce", "DIV", "LIKE", "row_number", "rank", "BETWEEN", "OFFSET"),
        *("BROADCAST(", "MERGE(", "SHUFFLE_HASH(", "SHUFFLE_REPLICATE_NL("),
        *("sort_array(collect_list", "sort_array(collect_set", "bool_and", "grouping("),
    ):
        assert construct in all_sql, construct
    assert any(query.sql(SPARK).count("count(DISTINCT") > 1 for query in texts)
    assert re.search(r"\(a\d+\.\w+, a\d+\.\w+\) (NOT )?IN \(SELECT", all_sql)
    # A subquery that may have more than one row, and a window function that is filtered.
    assert re.search(r"\(SELECT a\d+\.\w+ AS c\d+ FROM \w+ a\d+ WHERE \(a\d+\.\w+ = ", all_sql)
    assert re.search(r"\) w\d+ WHERE \(w\d+\.c\d+ <", all_sql)
    portable = sum(map(is_portable, texts))
    assert len(texts) / 3 < portable < len(texts)
    assert "/*+" not in "\n".join(query.sql(DUCK) for query in texts)


def test_tables_have_the_hard_values() -> None:
    values = [
        value
        for seed in range(30)
        for table in random_tables(Random(seed))
        for row in table.rows
        for value in row
    ]
    floats = [v for v in values if isinstance(v, float)]
    assert any(map(math.isnan, floats))
    assert any(v == math.inf for v in floats)
    assert any(v == 0 and math.copysign(1, v) < 0 for v in floats)
    assert any(isinstance(v, Decimal) and len(v.as_tuple().digits) == 38 for v in values)
    assert None in values
    assert "" in values
    assert any(isinstance(v, dt.date) for v in values)
    assert any(not table.rows for seed in range(30) for table in random_tables(Random(seed)))
    batches = [random_tables(Random(seed))[0] for seed in range(60)]
    assert {(t.source, t.v2) for t in batches} >= {("orc", False), ("parquet", True)}


def test_new_rules_and_settings_are_drawn_from_at_once() -> None:
    space = options.Space({"new.rule": True}, (options.Knob("new.knob", ("1", "2")),), True)
    drawn = [space.selinger(Random(i)) for i in range(200)]
    assert {conf.get("new.rule") for conf in drawn} == {None, "false"}
    assert {conf.get("new.knob") for conf in drawn} == {None, "1", "2"}
    assert {options.DISTORTION in conf for conf in drawn} == {True, False}


def test_reads_what_there_is_to_set(root: SparkSession) -> None:
    space = options.read_space(root)
    assert space.rules["spark.selinger.selectJoinOperator.enabled"] is True
    gains = next(k for k in space.knobs if k.key == "spark.selinger.join.minGain")
    assert "0" in gains.values
    assert "1.0" not in gains.values  # the setting refuses it
    # Without it estimates are hardly ever wrong, and what relies on them is not tested.
    assert space.distorts


@pytest.mark.parametrize("v2", [False, True])
@pytest.mark.parametrize("source", ["parquet", "orc"])
def test_tables_are_the_same_in_both_systems(spark: Spark, source: str, v2: bool) -> None:
    made = map(random_tables, map(Random, range(1000)))
    tables = next(t for t in made if t[0].source == source)
    tables = [replace(table, v2=v2) for table in tables]
    duck = Duck()
    spark.load(tables)
    duck.load(tables)
    for table in tables:
        names = ", ".join(
            column.name for column in table.columns if column.type.kind != "timestamp"
        )
        text = f"SELECT {names} FROM {table.name}"
        ours = spark.run(text, options.OFF)
        assert ours.rows is not None, ours.message
        assert ("BatchScan" in ours.plan) is v2
        assert len(ours.rows) == len(table.rows)
        assert not judge(ours, duck.run(text), ordered=False, zero_open=False).wrong
    duck.close()


# ---- reducing ------------------------------------------------------------------------------


def test_fewest() -> None:
    assert fewest([1, 2, 3], lambda _: True) == []
    assert fewest(list(range(50)), lambda some: {7, 8, 30} <= set(some)) == [7, 8, 30]


def test_reduces_everything_that_does_not_matter() -> None:
    """A failure that needs one join type, one row and one setting, in a query of many parts."""
    tables = random_tables(Random(4))
    rng = Random("a big one")
    query = next(
        query
        for query in (Grammar(rng, tables).query() for _ in range(1000))
        if len(query.sql(SPARK)) > 900 and " FULL JOIN " in query.sql(SPARK)
    )

    def fails(failure: Failure) -> bool:
        joins = [n for n in failure.query.walk() if isinstance(n, Join) and n.kind == "FULL"]
        needed = "spark.b" in failure.conf and any(t.rows for t in failure.tables)
        return bool(joins) and needed

    conf = {options.MODE: "on", "spark.a": "1", "spark.b": "2"}
    failure = Failure(tables, query, {"spark.c": "3"}, conf)
    assert fails(failure)
    small = shrink(failure, fails, seconds=30)
    assert fails(small)
    assert len(small.query.sql(SPARK)) < 160
    assert small.conf == {options.MODE: "on", "spark.b": "2"}
    assert small.common == {}
    assert sum(len(table.rows) for table in small.tables) == 1


def test_what_is_kept_can_be_read_again() -> None:
    values = [
        (1, "a'b;", NAN, Decimal("9" * 38)),
        (None, None, -0.0, None),
    ]
    kinds = [INT, STRING, DOUBLE, decimal(38, 0)]
    names = ["k", "s", "d", "x"]
    columns = [Column(n, t, tame=False) for n, t in zip(names, kinds, strict=True)]
    query = Select([Item(Agg(DOUBLE, "min", Col(DOUBLE, "a", "d")), "c")], Named("t", "a"))
    assert leaves_sign_of_zero_open(query)
    failure = Failure(
        [Table("t", columns, values, files=2, source="orc"), Table("empty", columns, [])],
        query,
        {"spark.sql.ansi.enabled": "true"},
        {options.MODE: "advise"},
    )
    read = kept.read(kept.kept_text(failure, verdict.Verdict("different rows", "x\ny"), "a test"))
    assert len(read.views) == 2
    assert read.query == query.sql(SPARK)
    assert read.conf == {options.MODE: "advise"}
    assert read.common == failure.common
    assert read.layouts["t"]["files"] == "2"
    assert read.layouts["t"]["source"] == "orc"
    assert read.zero_open
    assert not read.ordered


def test_a_kept_file_runs_on_files(spark: Spark) -> None:
    condition = Op(BOOLEAN, "({0} > {1})", [Col(INT, "a", "k"), Col(INT, "b", "k")])
    joined = Join("LEFT", Named("t", "a"), Named("t", "b"), condition)
    query = Select([Item(Col(DOUBLE, "b", "v"), "c")], joined)
    failure = Failure([_numbers(3)], query, {}, {options.MODE: "on"})
    judged, stock = kept.replay(
        spark, kept.kept_text(failure, verdict.Verdict("different rows"), "a test")
    )
    assert not judged.wrong
    assert sorted(stock.rows or [], key=repr) == [(0.0,), (0.0,), (0.25,), (None,)]


def test_the_report_is_json() -> None:
    report = campaign.Report(1)
    report.counts["queries"] = 3
    assert json.loads(report.as_json())["queries"] == 3
    assert "3 queries" in str(report)
