"""A small failure as a file of SQL, which stays as a test.

A file holds the data as views over VALUES, so that it can be run by hand, the settings as
comments, and the query. The test writes the data to files as they were when it failed, since
Selinger reads their footers, and compares Selinger's answer with stock Spark's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fuzz import campaign, options, verdict
from tests.fuzz.data import Column, Table, values_sql
from tests.fuzz.shrink import Failure, shrink
from tests.fuzz.sqltypes import SqlType, Value, parse_type
from tests.fuzz.tree import SPARK, is_ordered, leaves_sign_of_zero_open
from tests.fuzz.verdict import Verdict, judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.fuzz.campaign import Finding, Worker
    from tests.fuzz.engines import Outcome, Spark
    from tests.fuzz.options import Conf

# ---- from a finding to a file --------------------------------------------------------------


def show(root: SparkSession, seed: int, index: int) -> None:
    """Print a case."""
    tables = campaign.make_tables(seed, index)
    case = campaign.make_case(seed, index, tables, options.read_space(root))
    print(case.query.sql(SPARK), f"both: {case.common}", *case.variants, sep="\n", flush=True)


def reduce(
    worker: Worker, finding: Finding, seconds: float = 90.0
) -> tuple[Failure, Verdict | None]:
    """Make a finding small; without a verdict if it does not come again."""
    case, wanted = finding.case, finding.verdict
    loaded: list[Table] = []
    last: Verdict | None = None

    def fails(failure: Failure) -> bool:
        nonlocal loaded, last
        if loaded != failure.tables:
            _reload(worker.spark, loaded, failure.tables)
            if wanted.kind == verdict.DUCK:
                worker.duck.load(failure.tables)
            loaded = list(failure.tables)
        tried = replace(case, tables=loaded, query=failure.query, common=failure.common)
        judged = worker.again(tried, failure.conf, wanted.kind)
        if (judged.kind, judged.error) == (wanted.kind, wanted.error):
            last = judged
            return True
        return False

    failure = _whole(finding)
    worker.spark.load([])
    return (shrink(failure, fails, seconds) if fails(failure) else failure), last


def _reload(spark: Spark, before: list[Table], after: list[Table]) -> None:
    known = {table.name: table for table in before}
    for table in after:
        if known.get(table.name) is not table:
            spark.put(table)


#: Stands at the head of a file that is no test, since it would pass.
NOT_REPRODUCED = "-- NOT REPRODUCED ALONE"


def keep(
    worker: Worker, finding: Finding, tests: Path, others: Path, seconds: float = 90.0
) -> Path:
    """Make a finding small, and write it to a file.

    Parameters
    ----------
    worker : Worker
        Runs it again.
    finding : Finding
        What was found.
    tests : pathlib.Path
        The folder of those that fail again: `replay` shows them, so they stay as tests.
    others : pathlib.Path
        The folder of all others. What hangs on cases that ran before does not fail alone, and
        what DuckDB answers, or an error of the fuzzer, is nothing that `replay` compares.
    seconds : float
        How long to make it smaller.
    """
    failure: Failure = _whole(finding)
    judged: Verdict | None = None
    if finding.verdict.kind != verdict.BROKEN:
        failure, judged = reduce(worker, finding, seconds)
    first = "" if judged else f"{NOT_REPRODUCED}\n"
    is_test = judged is not None and judged.kind in verdict.DIFFERENCES
    folder = tests if is_test else others
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"seed{finding.case.seed}_case{finding.case.index}.sql"
    text = first + kept_text(failure, judged or finding.verdict, f"make fuzz {finding.case.name}")
    path.write_text(text, encoding="utf-8")
    kept_as = "kept as the test" if is_test else "no test, written to"
    print(f"{finding.case.name}: {kept_as} {path}\n{text}", flush=True)
    return path


def _whole(finding: Finding) -> Failure:
    case = finding.case
    return Failure(case.tables, case.query, case.common, finding.conf)


def kept_text(failure: Failure, judged: Verdict, origin: str) -> str:
    """Write a failure as a file of SQL."""
    detail = " ".join(judged.detail.split())[:400]
    lines = [f"-- Found by {origin}: {judged.kind}.", f"-- {detail}"]
    lines += [f"-- both: {key}={value}" for key, value in sorted(failure.common.items())]
    lines += [f"-- selinger: {key}={value}" for key, value in sorted(failure.conf.items())]
    ordered, zero_open = is_ordered(failure.query), leaves_sign_of_zero_open(failure.query)
    lines += [f"-- compare: ordered={ordered} zero_open={zero_open}"]
    for table in failure.tables:
        layout = (
            f"files={table.files} group_rows={table.group_rows} "
            f"dictionary={table.dictionary} integers={table.integers} "
            f"source={table.source} v2={table.v2}"
        )
        lines += [f"-- layout: {table.name} {layout}", f"{values_sql(table)};", ""]
    return "\n".join([*lines, f"{failure.query.sql(SPARK)};", ""])


# ---- from a file to a test -----------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """A file of SQL as it is read."""

    views: list[str]
    query: str
    common: Conf
    conf: Conf
    layouts: dict[str, dict[str, str]]
    ordered: bool
    zero_open: bool


def read(text: str) -> Kept:
    """Read a file that `kept_text` wrote, or one that was written by hand like that."""
    notes = [line[3:] for line in text.splitlines() if line.startswith("-- ")]
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    statements = [s.strip() for s in re.split(r";[ \t]*(?:\n|\Z)", code) if s.strip()]
    layouts = {}
    for note in notes:
        if note.startswith("layout: "):
            name, *rest = note.removeprefix("layout: ").split()
            layouts[name] = dict(part.split("=", 1) for part in rest)
    flags = next((n for n in notes if n.startswith("compare: ")), "")
    return Kept(
        views=statements[:-1],
        query=statements[-1],
        common=_settings(notes, "both: "),
        conf={options.MODE: "on", **_settings(notes, "selinger: ")},
        layouts=layouts,
        ordered="ordered=True" in flags,
        zero_open="zero_open=True" in flags,
    )


def _settings(notes: list[str], prefix: str) -> Conf:
    pairs = [n.removeprefix(prefix).split("=", 1) for n in notes if n.startswith(prefix)]
    return {key.strip(): value for key, value in pairs}


def replay(spark: Spark, text: str) -> tuple[Verdict, Outcome]:
    """Run a kept file again; the outcome is stock Spark's."""
    kept = read(text)
    spark.load([])
    for view in kept.views:
        spark.put(_materialised(spark, view, kept.layouts))
    stock = spark.run(kept.query, {**kept.common, **options.OFF})
    found = spark.run(kept.query, {**kept.common, **kept.conf})
    judged = judge(stock, found, ordered=kept.ordered, zero_open=kept.zero_open)
    return judged, stock


