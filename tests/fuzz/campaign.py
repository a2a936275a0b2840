"""Many cases: what they found, and what they cost."""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tests.fuzz import options, verdict
from tests.fuzz.data import Table, random_tables
from tests.fuzz.engines import TIMEOUT_S, Duck, Outcome, Spark, in_utc, is_lost
from tests.fuzz.grammar import Grammar
from tests.fuzz.tree import DUCK, SPARK, Query, is_ordered, is_portable, leaves_sign_of_zero_open
from tests.fuzz.verdict import Verdict, judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.fuzz.options import Conf, Space

#: Cases that share their tables.
BATCH = 60
#: A query whose runs take longer together is named in the report.
SLOW_S = 20.0
#: Runs of Selinger for one query.
VARIANTS = 3


@dataclass
class Case:
    """One query and its settings, with the tables that it reads."""

    seed: int
    index: int
    tables: list[Table]
    query: Query
    common: Conf
    variants: list[Conf]

    @property
    def name(self) -> str:
        """What gives this case again, after ``make fuzz``."""
        return f"SEED={self.seed} CASE={self.index}"


@dataclass
class Finding:
    """A case that went wrong, under which settings, and how."""

    case: Case
    conf: Conf
    verdict: Verdict


@dataclass
class Report:
    """What a campaign counted."""

    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_lost(self) -> bool:
        """Whether the JVM has ended."""
        return any(finding.verdict.kind == verdict.LOST for finding in self.findings)

    def add(self, finding: Finding) -> None:
        """Add a finding, and print it."""
        self.findings.append(finding)
        what = f"{finding.verdict.kind}: {finding.verdict.detail[:300]}"
        print(f"{finding.case.name}: {what}", flush=True)

    def excuse(self, case: Case, reason: str) -> None:
        """Count a difference that is no finding, under one of `COUNTED`."""
        self.counts[reason] += 1
        self.remarks.append(f"{case.name}: {reason}")

    def merge(self, other: Report) -> None:
        """Add what another part counted."""
        self.counts.update(other.counts)
        self.fired.update(other.fired)
        self.errors.update(other.errors)
        self.findings.extend(other.findings)
        self.remarks.extend(other.remarks)
        self.seconds += other.seconds

    def as_json(self) -> str:
        """Give it as one line for programs."""
        rate = self.counts["queries"] / self.seconds if self.seconds else 0.0
        return json.dumps(
            {
                "seed": self.seed,
                "seconds": round(self.seconds, 1),
                "queries_per_second": round(rate, 2),
                **{key.replace(" ", "_"): self.counts[key] for key in COUNTED},
                "findings_by_kind": dict(Counter(f.verdict.kind for f in self.findings)),
                "errors_of_stock": dict(self.errors),
                "fired": dict(self.fired),
                "found": [f"{f.case.name}: {f.verdict.kind}" for f in self.findings],
            }
        )

    def __str__(self) -> str:
        queries, seconds = self.counts["queries"], max(self.seconds, 0.001)
        lines = [f"{queries} queries in {seconds:.0f} s, {queries / seconds:.2f} a second"]
        lines += [f"  {self.counts[key]:>8}  {key}" for key in COUNTED[1:]]
        lines += ["Rules that acted, times:"]
        lines += [f"  {count:>8}  {rule}" for rule, count in self.fired.most_common()]
        lines += ["Errors that stock Spark raised:"]
        lines += [f"  {count:>8}  {error}" for error, count in self.errors.most_common(12)]
        kinds = Counter(f.verdict.kind for f in self.findings)
        lines += ["Findings:"]
        lines += [f"  {kinds[kind]:>8}  {kind}" for kind in verdict.FINDINGS]
        return "\n".join([*lines, *self.remarks])


#: Why an answer may differ.
LOST_ROWS = "stock Spark's filters pushed into files lost rows"
UNSTABLE = "stock Spark differed from itself"
SPARKS_OWN = "errors that depend on Spark's own settings"

#: The counters of a report, in the order in which they are shown.
COUNTED = (
    "queries",
    "runs of Selinger",
    "runs with Spark settings of their own",
    "other runs with another plan than stock Spark's",
    "other runs with the same plan (vacuous)",
    "of these, not executed",
    "queries whose plan changed in no such run",
    "queries with rows",
    "queries that ended with an error in stock Spark too",
    "queries that Spark refused",
    "runs that ended with another row's error",
    verdict.STOPPED,
    "slow queries",
    "compared with DuckDB",
    LOST_ROWS,
    "refused by DuckDB",
    UNSTABLE,
    SPARKS_OWN,
)


def make_tables(seed: int, index: int) -> list[Table]:
    """Make the tables of the batch that a case belongs to."""
    return random_tables(Random(f"{seed} tables {index // BATCH}"))


