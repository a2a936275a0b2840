"""Stock Spark against Selinger for one query: whether the answer is the same, times, plans."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from selinger import _page
from selinger._answers import differences
from selinger._digest import Digest, digest
from selinger._drawing import Node
from selinger._plan import executed, plan_diff, same_plan
from selinger._query import active_session, checked_query
from selinger._render import seconds, text_table
from selinger._spark import error_condition, error_message, raising, spark_errors
from selinger._trees import side_by_side
from selinger._verdict import Verdict, is_clear, judge
from selinger.errors import ExplainMissing, QueryFailed
from selinger.explain import (
    Decision,
    Explanation,
    bulleted,
    explain,
    parse,
    physical_plan,
    printed_in,
)
from selinger.session import inactive, overridden, status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Answer", "Comparison", "Side", "compare"]

_MODE = "spark.selinger.mode"
_MODES = {"stock": "off", "selinger": "on"}
#: The rule whose decisions are orders of joins.
_ORDERING = "reorderJoins"
#: The error of a query on relations that have statistics and no data.
_NO_DATA = "SELINGER_NO_DATA"
#: Plans are printed whole: a list that is cut off may hide what differs.
_WHOLE = {
    "spark.sql.debug.maxToStringFields": "1000",
    "spark.sql.maxMetadataStringLength": "2000",
    "spark.sql.maxPlanStringLength": "2147483632",
}
#: Warming up ends after so many seconds, or so many runs of each side more than the first.
_WARM_UP_SECONDS = 3.0
_WARM_UP_RUNS = 3
#: The first run of a query that takes so long warms up well enough.
_LONG_SECONDS = 10.0


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes
    ----------
    seconds : tuple of float
        Wall time of each measured run, planning included.
    plan : str
        The physical plan; in a classic session as it was executed at last.
    rows : int or None
        How many rows the answer has; None if the query failed.
    error : str or None
        The error condition that the query ended with.
    message : str
        What Spark says about that error.
    tree : Node or None
        The plan with the rows of its operators, as far as they are known: to be drawn.
    """

    seconds: tuple[float, ...]
    plan: str
    rows: int | None
    error: str | None = None
    message: str = ""
    tree: Node | None = field(default=None, repr=False, compare=False)

    @property
    def median(self) -> float | None:
        """Median of the measured runs, in seconds."""
        return statistics.median(self.seconds) if self.seconds else None


@dataclass(frozen=True)
class Answer:
    """Whether both sides gave the same answer.

    Attributes
    ----------
    same : bool or None
        None if it cannot be told: stock Spark's own answer differs from run to run, the query
        fails on both sides, or nothing was run.
    method : str
        ``rows`` (all rows compared), ``digest`` (too many rows: count, hashes and sums computed
        in Spark), ``error`` (one side failed, or both) or ``none`` (nothing was run, because the
        query is planned by imported statistics).
    detail : str
        What differs, and what was not compared.
    """

    same: bool | None
    method: str
    detail: str = ""

    def __str__(self) -> str:
        if self.same is None and self.method == "error":
            return f"none, as the query fails\n{self.detail}"
        verdict = {True: "the same", False: "DIFFERENT", None: "cannot be told"}[self.same]
        how = {
            "rows": "all rows compared, in any order",
            "digest": "too many rows to compare one by one: their count, hashes and sums were",
            "error": "by their errors",
            "none": "nothing was run",
        }[self.method]
        return f"{verdict} ({how})" + (f"\n{self.detail}" if self.detail else "")


