"""
What the benchmarks read of a session and its queries beyond PySpark's public interface.

Only this module touches `_jdf` and `_jvm`: planning, the finished plan as a tree, its
metrics, ANALYZE statistics, and the heap. Nothing here runs inside the measured time.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

WRAPPERS = ("WholeStageCodegen", "InputAdapter", "AdaptiveSparkPlan")


def _execution(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution()  # noqa: SLF001


def force_planning(frame: DataFrame) -> None:
    """Optimise and plan a query without running it."""
    _execution(frame).executedPlan()


def collect_garbage(spark: SparkSession) -> None:
    """Ask the session's JVM to collect garbage, so that a query does not pay for the one before."""
    spark._jvm.System.gc()  # type: ignore[union-attr]  # noqa: SLF001


def thread_ms(spark: SparkSession) -> float:
    """Tell the processor time of the JVM's thread that works for this one, in milliseconds."""
    jvm: Any = spark._jvm  # noqa: SLF001
    beans = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    return float(beans.getCurrentThreadCpuTime()) / 1e6


def heap_pools(spark: SparkSession) -> list[Any]:
    """Find the parts of the JVM's heap, each of which knows its peak."""
    jvm: Any = spark._jvm  # noqa: SLF001
    factory = jvm.java.lang.management.ManagementFactory
    return [pool for pool in factory.getMemoryPoolMXBeans() if pool.getType().name() == "HEAP"]


def plan_tree(spark: SparkSession, frame: DataFrame) -> dict[str, Any]:
    """Give the executed plan, after adaptive execution, as Spark's event log writes it."""
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
    """Walk the operators of a plan tree from the root.

    Below an `EmptyRelation` Spark shows the logical plan that it did not run: that is left out, as
    are the wrappers of generated code.
    """
    if tree["nodeName"].split(" ")[0] not in WRAPPERS:
        yield tree
    if tree["nodeName"] != "EmptyRelation":
        for child in tree.get("children", []):
            yield from nodes(child)


WANTED = {
    "rows_out_of_joins": ("Join", "number of output rows"),
    "shuffled_bytes": ("Exchange", "shuffle bytes written"),
}
"""Sum over all operators whose name has the first text, of the metric named second."""


ROWS = ("number of output rows", "shuffle records written")
JOINS = {
    "LeftOuter": "⟕",
    "RightOuter": "⟕",
    "FullOuter": "⟗",
    "LeftSemi": "⋉",
    "LeftAnti": "▷",
    "ExistenceJoin": "∃",
}
"""How joins are drawn; all others are inner joins."""


def wanted_metrics(tree: dict[str, Any]) -> dict[str, set[int]]:
    """Pick the accumulators whose sums are reported."""
    found: dict[str, set[int]] = {figure: set() for figure in WANTED}
    for node in nodes(tree):
        name = node["nodeName"].replace("CartesianProduct", "CartesianProductJoin")
        for metric in node.get("metrics", []):
            for figure, (operator, metric_name) in WANTED.items():
                if operator in name and metric["name"] == metric_name:
                    found[figure].add(int(metric["accumulatorId"]))
    return found


def metric_sums(spark: SparkSession, tree: dict[str, Any]) -> dict[str, int]:
    """Sum the rows out of joins and the shuffled bytes of a finished plan."""
    context = spark._jvm.org.apache.spark.util.AccumulatorContext  # type: ignore[union-attr]  # noqa: SLF001
    sums = dict.fromkeys(WANTED, 0)
    for figure, accumulators in wanted_metrics(tree).items():
        for number in accumulators:
            found = context.get(number)
            if found.isDefined():
                sums[figure] += max(0, int(found.get().value()))
    return sums


def drawn(spark: SparkSession, tree: dict[str, Any], depth: int = 0) -> list[dict[str, Any]]:
    """Give a finished plan as Selinger's explain does in JSON, for sessions without Selinger."""
    context = spark._jvm.org.apache.spark.util.AccumulatorContext  # type: ignore[union-attr]  # noqa: SLF001
    name, text = tree["nodeName"].strip(), tree["simpleString"]
    entry: dict[str, Any] = {"depth": depth, "name": name}
    for metric in tree.get("metrics", []):
        found = context.get(int(metric["accumulatorId"])) if metric["name"] in ROWS else None
        if found is not None and found.isDefined():
            entry["rows"] = found.get().value()
    inputs = tree.get("children", []) if name != "EmptyRelation" else []
    if "Join" in name or name == "CartesianProduct":
        kind = next((kind for kind in JOINS if f", {kind}" in text), "")
        entry["symbol"] = JOINS.get(kind, "⋈")
        inputs = inputs[::-1] if kind == "RightOuter" else inputs
    if location := tree.get("metadata", {}).get("Location"):
        entry["table"] = location.rstrip("]").rpartition("/")[2].removesuffix(".parquet")
    return [entry, *(below for one in inputs for below in drawn(spark, one, depth + 1))]


def order_columns(frame: DataFrame) -> list[int]:
    """Find which output columns the outermost ORDER BY sorts on."""
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


def register(spark: SparkSession, tables: Mapping[str, str], kept: Path) -> None:
    """
    Make catalog tables, with ANALYZE statistics kept in files, or else collected now and kept.

    Spark's in-memory catalog forgets them with the session, and a metastore would need a database
    of its own. So they are kept in Java's serialised form, for later sessions.
    """
    folder = kept / f"spark-{spark.version}"
    folder.mkdir(parents=True, exist_ok=True)
    jvm: Any = spark._jvm  # noqa: SLF001
    catalog = spark._jsparkSession.sessionState().catalog()  # noqa: SLF001
    utils = jvm.org.apache.spark.util.Utils
    for name, path in tables.items():
        spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{path}'")
        table = jvm.org.apache.spark.sql.catalyst.TableIdentifier(name)
        file = folder / f"{name}.ser"
        if file.is_file():
            found = utils.deserialize(bytearray(file.read_bytes()))
            catalog.alterTableStats(table, jvm.scala.Option.apply(found))
            continue
        spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")
        temp = file.with_suffix(".part")
        temp.write_bytes(bytes(utils.serialize(catalog.getTableMetadata(table).stats().get())))
        temp.replace(file)
