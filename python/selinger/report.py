"""Stock Spark against Selinger for one query: whether the answer is the same, times, plans."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from selinger._answers import differences
from selinger._digest import Digest, digest
from selinger._plan import diff_html, executed, plan_diff
from selinger._render import escape, html_table, seconds, text_table
from selinger._trees import side_by_side
from selinger.errors import ExplainMissing, NoSession, NotAQuery, UnsupportedSpark
from selinger.explain import (
    Decision,
    Explanation,
    decisions_html,
    explain,
    physical_plan,
    printed_plan,
    summary,
)
from selinger.session import overridden, status

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Answer", "Comparison", "Side", "compare"]

_MODE = "spark.selinger.mode"
_MODES = {"stock": "off", "selinger": "on"}
#: The rule whose decisions are orders of joins.
_ORDERING = "reorderJoins"
#: The error of a query on relations that have statistics and no data.
_NO_DATA = "SELINGER_NO_DATA"
_QUERY = re.compile(r"(?:\s|\(|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*(\w+)", re.S)
_QUERY_WORDS = {"select", "with", "from", "values", "table", "map", "reduce"}


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
    """

    seconds: tuple[float, ...]
    plan: str
    rows: int | None
    error: str | None = None

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
        None if it cannot be told: stock Spark's own answer differs from run to run.
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
    """Stock Spark against Selinger; prints as a table, and as HTML in a notebook.

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
    note : str
        Why there are no decisions, if they could not be read.
    """

    query: str
    answer: Answer
    stock: Side
    selinger: Side
    decisions: tuple[Decision, ...]
    plan_diff: str
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Selinger's median time over stock's: below 1 is faster."""
        ours, theirs = self.selinger.median, self.stock.median
        return ours / theirs if ours is not None and theirs else None

    @property
    def ratio_spread(self) -> tuple[float, float] | None:
        """Lowest and highest ratio of the runs made one after the other."""
        pairs = zip(self.selinger.seconds, self.stock.seconds, strict=True)
        ratios = [ours / theirs for ours, theirs in pairs if theirs]
        return (min(ratios), max(ratios)) if ratios else None

    def __str__(self) -> str:
        parts = [
            text_table(*self._times(), right=frozenset({1, 2, 3})),
            f"ratio: {self._ratio()}",
            f"answer: {self.answer}",
            "plan:\n" + self.plan_diff if self.plan_diff else "plan: unchanged",
        ]
        parts += self._orders()
        if self.decisions:
            parts.append(text_table(*summary(self.decisions)))
        if self.note:
            parts.append(self.note)
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        plans = "".join(
            f'<td style="vertical-align:top;text-align:left"><b>{name}</b>'
            f'<pre style="max-width:45vw;overflow-x:auto">{escape(side.plan)}</pre></td>'
            for name, side in (("stock Spark", self.stock), ("Selinger", self.selinger))
        )
        return (
            f"<details><summary>query</summary><pre>{escape(self.query)}</pre></details>"
            f"{html_table(*self._times())}<p>ratio: {escape(self._ratio())}</p>"
            f'<p style="white-space:pre-line">answer: {escape(str(self.answer))}</p>'
            f"{''.join(f'<pre>{escape(order)}</pre>' for order in self._orders())}"
            f"{decisions_html(self.decisions) if self.decisions else ''}"
            f"<p>{escape(self.note)}</p>"
            f"<p>plan: {diff_html(self.plan_diff) if self.plan_diff else 'unchanged'}</p>"
            f"<details><summary>both plans</summary><table><tr>{plans}</tr></table></details>"
        )

    def _orders(self) -> list[str]:
        """Draw the joins that changed places."""
        drawings = (
            side_by_side(("order written:", "order chosen:"), (d.stock or "", d.chosen or ""))
            for d in self.decisions
            if d.rule == _ORDERING and d.outcome == "changed"
        )
        return [drawing for drawing in drawings if drawing]

    @property
    def _unrun(self) -> bool:
        return self.answer.method == "none"

    def _ratio(self) -> str:
        if self.ratio is None or self.ratio_spread is None:
            return "none, as the query " + ("was not run" if self._unrun else "failed")
        low, high = self.ratio_spread
        return f"{self.ratio:.2f} ({low:.2f} to {high:.2f}); below 1 Selinger is faster"

    def _times(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        headers = ("", "median", "fastest", "slowest", "rows", "runs")
        return headers, [
            _side_row("stock Spark", self.stock),
            _side_row("Selinger", self.selinger),
        ]


def compare(
    query: DataFrame | str,
    runs: int = 3,
    spark: SparkSession | None = None,
    *,
    max_rows: int = 100_000,
    tolerance: float = 1e-9,
) -> Comparison:
    """Run one query with stock Spark and with Selinger in turn, and compare.

    Each side is run once to warm up, and these answers are compared; then `runs` times each, in
    turn and in changing order, planning included. Stock is this session with
    ``spark.selinger.mode=off``, Selinger the same with ``on``; all other settings stay.

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
        Measured runs of each side, at least 1.
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
        text, session = checked_query(query), spark or _active_session()

        def fresh() -> DataFrame:
            return session.sql(text)

    else:
        text, session = "DataFrame", query.sparkSession

        def fresh() -> DataFrame:
            # An alias makes a new DataFrame with a plan of its own, leaves no trace in it, and
            # does not mind several columns of one name.
            return query.alias("selinger_compare")

    state = status(session)
    if not state.active:
        raise UnsupportedSpark(state.spark_version, (state.built_for,), state.reason)
    return _Comparing(session, text, fresh, max_rows, tolerance).run(runs)


