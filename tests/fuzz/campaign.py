"""Many cases: what they found, and what they cost."""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from random import Random
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tests.fuzz import options, verdict
from tests.fuzz.data import Table, random_tables
from tests.fuzz.engines import Duck, Outcome, Spark, in_utc
from tests.fuzz.grammar import Grammar
from tests.fuzz.tree import DUCK, SPARK, Query, is_ordered, is_portable, leaves_sign_of_zero_open
from tests.fuzz.verdict import Verdict, judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.fuzz.engines import Row
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
        """What gives this case again."""
        return f"seed {self.seed}, case {self.index}"


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

    def merge(self, other: Report) -> None:
        """Add what another part counted."""
        self.counts.update(other.counts)
        self.fired.update(other.fired)
        self.errors.update(other.errors)
        self.findings.extend(other.findings)
        self.remarks.extend(other.remarks)

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


#: The counters of a report, in the order in which they are shown.
COUNTED = (
    "queries",
    "runs of Selinger",
    "runs with another plan than stock Spark's",
    "runs with the same plan (vacuous)",
    "queries whose plan changed in no run",
    "queries with rows",
    "queries that ended with an error in stock Spark too",
    "queries that Spark refused",
    "runs that ended with another row's error",
    "runs that were stopped after a minute",
    "slow queries",
    "compared with DuckDB",
    "of these, stock Spark's filters pushed into Parquet lost rows",
    "of these, DuckDB has other rows than stock Spark",
    "refused by DuckDB",
    "stock Spark differed from itself",
    "errors that depend on adaptive execution in stock Spark",
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


def compare(spark: Spark, case: Case, conf: Conf, stock: Outcome | None = None) -> Verdict:
    """Run a case with some settings of Selinger, and judge it by stock Spark's answer."""
    text = case.query.sql(SPARK)
    expected = stock or spark.run(text, settings_of(case, options.OFF))
    found = spark.run(text, settings_of(case, conf))
    return judge_case(case, expected, found)


def judge_case(case: Case, expected: Outcome, found: Outcome) -> Verdict:
    """Compare two answers to the query of a case."""
    ordered, zero_open = is_ordered(case.query), leaves_sign_of_zero_open(case.query)
    return judge(expected, found, ordered=ordered, zero_open=zero_open)


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
            if over():
                return
            case = make_case(seed, index, tables, self.space)
            start = perf_counter()
            try:
                self.case(case, report)
            except Exception:
                print(f"{case.name} broke the fuzzer:\n{traceback.format_exc()}", file=sys.stderr)
                raise
            seconds = perf_counter() - start
            if seconds > SLOW_S:
                report.counts["slow queries"] += 1
                report.remarks.append(f"{case.name}: {seconds:.0f} s")

    def case(self, case: Case, report: Report) -> None:
        """Run one case whose tables are loaded."""
        text = case.query.sql(SPARK)
        stock = self.spark.run(text, settings_of(case, options.OFF))
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
        changed = 0
        for conf in case.variants[: 1 if refused else None]:
            found = len(report.findings)
            changed += self._variant(case, conf, stock, report)
            if len(report.findings) > found:
                break  # one finding a case: others are most likely the same defect
        if stock.rows is not None:
            report.counts["queries whose plan changed in no run"] += changed == 0
            self._ask_duck(case, stock, report)

    def _variant(self, case: Case, conf: Conf, stock: Outcome, report: Report) -> bool:
        found = self.spark.run(case.query.sql(SPARK), settings_of(case, conf))
        judged = judge_case(case, stock, found)
        report.counts["runs of Selinger"] += 1
        if judged.wrong:
            self._wrong(Finding(case, conf, judged), report)
        elif judged.kind == verdict.OPEN_ERROR:
            report.counts["runs that ended with another row's error"] += 1
        elif judged.kind == verdict.STOPPED:
            report.counts["runs that were stopped after a minute"] += 1
        if stock.rows is None or found.rows is None:
            return False
        changed = stock.plan != found.plan
        kind = "with another plan than stock Spark's" if changed else "with the same plan (vacuous)"
        report.counts[f"runs {kind}"] += 1
        return changed

    def _wrong(self, finding: Finding, report: Report) -> None:
        """Count a finding, unless stock Spark differs from itself in the same way."""
        case = finding.case
        if self._is_unstable(case):
            report.counts["stock Spark differed from itself"] += 1
            report.remarks.append(f"{case.name}: stock Spark differs from itself")
        elif finding.verdict.kind in _ERROR_OR_ROWS and self._hangs_on_adaptive(case):
            report.counts["errors that depend on adaptive execution in stock Spark"] += 1
            report.remarks.append(f"{case.name}: an error that adaptive execution may skip")
        else:
            report.findings.append(finding)
            print(
                f"{case.name}: {finding.verdict.kind}: {finding.verdict.detail[:300]}", flush=True
            )

    def _is_unstable(self, case: Case) -> bool:
        text = case.query.sql(SPARK)
        first, *others = [
            self.spark.run(text, {**settings_of(case, options.OFF), **_PARTITIONS[i]})
            for i in range(3)
        ]
        return any(judge_case(case, first, other).wrong for other in others)

    def _hangs_on_adaptive(self, case: Case) -> bool:
        """Tell whether stock Spark gives rows in one of its modes, and an error in the other.

        Where one side of a join turns out empty, adaptive execution drops the other side,
        whether or not its error has come by then.
        """
        text = case.query.sql(SPARK)
        answers = [
            self.spark.run(
                text, {**settings_of(case, options.OFF), "spark.sql.adaptive.enabled": mode}
            )
            for mode in ("true", "false")
        ]
        return judge_case(case, *answers).kind in _ERROR_OR_ROWS

    def _ask_duck(self, case: Case, stock: Outcome, report: Report) -> None:
        if not is_portable(case.query) or stock.rows is None:
            return
        answer = self.duck.run(case.query.sql(DUCK))
        if answer.rows is None:
            report.counts["refused by DuckDB"] += 1
            return
        report.counts["compared with DuckDB"] += 1

        def judged_by(rows: list[Row]) -> Verdict:
            ordered = is_ordered(case.query)
            return judge(Outcome(in_utc(rows)), answer, ordered=ordered, zero_open=True)

        judged = judged_by(stock.rows)
        if judged.wrong:
            # Statistics of Parquet files leave NaN out, and dictionaries tell -0.0 from 0.0.
            plain = self.spark.run(
                case.query.sql(SPARK), {**settings_of(case, options.OFF), **_NOT_PUSHED}
            )
            if plain.rows is not None and not judged_by(plain.rows).wrong:
                report.counts["of these, stock Spark's filters pushed into Parquet lost rows"] += 1
                return
            # Stock Spark is the reference; where Selinger agrees with it, the two systems differ.
            report.counts["of these, DuckDB has other rows than stock Spark"] += 1
            report.remarks.append(f"{case.name}: DuckDB has {judged.kind}: {judged.detail[:300]}")


_PARTITIONS: list[Conf] = [
    {},
    {"spark.sql.shuffle.partitions": "1"},
    {"spark.sql.shuffle.partitions": "3", "spark.sql.files.maxPartitionBytes": "2000"},
]
_NOT_PUSHED: Conf = {"spark.sql.parquet.filterPushdown": "false"}
_ERROR_OR_ROWS = (verdict.FAILS, verdict.PASSES)


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
        return late or len(total.findings) >= most_findings

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

    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(work) for _ in range(threads)]:
            future.result()
    total.seconds = perf_counter() - start
    if after is not None and total.findings:
        worker = Worker(root, space, rewrite)
        try:
            for finding in total.findings[:most_findings]:
                after(worker, finding)
        finally:
            worker.close()
    return total


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