@dataclass(frozen=True)
class Comparison:
    """Stock Spark against Selinger; prints a verdict and tables, and as HTML in a notebook.

    Where joins changed places, both orders are drawn as trees.

    Attributes
    ----------
    query : str
        The SQL text, or ``DataFrame``.
    answer : Answer
        Whether the answers are the same.
    stock, selinger : Side
        Times and plans.
    decisions : tuple of Decision
        What Selinger decided.
    plan_diff : str
        Unified difference of the plans, ids left out; empty if they are the same.
    same_plan : bool or None
        Whether both sides ran the same plan. None if the plans before the run are the same, and
        what adaptive execution made of them cannot be seen: over Spark Connect, and where the
        answer is too big to be collected.
    note : str
        Why there are no decisions, if they could not be read.
    changed : str
        What came of the decisions, in one line: the verdict of `selinger.explain`.
    """

    query: str
    answer: Answer
    stock: Side
    selinger: Side
    decisions: tuple[Decision, ...]
    plan_diff: str
    same_plan: bool | None = False
    note: str = ""
    changed: str = ""

    @property
    def ratio(self) -> float | None:
        """Selinger's median time over stock's. Only `faster` says whether that means anything."""
        ours, theirs = self.selinger.median, self.stock.median
        return ours / theirs if ours is not None and theirs else None

    @property
    def ratio_spread(self) -> tuple[float, float] | None:
        """Lowest and highest ratio of the runs made one after the other."""
        pairs = zip(self.selinger.seconds, self.stock.seconds, strict=True)
        ratios = [ours / theirs for ours, theirs in pairs if theirs]
        return (min(ratios), max(ratios)) if ratios else None

    @property
    def failed(self) -> bool:
        """Whether the query fails with stock Spark and with Selinger, by the same error."""
        return self.answer.method == "error" and self.answer.same is None

    @property
    def sure(self) -> float | None:
        """How sure it is which side is faster, 0 to 1; None where the runs do not tell.

        It is the probability that runs of equal speed would overlap.
        """
        return self._judged.sure

    @property
    def faster(self) -> str | None:
        """The faster side, ``Selinger`` or ``stock Spark``; None where the runs do not prove it.

        They prove it where the plans differ, every run of one side was faster than every run of
        the other, there are at least four of each, and the medians differ by 3 % or more.
        """
        return self._judged.faster

    @property
    def verdict(self) -> str:
        """What came out, in one sentence."""
        if self.failed:
            return f"The query fails, with stock Spark and with Selinger: {self.stock.message}"
        if self.answer.method == "none":
            return "Nothing was run: the tables have imported statistics and no data here."
        if self.answer.method == "error":
            return self._one_fails()
        return self._judged.text

    @property
    def _judged(self) -> Verdict:
        return judge(
            self.stock.seconds,
            self.selinger.seconds,
            same_plan=self.same_plan,
            same_answer=self.answer.same,
        )

    def __str__(self) -> str:
        if self.failed:
            return self.verdict
        changes = [bulleted(d.brief) for d in self.decisions if d.is_change]
        parts = [
            self.verdict,
            text_table(*self._times(), right=frozenset({1, 2, 3})),
            f"answer: {self.answer}",
            "\n".join(filter(None, [self.changed, *changes])),
            self.note,
            *self._orders(),
            "plan:\n" + self.plan_diff if self.plan_diff else f"plan: {self._unchanged()}",
        ]
        return "\n\n".join(filter(None, parts))

    def page(self) -> str:
        """Write the comparison as an HTML page that needs no other file."""
        return _page.document(
            "Stock Spark and Selinger", f"<h1>Stock Spark and Selinger</h1>{self._body()}"
        )

    def _repr_html_(self) -> str:
        return _page.fragment(self._body())

    def _body(self) -> str:
        verdict = _page.paragraph(self.verdict, "verdict")
        query = _page.folded("query", _page.text_block(self.query))
        if self.failed:
            return verdict + query
        return (
            verdict
            + _page.paragraph(f"answer: {self.answer}")
            + _page.table(*self._times())
            + _page.paragraph(self.note)
            + _page.query(
                self.changed,
                self.decisions,
                (self.stock.tree, self.selinger.tree),
                (self.stock.plan, self.selinger.plan),
                f"plan: {self._unchanged()}",
            )
            + query
        )

    def _orders(self) -> list[str]:
        """Draw the joins that changed places."""
        drawings = (
            side_by_side(("order written:", "order chosen:"), (d.stock or "", d.chosen or ""))
            for d in self.decisions
            if d.rule == _ORDERING and d.outcome == "changed"
        )
        return [drawing for drawing in drawings if drawing]

    def _unchanged(self) -> str:
        if self.same_plan is None:
            return "unchanged before the run; what adaptive execution changed cannot be seen here"
        return "unchanged"

    def _one_fails(self) -> str:
        if self.stock.error and self.selinger.error:
            return "The query fails with both, but Selinger's error is not stock Spark's."
        if self.selinger.error:
            return f"The query fails with Selinger only: {self.selinger.message}"
        return f"The query fails with stock Spark only: {self.stock.message}"

    def _times(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        headers = ("", "median", "fastest", "slowest", "rows", "runs")
        return headers, [
            _side_row("stock Spark", self.stock),
            _side_row("Selinger", self.selinger),
        ]


def compare(
    query: DataFrame | str,
    runs: int = 5,
    spark: SparkSession | None = None,
    *,
    max_rows: int = 100_000,
    tolerance: float = 1e-9,
) -> Comparison:
    """Run one query with stock Spark and with Selinger in turn, and compare.

    Both sides are run to warm up, and the answers of the first runs are compared; then they are
    measured in turn and in changing order, planning included. Stock is this session with
    ``spark.selinger.mode=off``, Selinger the same with ``on``; all other settings stay.

    Measuring ends early where more runs would not change the verdict: after one run of each side
    where both have the same plan, after three where the runs overlap, after four where the sides
    are 10 % or more apart. `Comparison.verdict` claims a difference only if the plans differ, all
    runs of one side were faster than all of the other, and the medians differ by 3 % or more;
    `Comparison.sure` says how sure that is.

    Rows are compared in any order, duplicates counted, floats within `tolerance`. If the answer
    has more than `max_rows` rows it is not brought to the client: it is then compared by count,
    hashes and sums computed in Spark (`Answer.method` says so), and the measured runs write to
    Spark's ``noop`` sink instead of collecting.

    A query that leaves its answer open (``LIMIT`` after ties in the order, ``rand()``,
    ``first()``) may differ though both answers are right.

    Parameters
    ----------
    query : pyspark.sql.DataFrame or str
        A DataFrame, planned anew for each run; or the SQL text of a query.
    runs : int
        Measured runs of each side at most. Fewer than 4 prove nothing about times.
    spark : pyspark.sql.SparkSession, optional
        The session for SQL text; the active one by default.
    max_rows : int
        The largest answer that is compared row by row.
    tolerance : float
        Relative tolerance for floating-point numbers.

    Returns
    -------
    Comparison
        Answer, times, plans and decisions.

    Raises
    ------
    NotAQuery, NoSession
        If the SQL text is a statement, or there is no session for it.
    NotLoaded, UnsupportedSpark
        If the session runs without Selinger.
    QueryFailed
        If the query fails while it is measured, though it ran before.
    ValueError
        If `runs` is less than 1.

    Examples
    --------
    >>> import selinger
    >>> result = selinger.compare("SELECT id % 3 AS k, count(*) FROM range(90) GROUP BY 1",
    ...                           runs=1, spark=spark)
    >>> result.answer.same, result.stock.rows
    (True, 3)
    """
    if runs < 1:
        raise ValueError(f"runs must be at least 1, not {runs}")
    if isinstance(query, str):
        text, session = checked_query(query), spark or active_session()

        def fresh() -> DataFrame:
            return session.sql(text)

    else:
        text, session = "DataFrame", query.sparkSession

        def fresh() -> DataFrame:
            # An alias makes a new DataFrame with a plan of its own, leaves no trace in it, and
            # does not mind several columns of one name.
            return query.alias("selinger_compare")

    # Whether it could act: a session whose mode is off is compared as well.
    with overridden(session, {_MODE: _MODES["selinger"]}):
        state = status(session)
    if not state.active:
        raise inactive(state)
    with raising(QueryFailed):
        return _Comparing(session, text, fresh, max_rows, tolerance).run(runs)


@dataclass
class _Outcome:
    """What the warm-up of one side gave."""

    df: DataFrame | None = None
    rows: Sequence[Any] | None = None
    digest: Digest | None = None
    error: str | None = None
    message: str = ""
    seconds: float = 0.0

    @property
    def count(self) -> int | None:
        if self.rows is not None:
            return len(self.rows)
        return self.digest.rows if self.digest is not None else None


@dataclass
class _Comparing:
    spark: SparkSession
    text: str
    fresh: Callable[[], DataFrame]
    max_rows: int
    tolerance: float

    def run(self, runs: int) -> Comparison:
        from tqdm import tqdm

        with tqdm(total=2 * runs + 2, desc="compare", unit="run", disable=None, leave=False) as bar:
            small = self._is_small()
            outcomes = {}
            for name in _MODES:
                outcomes[name] = self._in_mode(name, lambda: self._warm_up(small=small))
                bar.update()
            answer = self._judge(outcomes["stock"], outcomes["selinger"])
            plans, trees = self._plans(outcomes)
            explanation, note = self._explained(outcomes["selinger"])
            decisions = explanation.decisions if explanation else ()
            changed = any(decision.outcome == "changed" for decision in decisions)
            same = same_plan(plans["stock"], plans["selinger"], changed=changed)
            longest = max(outcome.seconds for outcome in outcomes.values())
            ends = {name: (o.count, o.error, o.message) for name, o in outcomes.items()}
            outcomes.clear()  # the rows are not needed while measuring
            times: Mapping[str, Sequence[float]] = {}
            if answer.method not in ("error", "none"):
                if not same and longest < _LONG_SECONDS:
                    self._warm_up_more(small)
                times = self._measure(1 if same else runs, small, bar.update)
        texts = {name: executed(plan) for name, plan in plans.items()}
        sides = {
            name: Side(tuple(times.get(name, ())), texts[name], *ends[name], trees.get(name))
            for name in _MODES
        }
        return Comparison(
            query=self.text,
            answer=answer,
            stock=sides["stock"],
            selinger=sides["selinger"],
            decisions=decisions,
            plan_diff=plan_diff(texts["stock"], texts["selinger"]),
            same_plan=same,
            note=note,
            changed=explanation.verdict if explanation else "",
        )

    def _in_mode(self, name: str, action: Callable[[], Any]) -> Any:
        with overridden(self.spark, {_MODE: _MODES[name]}):
            return action()

    def _is_small(self) -> bool:
        try:
            counted = self._in_mode("stock", lambda: self.fresh().limit(self.max_rows + 1).count())
        except spark_errors():
            return True  # the warm-up meets the same error, and reports it
        return int(counted) <= self.max_rows

    def _warm_up(self, *, small: bool) -> _Outcome:
        outcome = _Outcome()
        start = perf_counter()
        try:
            outcome.df = self.fresh()
            if small:
                outcome.rows = outcome.df.collect()
            else:
                outcome.digest = digest(outcome.df)
        except spark_errors() as error:
            outcome.error, outcome.message = error_condition(error), error_message(error)
        outcome.seconds = perf_counter() - start
        return outcome

    def _warm_up_more(self, small: bool) -> None:
        """Run until little is compiled any more, for some seconds at most."""
        spent = 0.0
        for _ in range(_WARM_UP_RUNS):
            spent += sum(self._in_mode(name, lambda: self._time(small)) for name in _MODES)
            if spent > _WARM_UP_SECONDS:
                break

    def _judge(self, stock: _Outcome, selinger: _Outcome) -> Answer:
        if stock.error == selinger.error == _NO_DATA:
            why = "the tables have imported statistics and no data here"
            return Answer(None, "none", f"The plans are compared only: {why}.")
        if stock.error and stock.error == selinger.error:
            return Answer(None, "error", stock.message)
        if stock.error or selinger.error:
            ends = (("stock Spark", stock.message), ("Selinger", selinger.message))
            lines = [f"{name}: {message or 'no error'}" for name, message in ends]
            return Answer(False, "error", "\n".join(lines))
        answer = self._differ(stock, selinger)
        if answer.same:
            return answer
        again = self._in_mode("stock", lambda: self._warm_up(small=stock.rows is not None))
        if again.error is None and self._differ(stock, again).same:
            hint = (
                "If the query leaves its answer open (LIMIT after ties, rand(), first()), "
                "both may be right."
            )
            return Answer(answer.same, answer.method, f"{answer.detail}\n{hint}")
        detail = "Stock Spark's own answer differs from one run to the next."
        return Answer(None, answer.method, f"{detail}\n{answer.detail}")

    def _differ(self, stock: _Outcome, selinger: _Outcome) -> Answer:
        if stock.rows is not None and selinger.rows is not None:
            return rows_answer(stock.rows, selinger.rows, self.tolerance)
        if stock.digest is not None and selinger.digest is not None:
            return digest_answer(stock.digest, selinger.digest, self.tolerance)
        return Answer(False, "error", "The sides cannot be compared.")

    def _plans(
        self, outcomes: Mapping[str, _Outcome]
    ) -> tuple[dict[str, str], dict[str, Node | None]]:
        """Show what ran; over Spark Connect, and for a digest, what would run."""
        plans, trees = {}, dict[str, Node | None]()
        for name, outcome in outcomes.items():
            printed = self._printed(name, outcome)
            plans[name] = physical_plan(printed)
            with suppress(ExplainMissing):  # said where the decisions are asked for
                found = parse(printed)
                trees[name] = found.tree if found else None
        return plans, trees

    def _printed(self, name: str, outcome: _Outcome) -> str:
        if outcome.df is None or outcome.error not in (None, _NO_DATA):
            return ""
        with overridden(self.spark, {_MODE: _MODES[name], **_WHOLE}):
            return printed_in(self.spark, outcome.df, "json")

    def _explained(self, ours: _Outcome) -> tuple[Explanation | None, str]:
        """Give the decisions, or say why there are none to show."""
        if ours.df is None or ours.error not in (None, _NO_DATA):
            return None, ""
        with overridden(self.spark, {_MODE: _MODES["selinger"]}):
            try:
                return explain(ours.df), ""
            except ExplainMissing as error:
                return None, f"No decisions to show: {error}"

    def _measure(
        self, runs: int, small: bool, advance: Callable[[], object]
    ) -> dict[str, list[float]]:
        times: dict[str, list[float]] = {name: [] for name in _MODES}
        for run in range(runs):
            for name in list(_MODES) if run % 2 == 0 else reversed(_MODES):
                times[name].append(self._in_mode(name, lambda: self._time(small)))
                advance()
            if is_clear(times["stock"], times["selinger"]):
                break
        return times

    def _time(self, small: bool) -> float:
        start = perf_counter()
        df = self.fresh()
        if small:
            df.collect()
        else:
            names = [f"c{i}" for i in range(len(df.columns))]
            df.toDF(*names).write.format("noop").mode("overwrite").save()
        return perf_counter() - start


def rows_answer(stock: Sequence[Any], selinger: Sequence[Any], tolerance: float) -> Answer:
    """Judge two answers by all their rows."""
    missing, added = differences(stock, selinger, tolerance=tolerance)
    if not missing and not added:
        return Answer(True, "rows")
    lines = [
        f"stock Spark gave {len(stock)} rows, Selinger {len(selinger)}",
        *(f"only stock Spark: {row!r}" for row in missing),
        *(f"only Selinger: {row!r}" for row in added),
    ]
    return Answer(False, "rows", "\n".join(lines))


def digest_answer(stock: Digest, selinger: Digest, tolerance: float) -> Answer:
    """Judge two answers by their digests."""
    lines = [f"{name} differs" for name in stock.differs(selinger, tolerance)]
    same = not lines
    if stock.loosely:
        lines.append(f"only nulls were compared of: {', '.join(stock.loosely)}")
    return Answer(same, "digest", "\n".join(lines))


def _side_row(name: str, side: Side) -> tuple[str, ...]:
    times = side.seconds
    rows = f"{side.rows:,}" if side.rows is not None else "failed" if side.error else ""
    if not times:
        return (name, "", "", "", rows, "0")
    return (
        name,
        seconds(statistics.median(times)),
        seconds(min(times)),
        seconds(max(times)),
        rows,
        str(len(times)),
    )