@dataclass
class _Outcome:
    """What the warm-up of one side gave."""

    df: DataFrame | None = None
    rows: Sequence[Any] | None = None
    digest: Digest | None = None
    error: str | None = None

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
            plans, explanation, note = self._plans(outcomes)
            counts = {name: (outcome.count, outcome.error) for name, outcome in outcomes.items()}
            outcomes.clear()  # the rows are not needed while measuring
            failed = answer.method in ("error", "none")
            times = {} if failed else self._measure(runs, small, bar.update)
        sides = {
            name: Side(tuple(times.get(name, ())), plans[name], *counts[name]) for name in _MODES
        }
        return Comparison(
            query=self.text,
            answer=answer,
            stock=sides["stock"],
            selinger=sides["selinger"],
            decisions=explanation.decisions if explanation else (),
            plan_diff=plan_diff(plans["stock"], plans["selinger"]),
            note=note,
        )

    def _in_mode(self, name: str, action: Callable[[], Any]) -> Any:
        with overridden(self.spark, {_MODE: _MODES[name]}):
            return action()

    def _is_small(self) -> bool:
        from pyspark.errors import PySparkException

        try:
            counted = self._in_mode("stock", lambda: self.fresh().limit(self.max_rows + 1).count())
        except PySparkException:
            return True  # the warm-up meets the same error, and reports it
        return int(counted) <= self.max_rows

    def _warm_up(self, *, small: bool) -> _Outcome:
        from pyspark.errors import PySparkException

        outcome = _Outcome()
        try:
            outcome.df = self.fresh()
            if small:
                outcome.rows = outcome.df.collect()
            else:
                outcome.digest = digest(outcome.df)
        except PySparkException as error:
            outcome.error = error_condition(error)
        return outcome

    def _judge(self, stock: _Outcome, selinger: _Outcome) -> Answer:
        if stock.error == selinger.error == _NO_DATA:
            why = "the tables have imported statistics and no data here"
            return Answer(None, "none", f"The plans are compared only: {why}.")
        if stock.error or selinger.error:
            none = "no error"
            detail = f"stock Spark: {stock.error or none}; Selinger: {selinger.error or none}"
            return Answer(stock.error == selinger.error, "error", detail)
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
    ) -> tuple[dict[str, str], Explanation | None, str]:
        """Explain what ran; over Spark Connect, and for a digest, what would run."""
        plans = {name: self._plan(name, outcome) for name, outcome in outcomes.items()}
        ours = outcomes["selinger"]
        if ours.df is None or ours.error not in (None, _NO_DATA):
            return plans, None, ""
        with overridden(self.spark, {_MODE: _MODES["selinger"]}):
            try:
                return plans, explain(ours.df), ""
            except ExplainMissing as error:
                return plans, None, f"No decisions to show: {error}"

    def _plan(self, name: str, outcome: _Outcome) -> str:
        if outcome.df is None or outcome.error not in (None, _NO_DATA):
            return ""
        with overridden(self.spark, {_MODE: _MODES[name]}):
            return executed(physical_plan(printed_plan(outcome.df)))

    def _measure(
        self, runs: int, small: bool, advance: Callable[[], object]
    ) -> dict[str, list[float]]:
        times: dict[str, list[float]] = {name: [] for name in _MODES}
        for run in range(runs):
            for name in list(_MODES) if run % 2 == 0 else reversed(_MODES):
                times[name].append(self._in_mode(name, lambda: self._time(small)))
                advance()
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


def error_condition(error: PySparkException) -> str:
    """Name an error so that two runs of one failing query give the same name."""
    condition = error.getCondition()
    if condition is not None:
        return str(condition)
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {re.sub(r'[0-9]+', 'N', first[0]) if first else ''}"


def checked_query(sql: str) -> str:
    """Give SQL text back if it is a query.

    Raises
    ------
    NotAQuery
        If it is a statement.
    """
    word = _QUERY.match(sql)
    if word is None or word.group(1).lower() not in _QUERY_WORDS:
        raise NotAQuery(word.group(1) if word else sql[:20])
    return sql


def _active_session() -> SparkSession:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        raise NoSession
    return session


def _side_row(name: str, side: Side) -> tuple[str, ...]:
    times = side.seconds
    rows = f"{side.rows:,}" if side.rows is not None else (side.error or "")
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
