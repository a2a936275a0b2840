"""What a bug report needs of a query: plans, decisions, settings and versions, without any data."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selinger._render import quantity
from selinger.errors import ExplainMissing
from selinger.explain import printed_in, section
from selinger.session import disabled, read_settings, status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Report", "report"]

#: Settings of Spark that explain a plan; none of them holds a path, a name or a secret.
_SPARK_SETTINGS = (
    "spark.driver.memory",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.executor.memory",
    "spark.memory.fraction",
    "spark.sql.adaptive.autoBroadcastJoinThreshold",
    "spark.sql.adaptive.coalescePartitions.enabled",
    "spark.sql.adaptive.enabled",
    "spark.sql.adaptive.skewJoin.enabled",
    "spark.sql.ansi.enabled",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.cbo.enabled",
    "spark.sql.cbo.joinReorder.enabled",
    "spark.sql.crossJoin.enabled",
    "spark.sql.exchange.reuse",
    "spark.sql.extensions",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.join.preferSortMergeJoin",
    "spark.sql.optimizer.excludedRules",
    "spark.sql.shuffle.partitions",
    "spark.sql.sources.useV1SourceList",
)
#: Units of settings whose values are numbers or words of a list.
_HARMLESS = ("bytes", "ms", "share", "factor", "count", "flag", "choice")


@dataclass(frozen=True)
class Report:
    """A bug report about one query; prints as Markdown.

    Attributes
    ----------
    text : str
        The report.
    path : pathlib.Path or None
        The file that it was written to, if any.
    """

    text: str
    path: Path | None = None

    def __str__(self) -> str:
        return self.text


def report(df: DataFrame, path: str | Path | None = None) -> Report:
    """Write what a bug report about a query needs: plans, decisions, settings and versions.

    It holds no value of the data and no literal of the query, nor the query itself. What it does
    hold: names of tables and columns, types, functions, row counts and sizes. Read it before you
    pass it on.

    The plan is the one that the DataFrame has, as for `explain`: run the query before, in a
    classic session, and the report has true rows too. Spark's own plan of the same query is made
    anew and not run.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        A classic or a Connect DataFrame.
    path : str or pathlib.Path, optional
        A file to write the report to; an existing one is replaced.

    Returns
    -------
    Report
        The report, which prints as Markdown.

    Raises
    ------
    ExplainMissing
        If Spark shows no section of Selinger's.
    NotLoaded, UnsupportedSpark
        If the session runs without Selinger.

    Examples
    --------
    >>> import selinger
    >>> secret = spark.sql("SELECT * FROM range(9) a JOIN range(5) b USING (id) WHERE id < 3")
    >>> print(selinger.report(secret).text.splitlines()[0])
    # Selinger report
    """
    spark = df.sparkSession
    ours = _read(df)
    with disabled(spark):
        # An alias makes a new DataFrame, with a plan of its own.
        stock = _read(df.alias("selinger_report"))
    text = "\n".join(_markdown(spark, ours, stock)) + "\n"
    if path is None:
        return Report(text)
    file = Path(path)
    file.write_text(text, "utf-8")
    return Report(text, file)


def _read(df: DataFrame) -> Mapping[str, Any]:
    body = section(printed_in(df.sparkSession, df, "report"))
    try:
        found = json.loads(body)
    except ValueError as error:
        status(df.sparkSession)
        raise ExplainMissing(
            "Spark shows no section of Selinger's that a report can be made of.",
            "make the session with selinger.configure(builder), which names the explain provider",
            "unset spark.sql.maxPlanStringLength, which cuts long texts",
        ) from error
    if not isinstance(found, dict):
        raise ExplainMissing(f"Selinger's section cannot be read: {type(found).__name__}.")
    return found


def _markdown(
    spark: SparkSession, ours: Mapping[str, Any], stock: Mapping[str, Any]
) -> Iterator[str]:
    yield "# Selinger report"
    yield ""
    yield f"{ours.get('verdict') or 'Nothing was decided.'}"
    yield ""
    yield "Literals, texts of queries and paths are left out: `?:int` is a literal of that type."
    yield from _listed("Versions", [*ours["versions"].items(), *_python_versions()])
    yield from _listed("Settings of Selinger that are not the default", _our_settings(spark))
    yield from _listed("Settings of Spark that are set", _spark_settings(spark))
    yield "\n## Decisions\n"
    yield from (line for decision in ours["decisions"] for line in _decision(decision))
    if ours["inputs"]:
        inputs = [
            f"- {i['name']}: {quantity(i['estimated'], 'rows')} estimated ({i['origin']}), "
            f"{quantity(i['actual'])} came"
            for i in ours["inputs"]
        ]
        yield "\n## Estimated and true rows of the inputs of joins\n"
        yield from inputs
    yield from _plan("Plan with Selinger", ours["plan"])
    yield from _plan("Plan of stock Spark", stock["plan"])


def _listed(title: str, pairs: Sequence[tuple[str, Any]]) -> Iterator[str]:
    yield f"\n## {title}\n"
    if not pairs:
        yield "None."
    for key, value in pairs:
        yield f"- {key}: {value}"


def _python_versions() -> list[tuple[str, str]]:
    import pyspark

    return [("PySpark", pyspark.__version__), ("Python", platform.python_version())]


def _our_settings(spark: SparkSession) -> list[tuple[str, str]]:
    return [
        (one.key, one.value if one.unit in _HARMLESS else "(set)")
        for one in read_settings(spark)
        if one.value != one.default
    ]


def _spark_settings(spark: SparkSession) -> list[tuple[str, str]]:
    found = [(key, spark.conf.get(key, None)) for key in _SPARK_SETTINGS]
    return [(key, value) for key, value in found if value is not None]


def _decision(entry: Mapping[str, Any]) -> Iterator[str]:
    chosen = " instead of ".join(str(entry[f]) for f in ("chosen", "stock") if entry.get(f))
    title = f" {entry['title']}" if entry.get("title") else ""
    error = f", {entry['error']}" if entry.get("error") else ""
    yield (
        f"- {entry['rule']}{title}: {entry['outcome']}, {entry['reason']} ({entry['phase']})"
        f"{f': {chosen}' if chosen else ''}{error}"
    )
    numbers = [
        f"{n['name']} {quantity(n['value'], '' if n['unit'] in n['name'].split() else n['unit'])} "
        f"({n['origin']})"
        for n in entry["numbers"]
    ]
    if numbers:
        yield f"  - {', '.join(numbers)}"


def _plan(title: str, lines: Sequence[str]) -> Iterator[str]:
    yield f"\n## {title}\n"
    yield "```"
    yield from lines
    yield "```"