def make_case(seed: int, index: int, tables: list[Table], space: Space) -> Case:
    """Make a case, which depends on nothing but the seed, its index and the settings there are."""
    query = Grammar(Random(f"{seed} query {index}"), tables).query()
    rng = Random(f"{seed} settings {index}")
    common = space.common(rng)
    variants = [space.selinger(rng) for _ in range(VARIANTS)]
    return Case(seed, index, tables, query, common, variants)


def settings_of(case: Case, conf: Conf) -> Conf:
    """Give all settings of one run: what both sides share, and its own."""
    return {**case.common, **conf}


def run_stock(spark: Spark, case: Case, conf: Conf | None = None) -> Outcome:
    """Run a case without Selinger, under settings of its own if any are given."""
    settings = {**case.common, **(conf or {}), **options.OFF}
    return spark.run(case.query.sql(SPARK), settings)


def judge_case(case: Case, expected: Outcome, found: Outcome) -> Verdict:
    """Compare two answers to the query of a case."""
    ordered, zero_open = is_ordered(case.query), leaves_sign_of_zero_open(case.query)
    return judge(expected, found, ordered=ordered, zero_open=zero_open)


def excuse(spark: Spark, case: Case, conf: Conf, judged: Verdict, found: Outcome) -> str:
    """Say why an answer that differs from stock Spark's is right; nothing if it is wrong."""
    if _is_unstable(spark, case, judged, found):
        return UNSTABLE
    if judged.kind in (verdict.FAILS, verdict.PASSES) and _is_sparks_own(spark, case, conf, found):
        return SPARKS_OWN
    if judged.kind == verdict.ENDLESS and not _is_quick(spark, case):
        return verdict.STOPPED
    return ""


def _is_unstable(spark: Spark, case: Case, judged: Verdict, found: Outcome) -> bool:
    """Tell whether stock Spark differs from itself in the same way, and in the same columns."""
    first, *others = [run_stock(spark, case, partitions) for partitions in _PARTITIONS]
    differs_too = any(judge_case(case, first, other).is_like(judged) for other in others)
    return differs_too and _agree_where_stable([first, *others], found)


def _agree_where_stable(stock: list[Outcome], found: Outcome) -> bool:
    """Tell whether an answer has the values of all columns in which those of stock Spark agree."""
    answers = [outcome.rows for outcome in stock if outcome.rows is not None]
    if found.rows is None or len(answers) < len(stock):
        return True
    rows = [*answers, found.rows]
    if len(rows[-1]) not in map(len, answers):
        return len(set(map(len, answers))) > 1
    width = min((len(row) for answer in rows for row in answer[:1]), default=0)
    for column in range(width):
        first, *others, own = [Outcome([(row[column],) for row in answer]) for answer in rows]
        is_stable = all(_have_same_rows(first, other) for other in others)
        if is_stable and not _have_same_rows(first, own):
            return False
    return True


def _have_same_rows(one: Outcome, other: Outcome) -> bool:
    return judge(one, other, ordered=False, zero_open=True).kind == verdict.SAME


def _is_sparks_own(spark: Spark, case: Case, conf: Conf, found: Outcome) -> bool:
    """Tell whether stock Spark gives the answer that was found, if it is set as the run was.

    Where one side of a join turns out empty, adaptive execution drops the other side, unless its
    error has come by then: so with it, the answer without it counts too, it is asked again, and
    with other operators, which decide which side runs first.
    """
    adaptive, own = "spark.sql.adaptive.enabled", options.of_spark(conf)
    asked: list[Conf] = [{adaptive: "false"}]
    if case.common.get(adaptive, "true") == "true":
        asked += [{}] * _RACES + [{"spark.sql.autoBroadcastJoinThreshold": t} for t in _THRESHOLDS]
    for settings in asked:
        stock = run_stock(spark, case, {**own, **settings})
        if judge_case(case, stock, found).kind in (verdict.SAME, verdict.OPEN_ERROR):
            return True
    return False


def _is_quick(spark: Spark, case: Case) -> bool:
    """Tell whether stock Spark needs less than half of the time that a query may take."""
    start = perf_counter()
    again = run_stock(spark, case)
    return not again.timed_out and perf_counter() - start < TIMEOUT_S / 2


