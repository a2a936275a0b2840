"""Why a query runs as it does: Selinger's decisions, read from Spark's own explain text."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import TYPE_CHECKING, Any

from selinger import _page
from selinger._drawing import Node, figure, key, tree_of
from selinger._query import active_session, checked_query
from selinger._render import quantity
from selinger._spark import error_message, spark_errors
from selinger.errors import ExplainMissing, QueryFailed
from selinger.install import EXPLAIN_PROVIDER
from selinger.session import inactive, overridden, status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Decision", "Explanation", "Input", "Number", "explain"]

_FORMAT = "spark.selinger.explain.format"
_NOTHING = "Selinger decided nothing in this plan."
# `sys.stdout` is one for all threads.
_explaining = RLock()
_SECTION = re.compile(
    r"^== Extended Information \(Selinger\) ==[ \t]*\n(?P<body>.*?)(?=^== |\Z)", re.M | re.S
)


@dataclass(frozen=True)
class Number:
    """One number that a decision compared.

    Attributes
    ----------
    name : str
        What it counts, such as ``right rows``.
    value : float
        The number, in `unit`.
    unit : str
        Such as ``rows`` or ``bytes``.
    origin : str
        ``exact``, ``measured``, ``sampled``, ``derived`` or ``default``.
    """

    name: str
    value: float
    unit: str
    origin: str

    def __str__(self) -> str:
        unit = "" if self.unit in self.name.split() else self.unit
        return f"{self.name} {quantity(self.value, unit)} ({self.origin})"


@dataclass(frozen=True)
class Decision:
    """One decision about one node of a plan.

    Attributes
    ----------
    rule : str
        The rule's id, such as ``selectJoinOperator``.
    node : str
        The node, such as ``Join Inner (a = b)``.
    outcome : str
        ``changed``, ``same``, ``advised``, ``declined``, ``failed``, or ``informed`` for facts
        that other decisions use.
    chosen, stock : str or None
        What was chosen, and what Spark would have taken.
    reason : str
        The reason code, such as ``BROADCAST_CHEAPEST``.
    why : str
        The reason in one sentence.
    phase : str
        ``static``, or ``adaptive`` for a decision made with sizes measured while running.
    numbers : tuple of Number
        What was compared.
    setting, setting_value, setting_to : str or None
        The conf that could change the decision, its present value, and one that would change it.
        An empty `setting_to` means that the conf must be unset.
    title : str
        The node by its tables, such as ``sales ⋈ customers``.
    brief, full : tuple of str
        The decision in words: what was done, why, by which numbers, and how to change it. `full`
        has all numbers.
    orders : tuple of Node or None
        The tables in stock Spark's order and in the one chosen, where these differ: to be drawn.
    """

    rule: str
    node: str
    outcome: str
    chosen: str | None
    stock: str | None
    reason: str
    why: str
    phase: str
    numbers: tuple[Number, ...]
    setting: str | None
    setting_value: str | None
    setting_to: str | None = None
    title: str = ""
    brief: tuple[str, ...] = ()
    full: tuple[str, ...] = ()
    orders: tuple[Node, Node] | None = field(default=None, repr=False, compare=False)

    @property
    def is_change(self) -> bool:
        """Whether the plan is, or would be, another one than Spark's; or whether a rule failed."""
        return self.outcome in ("changed", "advised", "failed")


