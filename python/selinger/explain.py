"""Why a query runs as it does: Selinger's decisions, read from Spark's own explain text."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any

from selinger._query import active_session, checked_query
from selinger._render import escape, html_table, quantity, text_table
from selinger._spark import error_message, spark_errors
from selinger.errors import ExplainMissing, QueryFailed, UnsupportedSpark
from selinger.install import EXPLAIN_PROVIDER
from selinger.session import overridden, status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Decision", "Explanation", "Number", "explain"]

_FORMAT = "spark.selinger.explain.format"
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
        return f"{self.name} {quantity(self.value, self.unit)} ({self.origin})"


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
    setting, setting_value : str or None
        The conf that could change the decision, and its present value.
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


@dataclass(frozen=True)
class Explanation:
    """The decisions taken for one DataFrame; prints as a table, and as HTML in a notebook.

    Attributes
    ----------
    decisions : tuple of Decision
        In the order in which the plan shows them; empty if Selinger is off.
    plan : str
        The physical plan, as Spark prints it.
    text : str
        All that ``df.explain()`` printed.
    mode : str
        ``on``, ``advise`` or ``off``.
    """

    decisions: tuple[Decision, ...]
    plan: str
    text: str
    mode: str

    def __str__(self) -> str:
        if not self.decisions:
            return f"Selinger (mode {self.mode}) decided nothing in this plan.\n\n{self.plan}"
        return "\n\n".join([text_table(*summary(self.decisions)), *map(_detail, self.decisions)])

    def _repr_html_(self) -> str:
        plan = f"<details><summary>plan</summary><pre>{escape(self.plan)}</pre></details>"
        return decisions_html(self.decisions) + plan


def explain(df: DataFrame | str, *, spark: SparkSession | None = None) -> Explanation:
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
    spark : pyspark.sql.SparkSession, optional
        The session for SQL text; the active one by default.

    Returns
    -------
    Explanation
        The decisions and the plan.

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
        text, session = checked_query(df), spark or active_session()
    else:
        text, session = "", df.sparkSession
    try:
        query = session.sql(text) if isinstance(df, str) else df
        # Two threads would also put back each other's format.
        with _explaining, overridden(session, {_FORMAT: "json"}):
            printed = printed_plan(query)
    except spark_errors() as error:
        # A provider that is named but not loaded makes Spark's own explain fail.
        status(session)
        raise QueryFailed(error_message(error)) from error
    found = parse(printed)
    if found is not None:
        return found
    return _without_section(session, printed)


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
    section = _SECTION.search(text)
    if section is None or not section["body"].strip():
        return None
    try:
        body = json.loads(section["body"])
        decisions = tuple(_decision(entry) for entry in body["decisions"])
        return Explanation(decisions, physical_plan(text), text, str(body.get("mode", "")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExplainMissing(
            f"Selinger's section of the explain text cannot be read ({error!r}).",
            "use the Python package and the jar of one version: selinger.status(spark).version",
            "unset spark.sql.maxPlanStringLength, which cuts long texts",
        ) from error


def summary(decisions: tuple[Decision, ...]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Lay decisions out as a table."""
    headers = ("node", "outcome", "chosen", "stock", "reason")
    return headers, [
        (d.node, d.outcome, d.chosen or "", d.stock or "", d.reason) for d in decisions
    ]


def decisions_html(decisions: tuple[Decision, ...]) -> str:
    """Lay decisions out as an HTML table, with their numbers."""
    headers = ("node", "outcome", "chosen", "stock", "reason", "why", "numbers", "setting")
    return html_table(
        headers,
        [
            (*row, d.why, "\n".join(map(str, d.numbers)), _setting(d))
            for row, d in zip(summary(decisions)[1], decisions, strict=True)
        ],
    )


def _detail(decision: Decision) -> str:
    lines = [
        f"{decision.rule}: {decision.node} [{decision.phase}]",
        f"  {decision.outcome}, {decision.reason}: {decision.why}",
        *(f"  {number}" for number in decision.numbers),
    ]
    if decision.setting:
        lines.append(f"  setting: {_setting(decision)}")
    return "\n".join(lines)


def _setting(decision: Decision) -> str:
    if decision.setting is None:
        return ""
    value = decision.setting_value or "empty"
    if value == "0" and decision.setting.endswith(".broadcastMaxBytes"):
        value = "0: automatic"
    return f"{decision.setting} (now {value})"


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
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _without_section(spark: SparkSession, text: str) -> Explanation:
    """Say why the section is missing, or that nothing was to be said."""
    state = status(spark)
    if not state.active:
        raise UnsupportedSpark(state.spark_version, (state.built_for,), state.reason)
    if not state.explain_provider:
        raise ExplainMissing(
            "Spark does not show Selinger's decisions, because the conf "
            "spark.sql.extendedExplainProviders does not name its explain provider.",
            f"spark.conf.set('spark.sql.extendedExplainProviders', '{EXPLAIN_PROVIDER}'); "
            "if it names another provider already, append ours after a comma",
            "or make the session with selinger.configure(builder), which sets it",
        )
    return Explanation((), physical_plan(text), text, state.mode)