class Worker:
    """Runs cases in a session of its own."""

    def __init__(
        self, root: SparkSession, space: Space, rewrite: Callable[[str], str] | None = None
    ) -> None:
        self.spark = Spark(root, rewrite)
        self.duck = Duck()
        self.space = space

    def close(self) -> None:
        """Remove what it made."""
        self.spark.close()
        self.duck.close()

    def run(self, seed: int, indices: range, report: Report, over: Callable[[], bool]) -> None:
        """Run cases of one batch, until time is over."""
        tables = make_tables(seed, indices.start)
        with _recording(make_case(seed, indices.start, tables, self.space), report):
            self.spark.load(tables)
            self.duck.load(tables)
            before = self.spark.fired()
            self._cases(seed, indices, tables, report, over)
            # The session's own counters, asked once a batch.
            for rule, times in self.spark.fired().items():
                if times > before.get(rule, 0):
                    report.fired[rule] += times - before.get(rule, 0)

    def _cases(
        self,
        seed: int,
        indices: range,
        tables: list[Table],
        report: Report,
        over: Callable[[], bool],
    ) -> None:
        for index in indices:
            if over() or report.is_lost:
                return
            case = make_case(seed, index, tables, self.space)
            start = perf_counter()
            with _recording(case, report):
                self.case(case, report)
            seconds = perf_counter() - start
            if seconds > SLOW_S:
                report.counts["slow queries"] += 1
                report.remarks.append(f"{case.name}: {seconds:.0f} s")

    def case(self, case: Case, report: Report) -> None:
        """Run one case whose tables are loaded."""
        stock = run_stock(self.spark, case)
        report.counts["queries"] += 1
        refused = is_refused(stock)
        if stock.rows is None:
            report.errors[stock.error] += 1
            kind = (
                "that Spark refused" if refused else "that ended with an error in stock Spark too"
            )
            report.counts[f"queries {kind}"] += 1
        elif stock.rows:
            report.counts["queries with rows"] += 1
        same_plan = []
        for conf in case.variants[: 1 if refused else None]:
            found = len(report.findings)
            same_plan.append(self._variant(case, conf, stock, report))
            if len(report.findings) > found:
                break  # one finding a case: others are most likely the same defect
        if stock.rows is not None:
            unchanged = True in same_plan and False not in same_plan
            report.counts["queries whose plan changed in no such run"] += unchanged
            judged = self.asked_duck(case, stock, report)
            if judged.wrong:
                report.add(Finding(case, options.OFF, judged))

    def _variant(self, case: Case, conf: Conf, stock: Outcome, report: Report) -> bool | None:
        """Run a case, and tell whether the plan is stock Spark's, unless it must be another one."""
        own = options.of_spark(conf)
        fixed = case.common.get("spark.sql.adaptive.enabled") == "false" and not own
        known = stock if fixed and stock.rows is not None else None
        found = self.spark.run(case.query.sql(SPARK), settings_of(case, conf), known)
        judged = judge_case(case, stock, found)
        report.counts["runs of Selinger"] += 1
        if judged.wrong:
            reason = excuse(self.spark, case, conf, judged, found)
            if reason:
                report.excuse(case, reason)
            else:
                report.add(Finding(case, conf, judged))
        elif judged.kind == verdict.OPEN_ERROR:
            report.counts["runs that ended with another row's error"] += 1
        elif judged.kind == verdict.STOPPED:
            report.counts[verdict.STOPPED] += 1
        if stock.rows is None or found.rows is None:
            return None
        if own:
            report.counts["runs with Spark settings of their own"] += 1
            return None
        same = stock.plan == found.plan
        kind = "the same plan (vacuous)" if same else "another plan than stock Spark's"
        report.counts[f"other runs with {kind}"] += 1
        report.counts["of these, not executed"] += found.skipped
        return same

    def asked_duck(self, case: Case, stock: Outcome, report: Report) -> Verdict:
        """Compare stock Spark's answer with DuckDB's, where both mean the same by a query.

        Stock Spark is this jar in mode `off`: what that changed by mistake is seen here alone.
        """
        if not is_portable(case.query) or stock.rows is None:
            return Verdict(verdict.SAME)
        answer = self.duck.run(case.query.sql(DUCK))
        if answer.rows is None:
            report.counts["refused by DuckDB"] += 1
            return Verdict(verdict.SAME)
        report.counts["compared with DuckDB"] += 1
        ordered = is_ordered(case.query)

        def judged_by(outcome: Outcome) -> Verdict:
            rows = Outcome(in_utc(outcome.rows or []))
            return judge(rows, answer, ordered=ordered, zero_open=True)

        judged = judged_by(stock)
        if not judged.wrong:
            return judged
        # Statistics of files leave NaN out, and dictionaries tell -0.0 from 0.0.
        plain = run_stock(self.spark, case, _NOT_PUSHED)
        if plain.rows is not None and not judged_by(plain).wrong:
            report.excuse(case, LOST_ROWS)
        elif _is_unstable(self.spark, case, judged, answer):
            report.excuse(case, UNSTABLE)
        else:
            return Verdict(verdict.DUCK, f"{judged.kind}: {judged.detail}")
        return Verdict(verdict.SAME)

    def again(self, case: Case, conf: Conf, kind: str) -> Verdict:
        """Run a case of any tables that are loaded as a finding of a kind was made."""
        stock = run_stock(self.spark, case)
        if is_refused(stock):
            return Verdict("refused")
        if kind == verdict.DUCK:
            return self.asked_duck(case, stock, Report(case.seed))
        found = self.spark.run(case.query.sql(SPARK), settings_of(case, conf))
        judged = judge_case(case, stock, found)
        if judged.kind == kind and excuse(self.spark, case, conf, judged, found):
            return Verdict("excused")
        return judged