@dataclass(frozen=True)
class Input:
    """One input of a join, after the run: estimated and true rows.

    Attributes
    ----------
    name : str
        The tables that it reads.
    estimated : float
        Rows that were expected before the query ran.
    origin : str
        How that number was known, as in `Number`.
    actual : float
        Rows that came.
    reduced : bool
        Whether a filter that Spark made at run time removed rows before they were counted.
    text : str
        All of it in words.
    """

    name: str
    estimated: float
    origin: str
    actual: float
    reduced: bool
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Explanation:
    """The decisions taken for one DataFrame; prints as text, and as HTML in a notebook.

    Attributes
    ----------
    verdict : str
        What came of all decisions, in one line; why there are none, if so.
    decisions : tuple of Decision
        In the order in which the plan shows them; empty if Selinger is off.
    plan : str
        The physical plan, as Spark prints it.
    text : str
        All that ``df.explain()`` printed.
    mode : str
        ``on``, ``advise`` or ``off``.
    inputs : tuple of Input
        The inputs of joins, estimated and counted; empty before the query has run.
    truth : str
        What the run says of the estimates: the worst one, its cause, and what helps.
    more : str
        What `str` leaves out, and how to see it.
    all : bool
        Whether all decisions and numbers are shown, or only what changed and the rest folded.
    tree : Node or None
        The physical plan with the rows of its operators, as far as they are known: to be drawn.
    """

    decisions: tuple[Decision, ...]
    plan: str
    text: str
    mode: str
    verdict: str = ""
    inputs: tuple[Input, ...] = ()
    truth: str = ""
    more: str = ""
    all: bool = False
    tree: Node | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        if not self.decisions:
            return f"{self.verdict or _NOTHING}\n\n{self.plan}"
        paragraphs = [bulleted(d.full) for d in self.decisions] if self.all else self.changes
        truth = [self.truth, *(f"    {one}" for one in self.inputs if self.all)]
        more = "" if self.all else self.more
        return "\n".join(part for part in [self.verdict, *paragraphs, *truth, more] if part)

    @property
    def changes(self) -> list[str]:
        """A paragraph for each change: what was done, why, by which numbers, and how to undo it."""
        return [bulleted(d.brief) for d in self.decisions if d.is_change]

    def _repr_html_(self) -> str:
        verdict = self.verdict or _NOTHING
        # In mode advise the plan keeps the order written.
        ran = (self.tree, None) if self.mode == "advise" else (None, self.tree)
        drawn = figure("Plan", self.tree) + key(changed=False) if self.tree else ""
        return _page.fragment(
            _page.what_changed(verdict, self.decisions)
            + _page.orders(self.decisions, ran)
            + _page.paragraph(self.truth)
            + _page.every_decision(self.decisions, opened=self.all)
            + (_page.folded("plan, drawn", drawn) if drawn else "")
            + _page.folded("plan as text", _page.text_block(self.plan))
        )


def explain(
    df: DataFrame | str,
    all: bool = False,  # noqa: A002 - the word that users know
    *,
    spark: SparkSession | None = None,
) -> Explanation:
    """Tell what Selinger decided for a query, and why.

    The plan is the one that the DataFrame has. In a classic session a DataFrame keeps its plan:
    after it has run this is the final one, with the decisions taken while it ran; and settings
    changed since it was planned do not count. Over Spark Connect every call plans anew, so the
    decisions are those taken before running.

    Spark prints an explanation and has no method that returns it: ``sys.stdout`` is replaced
    for that moment, so what other threads print then is lost. Several threads may explain at the
    same time: they wait for each other.

    Parameters
    ----------
    df : pyspark.sql.DataFrame or str
        A classic or a Connect DataFrame, or the SQL text of a query. It is planned, not run.
    all : bool
        Print every decision with all its numbers, not only what changed. The conf
        ``spark.selinger.explain.all`` does the same for each explanation of a session.
    spark : pyspark.sql.SparkSession, optional
        The session for SQL text; the active one by default.

    Returns
    -------
    Explanation
        The decisions and the plan. After the query has run in a classic session, it also has
        estimated and true rows.

    Raises
    ------
    ExplainMissing
        If Spark shows no decisions: the message names the conf that is missing.
    NotLoaded, UnsupportedSpark
        If the session runs without Selinger.
    NotAQuery, NoSession
        If the SQL text is a statement, or there is no session for it.
    QueryFailed
        If Spark cannot plan it; the message is Spark's.

    Examples
    --------
    >>> import selinger
    >>> df = spark.range(10).join(spark.range(5), "id")
    >>> [d.rule for d in selinger.explain(df).decisions]
    ['selectJoinOperator']
    >>> len(selinger.explain("SELECT 1", spark=spark).decisions)
    0
    """
    if isinstance(df, str):
        query: DataFrame | str = checked_query(df)
        session = spark or active_session()
    else:
        query, session = df, df.sparkSession
    printed = printed_in(session, query, "json")
    found = parse(printed)
    if found is not None:
        return replace(found, all=found.all or all)
    return _without_section(session, printed)


def printed_in(spark: SparkSession, query: DataFrame | str, form: str) -> str:
    """Catch what ``explain()`` prints of a query, with Selinger's section in one of its forms."""
    try:
        planned = spark.sql(query) if isinstance(query, str) else query
        # Two threads would also put back each other's format.
        with _explaining, overridden(spark, {_FORMAT: form}):
            return printed_plan(planned)
    except spark_errors() as error:
        # A provider that is named but not loaded makes Spark's own explain fail.
        status(spark)
        raise QueryFailed(error_message(error)) from error


