"""
What the benchmarks read of a finished query beyond PySpark's public interface.

Only this module touches `_jdf` and `_jvm`: planning phases, the finished plan as a tree, and its
metrics. Nothing here runs inside the measured time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WRAPPERS = ("WholeStageCodegen", "InputAdapter", "AdaptiveSparkPlan")
PHASES = ("parsing", "analysis", "optimization", "planning")


def _execution(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution()  # noqa: SLF001


def force_planning(frame: DataFrame) -> None:
    """
    Optimise and plan a query without running it.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The query; the action that follows uses this very plan.

    Examples
    --------
    >>> force_planning(spark.range(1))  # doctest: +SKIP
    """
    _execution(frame).executedPlan()


def collect_garbage(spark: SparkSession) -> None:
    """
    Ask the session's JVM to collect garbage, so that a query does not pay for the one before.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session.

    Examples
    --------
    >>> collect_garbage(spark)  # doctest: +SKIP
    """
    spark._jvm.System.gc()  # type: ignore[union-attr]  # noqa: SLF001


def phase_times(frame: DataFrame) -> dict[str, int]:
    """
    Read how long Spark says that each phase of planning took.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        A planned query.

    Returns
    -------
    dict of str to int
        Milliseconds of parsing, analysis, optimization and planning.

    Examples
    --------
    >>> phase_times(spark.range(1))  # doctest: +SKIP
    {'analysis': 1, 'optimization': 3, 'planning': 5}
    """
    phases = _execution(frame).tracker().phases()
    times = {}
    for name in PHASES:
        found = phases.get(name)
        if found.isDefined():
            times[name] = int(found.get().durationMs())
    return times


def plan_tree(spark: SparkSession, frame: DataFrame) -> dict[str, Any]:
    """
    Give the executed plan, after adaptive execution, as Spark's event log writes it.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session.
    frame : pyspark.sql.DataFrame
        A query that has run.

    Returns
    -------
    dict
        ``nodeName``, ``simpleString``, ``children``, ``metrics`` (name and accumulator) of the
        root.

    Examples
    --------
    >>> plan_tree(spark, spark.range(1))["nodeName"]  # doctest: +SKIP
    'Range'
    """
    jvm: Any = spark._jvm  # noqa: SLF001
    plan = _execution(frame).executedPlan()
    info = jvm.org.apache.spark.sql.execution.SparkPlanInfo.fromSparkPlan(plan)
    ui = jvm.org.apache.spark.sql.execution.ui
    event = ui.SparkListenerSQLAdaptiveExecutionUpdate(0, "", info)
    tree: dict[str, Any] = json.loads(
        jvm.org.apache.spark.util.JsonProtocol.sparkEventToJsonString(event)
    )["sparkPlanInfo"]
    return tree


def nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """
    Walk the operators of a plan tree from the root.

    Below an `EmptyRelation` Spark shows the logical plan that it did not run: that is left out, as
    are the wrappers of generated code.

    Parameters
    ----------
    tree : dict
        As `plan_tree` gives it.

    Yields
    ------
    dict
        Every node.

    Examples
    --------
    >>> [node["nodeName"] for node in nodes({"nodeName": "Range", "children": []})]
    ['Range']
    """
    if tree["nodeName"].split(" ")[0] not in WRAPPERS:
        yield tree
    if tree["nodeName"] != "EmptyRelation":
        for child in tree.get("children", []):
            yield from nodes(child)


WANTED = {
    "rows_out_of_joins": ("Join", "number of output rows"),
    "shuffled_bytes": ("Exchange", "shuffle bytes written"),
    "sort_ms": ("Sort", "sort time"),
    "spilled_bytes": ("", "spill size"),
}
"""Sum over all operators whose name has the first text, of the metric named second."""


def wanted_metrics(tree: dict[str, Any]) -> dict[str, set[int]]:
    """
    Pick the accumulators whose sums are reported.

    Parameters
    ----------
    tree : dict
        As `plan_tree` gives it.

    Returns
    -------
    dict of str to set of int
        Accumulators by figure; a reused exchange or subquery counts once.

    Examples
    --------
    >>> metric = {"name": "sort time", "accumulatorId": 7}
    >>> wanted_metrics({"nodeName": "Sort", "metrics": [metric]})["sort_ms"]
    {7}
    """
    found: dict[str, set[int]] = {figure: set() for figure in WANTED}
    for node in nodes(tree):
        name = node["nodeName"].replace("CartesianProduct", "CartesianProductJoin")
        for metric in node.get("metrics", []):
            for figure, (operator, metric_name) in WANTED.items():
                if operator in name and metric["name"] == metric_name:
                    found[figure].add(int(metric["accumulatorId"]))
    return found


def metric_sums(spark: SparkSession, tree: dict[str, Any]) -> dict[str, int]:
    """
    Sum rows out of joins, shuffled bytes, sort time and spilled bytes of a finished plan.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session that ran it.
    tree : dict
        As `plan_tree` gives it.

    Returns
    -------
    dict of str to int
        By figure; an accumulator that is gone counts as 0.

    Examples
    --------
    >>> metric_sums(spark, plan_tree(spark, frame))["shuffled_bytes"]  # doctest: +SKIP
    59
    """
    context = spark._jvm.org.apache.spark.util.AccumulatorContext  # type: ignore[union-attr]  # noqa: SLF001
    sums = {}
    for figure, accumulators in wanted_metrics(tree).items():
        total = 0
        for number in accumulators:
            found = context.get(number)
            if found.isDefined():
                total += max(0, int(found.get().value()))
        sums[figure] = total
    return sums


def operator_counts(tree: dict[str, Any]) -> dict[str, int]:
    """
    Count the operators of a plan by name.

    Parameters
    ----------
    tree : dict
        As `plan_tree` gives it.

    Returns
    -------
    dict of str to int

    Examples
    --------
    >>> operator_counts({"nodeName": "Sort", "children": [{"nodeName": "Sort"}]})
    {'Sort': 2}
    """
    counts: dict[str, int] = {}
    for node in nodes(tree):
        name = node["nodeName"].split(" ")[0]
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))


def order_columns(frame: DataFrame) -> list[int]:
    """
    Find which output columns the outermost ORDER BY sorts on.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The query.

    Returns
    -------
    list of int
        Positions in the output, as far as the leading sort keys are plain output columns.

    Examples
    --------
    >>> order_columns(spark.sql("select 1 a, 2 b order by b limit 1"))  # doctest: +SKIP
    [1]
    """
    plan = _execution(frame).analyzed()
    output = plan.output()
    positions = {str(output.apply(at).exprId().id()): at for at in reversed(range(output.length()))}
    while plan.nodeName() in ("GlobalLimit", "LocalLimit", "Project", "WithCTE"):
        plan = plan.child() if plan.nodeName() != "WithCTE" else plan.plan()
    if plan.nodeName() != "Sort":
        return []
    found = []
    for at in range(plan.order().length()):
        key = plan.order().apply(at).child()
        if key.nodeName() != "AttributeReference":
            break
        position = positions.get(str(key.exprId().id()))
        if position is None:
            break
        found.append(position)
    return found