def _materialised(spark: Spark, view: str, layouts: dict[str, dict[str, str]]) -> Table:
    found = re.search(r"VIEW\s+(\w+)", view, re.I)
    if found is None:
        raise ValueError(f"no statement that makes a view: {view[:100]}")
    name = found.group(1)
    session: Any = spark.session
    session.sql(view)
    frame = session.table(name)
    types = [(column, parse_type(kind)) for column, kind in frame.dtypes]
    texts = frame.selectExpr(*(f"CAST({column} AS STRING)" for column, _ in types)).collect()
    rows = [tuple(_parse(t, v) for (_, t), v in zip(types, row, strict=True)) for row in texts]
    layout = layouts.get(name, {})
    table = Table(name, [Column(column, kind, tame=False) for column, kind in types], rows)
    return replace(
        table,
        files=int(layout.get("files", "1")),
        group_rows=int(layout.get("group_rows", "1000")),
        dictionary=layout.get("dictionary", "True") == "True",
        integers=layout.get("integers", "False") == "True",
        source=layout.get("source", "parquet"),
        v2=layout.get("v2", "False") == "True",
    )


def _parse(kind: SqlType, text: str | None) -> Value:
    import datetime as dt
    from decimal import Decimal

    if text is None or kind.kind == "string":
        return text
    if kind.is_integer:
        return int(text)
    readers: dict[str, Any] = {
        "double": float,
        "decimal": Decimal,
        "boolean": lambda t: t == "true",
        "date": dt.date.fromisoformat,
        "timestamp": _timestamp,
    }
    return readers[kind.kind](text)


def _timestamp(text: str) -> Value:
    import datetime as dt

    form = "%Y-%m-%d %H:%M:%S.%f" if "." in text else "%Y-%m-%d %H:%M:%S"
    return dt.datetime.strptime(text, form)