def section(text: str) -> str:
    """Cut Selinger's section out of an explain text; empty if there is none."""
    found = _SECTION.search(text)
    return found["body"].strip() if found else ""


def printed_plan(df: DataFrame) -> str:
    """Catch what ``df.explain()`` prints."""
    printed = io.StringIO()
    with _explaining, redirect_stdout(printed):
        df.explain()
    return printed.getvalue()


def physical_plan(text: str) -> str:
    r"""Cut the physical plan out of an explain text.

    Examples
    --------
    >>> physical_plan("== Physical Plan ==\nRange (0, 3)\n\n== Extended Information (S) ==\nx")
    'Range (0, 3)'
    """
    body = text.partition("== Physical Plan ==")[2] or text
    return re.split(r"^== Extended Information \(", body, maxsplit=1, flags=re.M)[0].strip()


def parse(text: str) -> Explanation | None:
    """Read an explain text whose Selinger section is JSON; None if that is missing or empty.

    Raises
    ------
    ExplainMissing
        If the section is there but is not JSON.
    """
    found = section(text)
    if not found:
        return None
    try:
        body = json.loads(found)
        decisions = tuple(_decision(entry) for entry in body["decisions"])
        return Explanation(
            decisions,
            physical_plan(text),
            text,
            mode=str(body.get("mode", "")),
            verdict=str(body.get("verdict") or ""),
            inputs=tuple(_input(entry) for entry in body.get("inputs") or ()),
            truth=str(body.get("truth") or ""),
            more=str(body.get("more") or ""),
            all=bool(body.get("all")),
            tree=tree_of(body.get("tree") or ()),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExplainMissing(
            f"Selinger's section of the explain text cannot be read ({error!r}).",
            "use the Python package and the jar of one version: selinger.status(spark).version",
            "unset spark.sql.maxPlanStringLength, which cuts long texts",
        ) from error


def bulleted(lines: tuple[str, ...]) -> str:
    """Write a paragraph of a terminal's text."""
    return "\n".join([f"* {lines[0]}", *(f"    {one}" for one in lines[1:])]) if lines else ""


def _decision(entry: Mapping[str, Any]) -> Decision:
    return Decision(
        rule=str(entry["rule"]),
        node=str(entry["node"]),
        outcome=str(entry["outcome"]),
        chosen=_text(entry.get("chosen")),
        stock=_text(entry.get("stock")),
        reason=str(entry["reason"]),
        why=str(entry.get("why") or ""),
        phase=str(entry.get("phase") or ""),
        numbers=tuple(
            Number(str(n["name"]), float(n["value"]), str(n.get("unit") or ""), str(n["origin"]))
            for n in entry.get("numbers") or ()
        ),
        setting=_text(entry.get("setting")),
        setting_value=_text(entry.get("setting_value")),
        setting_to=_text(entry.get("setting_to")),
        title=str(entry.get("title") or entry["node"]),
        brief=tuple(map(str, entry.get("brief") or ())),
        full=tuple(map(str, entry.get("full") or ())),
        orders=_orders(entry.get("orders")),
    )


def _orders(entry: Mapping[str, Any] | None) -> tuple[Node, Node] | None:
    stock, chosen = (tree_of((entry or {}).get(side) or ()) for side in ("stock", "chosen"))
    return (stock, chosen) if stock and chosen else None


def _input(entry: Mapping[str, Any]) -> Input:
    return Input(
        name=str(entry["name"]),
        estimated=float(entry["estimated"]),
        origin=str(entry["origin"]),
        actual=float(entry["actual"]),
        reduced=bool(entry.get("reduced")),
        text=str(entry.get("text") or ""),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _without_section(spark: SparkSession, text: str) -> Explanation:
    """Say why the section is missing, or that nothing was to be said."""
    state = status(spark)
    if not state.active:
        raise inactive(state)
    if not state.explain_provider:
        raise ExplainMissing(
            "Spark does not show Selinger's decisions, because the conf "
            "spark.sql.extendedExplainProviders does not name its explain provider.",
            f"spark.conf.set('spark.sql.extendedExplainProviders', '{EXPLAIN_PROVIDER}'); "
            "if it names another provider already, append ours after a comma",
            "or make the session with selinger.configure(builder), which sets it",
        )
    return Explanation((), physical_plan(text), text, state.mode)