@contextmanager
def _recording(case: Case, report: Report) -> Iterator[None]:
    """Record an error of the fuzzer itself as a finding, so that other cases go on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
        kind = verdict.LOST if is_lost(error) else verdict.BROKEN
        report.add(Finding(case, {}, Verdict(kind, f"{error!r}\n{traceback.format_exc()}")))
        if kind == verdict.LOST:
            print(case.query.sql(SPARK), file=sys.stderr, flush=True)


#: How often two sides of a join race before the first one counts as the winner.
_RACES = 5
_THRESHOLDS = ("-1", "1g")
_PARTITIONS: list[Conf] = [
    {},
    {"spark.sql.shuffle.partitions": "1"},
    {"spark.sql.shuffle.partitions": "3", "spark.sql.files.maxPartitionBytes": "2000"},
]
_NOT_PUSHED: Conf = {
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
}


def is_refused(outcome: Outcome) -> bool:
    """Tell whether a query is none: it fails before it runs, whatever the data."""
    return outcome.rows is None and outcome.error.split(".")[0] in _REFUSED


_REFUSED = {
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY",
    "DATATYPE_MISMATCH",
    "UNRESOLVED_COLUMN",
    "AMBIGUOUS_REFERENCE",
    "PARSE_SYNTAX_ERROR",
    "INCOMPATIBLE_COLUMN_TYPE",
    "MISSING_AGGREGATION",
    "UNSUPPORTED_EXPR_FOR_WINDOW",
    "NUM_COLUMNS_MISMATCH",
    "TABLE_OR_VIEW_NOT_FOUND",
}


def run(
    root: SparkSession,
    seed: int,
    cases: range,
    *,
    threads: int = 2,
    seconds: float | None = None,
    rewrite: Callable[[str], str] | None = None,
    after: Callable[[Worker, Finding], Any] | None = None,
    most_findings: int = 20,
    progress: bool = False,
) -> Report:
    """Run cases, and count.

    Parameters
    ----------
    root : pyspark.sql.SparkSession
        A session with Selinger.
    seed : int
        Of the whole campaign.
    cases : range
        Which cases to run.
    threads : int
        Sessions that run at a time.
    seconds : float, optional
        When to stop at the latest.
    rewrite : callable, optional
        Plants a defect: what Selinger runs in place of a query's text.
    after : callable, optional
        What to do with each finding, once all cases have run.
    most_findings : int
        When so many have been found, the rest of the cases is left out.
    progress : bool
        Whether to print a line now and then.
    """
    start = perf_counter()
    space = options.read_space(root)
    total, lock = Report(seed), Lock()

    def over() -> bool:
        late = seconds is not None and perf_counter() - start > seconds
        return late or total.is_lost or len(total.findings) >= most_findings

    def enough(part: Report) -> bool:
        return over() or len(part.findings) >= most_findings

    batches = iter(list(_batches(cases)))

    def work() -> None:
        worker = Worker(root, space, rewrite)
        try:
            while not over():
                with lock:
                    batch = next(batches, None)
                if batch is None:
                    return
                part = Report(seed)
                worker.run(seed, batch, part, partial(enough, part))
                with lock:
                    total.merge(part)
                    if progress:
                        _show(total, perf_counter() - start)
        finally:
            worker.close()

    done = False
    try:
        with ThreadPoolExecutor(threads) as pool:
            for future in [pool.submit(work) for _ in range(threads)]:
                future.result()
        done = True
    finally:
        total.seconds = perf_counter() - start
        if not done:
            print(total)  # the caller will not see it
        if after is not None and total.findings and not total.is_lost:
            _follow_up(Worker(root, space, rewrite), total.findings[:most_findings], after)
    return total


def _follow_up(
    worker: Worker, findings: list[Finding], after: Callable[[Worker, Finding], Any]
) -> None:
    for finding in findings:
        # An error here must not lose the other findings.
        with _recording(finding.case, Report(finding.case.seed)):
            after(worker, finding)
    worker.close()


def _batches(cases: range) -> Iterator[range]:
    start = cases.start
    while start < cases.stop:
        stop = min(cases.stop, (start // BATCH + 1) * BATCH)
        yield range(start, stop)
        start = stop


def _show(total: Report, seconds: float) -> None:
    queries = total.counts["queries"]
    rate = queries / max(seconds, 0.001)
    print(
        f"{queries} queries, {seconds:.0f} s, {rate:.2f} a second, {len(total.findings)} findings",
        flush=True,
    )
