"""
How long each join operator takes, against what the cost model says.

For builds and streams of several sizes and widths, each operator is forced by a hint and run in
turn; Selinger, in mode ``advise``, tells its costs for the same join. What matters is the regret:
the time of the operator that the model would pick over that of the fastest one.

Run it with ``python -m benchmarks.operators``, from the root of the repository.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import selinger

from benchmarks import micro
from benchmarks.figures import geometric_mean
from benchmarks.table import render

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HINTS = {
    "BroadcastHashJoin(right)": "BROADCAST",
    "ShuffledHashJoin(right)": "SHUFFLE_HASH",
    "SortMergeJoin": "MERGE",
}
"""Operators, and the hints that force them."""


@dataclass(frozen=True)
class Shape:
    """
    One join: each stream row finds one build row.

    Attributes
    ----------
    build, stream : int
        Rows.
    columns : int
        Payload columns of eight bytes on either side.
    """

    build: int
    stream: int
    columns: int

    @property
    def name(self) -> str:
        """Sizes and width, readable."""
        return f"{self.build:,} x {self.stream:,}, {self.columns} columns"


SHAPES = [
    Shape(build, stream, columns)
    for columns in (1, 8)
    for build, stream in (
        (10_000, 8_000_000),
        (250_000, 2_000_000),
        (250_000, 8_000_000),
        (1_000_000, 2_000_000),
        (1_000_000, 8_000_000),
        (4_000_000, 4_000_000),
    )
]


def write_side(spark: SparkSession, path: Path, rows: int, keys: int, columns: int) -> DataFrame:
    """
    Write one input as Parquet.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session.
    path : pathlib.Path
        Folder to write; left alone if it exists.
    rows, keys, columns : int
        Rows, distinct keys, and payload columns of eight bytes.

    Returns
    -------
    pyspark.sql.DataFrame
        The input, with columns ``k``, ``p0``, ``p1``, ...

    Examples
    --------
    >>> write_side(spark, Path("/tmp/side"), 10, 10, 1)  # doctest: +SKIP
    """
    if not path.exists():
        payload = [f"hash(id, {i}) * id AS p{i}" for i in range(columns)]
        spark.range(0, rows, 1, 8).selectExpr(
            f"pmod(id * 7919, {keys}) AS k", *payload
        ).write.parquet(str(path))
    return spark.read.parquet(str(path))


def costs(join: DataFrame) -> dict[str, float]:
    """
    Read what the cost model says of a join.

    Parameters
    ----------
    join : pyspark.sql.DataFrame
        A query with one join and no hint.

    Returns
    -------
    dict of str to float
        Seconds by operator.

    Examples
    --------
    >>> costs(spark.sql("..."))  # doctest: +SKIP
    """
    prefix = "cost of "
    return {
        number.name.removeprefix(prefix): number.value
        for decision in selinger.explain(join).decisions
        for number in decision.numbers
        if number.name.startswith(prefix)
    }


def seconds(join: DataFrame) -> float:
    """
    Run a query to its end and throw its rows away.

    Parameters
    ----------
    join : pyspark.sql.DataFrame
        The query.

    Returns
    -------
    float
        Wall time in seconds.

    Examples
    --------
    >>> seconds(spark.range(1))  # doctest: +SKIP
    """
    start = time.perf_counter()
    join.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def measure(spark: SparkSession, folder: Path, shape: Shape, runs: int) -> dict[str, object]:
    """
    Measure one shape with every operator, in turn.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with Selinger in mode ``advise``.
    folder : pathlib.Path
        Where inputs are kept.
    shape : Shape
        The join.
    runs : int
        Measured runs of each operator, after one that does not count.

    Returns
    -------
    dict
        The row of the results.

    Examples
    --------
    >>> measure(spark, Path("/tmp"), SHAPES[0], 1)  # doctest: +SKIP
    """
    build = write_side(
        spark, folder / f"b{shape.build}-{shape.columns}", shape.build, shape.build, shape.columns
    ).selectExpr("k", *[f"p{i} AS q{i}" for i in range(shape.columns)])
    stream = write_side(
        spark,
        folder / f"s{shape.stream}-{shape.build}-{shape.columns}",
        shape.stream,
        shape.build,
        shape.columns,
    )
    model = costs(stream.join(build, "k"))
    times: dict[str, list[float]] = {operator: [] for operator in HINTS}
    for run in range(runs + 1):
        for operator, hint in HINTS.items():
            took = seconds(stream.join(build.hint(hint), "k"))
            if run > 0:
                times[operator].append(took)
    medians = {operator: statistics.median(taken) for operator, taken in times.items()}
    known = {operator: cost for operator, cost in model.items() if operator in medians}
    pick = min(known, key=lambda operator: known[operator])
    return {
        "name": shape.name,
        "measured_s": times,
        "model_s": model,
        "pick": pick,
        "fastest": min(medians, key=lambda operator: medians[operator]),
        "regret": medians[pick] / min(medians.values()),
    }


def main() -> None:
    """Measure all shapes, print a table, and write ``benchmarks/results/operators.json``."""
    parser = argparse.ArgumentParser(description="Join operators: measured times and model costs.")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--memory", default="8g")
    options = parser.parse_args()
    # All operators are to be costed, whatever their memory.
    limits = {
        "spark.selinger.join.broadcastMaxBytes": "4g",
        "spark.selinger.join.broadcastTotalShare": "1.0",
        "spark.selinger.join.hashMemoryShare": "1.0",
    }
    spark = micro.session(options.memory, limits)
    version = spark.version
    folder = Path(tempfile.mkdtemp(prefix="selinger-operators-"))
    try:
        rows = []
        for shape in SHAPES:
            row = measure(spark, folder, shape, options.runs)
            rows.append(row)
            print(f"{row['name']}: picks {row['pick']}, fastest {row['fastest']}", flush=True)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    regrets = [float(str(row["regret"])) for row in rows]
    summary = {"geomean_regret": geometric_mean(regrets), "worst_regret": max(regrets)}
    micro.write("operators", version, f"generated, {len(SHAPES)} shapes", rows, summary)
    print(table(rows))
    print(", ".join(f"{name} {value:.2f}" for name, value in summary.items() if value))


def table(rows: list[dict[str, object]]) -> str:
    """
    Lay out the results.

    Parameters
    ----------
    rows : list of dict
        Rows as :func:`measure` gives them.

    Returns
    -------
    str

    Examples
    --------
    >>> table([])  # doctest: +SKIP
    """
    lines = []
    for row in rows:
        measured, model = row["measured_s"], row["model_s"]
        assert isinstance(measured, dict)
        assert isinstance(model, dict)
        cells = [str(row["name"])]
        for operator in HINTS:
            cost = f"{model[operator]:.2f}" if operator in model else "-"
            cells.append(f"{statistics.median(measured[operator]):.2f} / {cost}")
        lines.append([*cells, str(row["pick"]), f"{float(str(row['regret'])):.2f}"])
    return render(["measured / model, s", *HINTS, "pick", "regret"], lines)


if __name__ == "__main__":
    main()
