"""
How long join operators take, against what the cost model says, and which constants would fit.

    python -m benchmarks.operators --memory 8g

Two things are measured on generated tables. First, joins of several sizes and widths, with each
operator forced by a hint, in turn. Selinger, in mode ``advise``, tells its costs for the same join.
What matters is the regret: the time of the operator that the model would pick over the time of the
fastest one. Second, single steps: scan, shuffle, reading a shuffle again, sort, aggregation, and
joins that return several rows for each row. All times together are equations for the constants of
``JoinCost``; the constants that fit them best are printed beside those in the code.
"""

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import selinger
from pyspark.sql import DataFrame, SparkSession

from benchmarks import commands
from benchmarks.paths import public_text
from benchmarks.progress import progress
from benchmarks.reporting.figures import Row, geometric_mean
from benchmarks.reporting.table import number, render
from benchmarks.runner import joincost
from benchmarks.runner.joincost import Measured, Side, Terms, paid, shared, step
from benchmarks.sessions import local

SLOTS = 2
PARTITIONS = 16
HINTS = {
    "BroadcastHashJoin(right)": "BROADCAST",
    "ShuffledHashJoin(right)": "SHUFFLE_HASH",
    "SortMergeJoin": "MERGE",
}
"""Operators, and the hints that force them."""

CONF = {
    # All operators are to be costed, whatever their memory.
    "spark.selinger.join.broadcastMaxBytes": "4g",
    "spark.selinger.join.broadcastTotalShare": "1.0",
    "spark.selinger.join.hashMemoryShare": "1.0",
    # Adaptive execution would merge partitions, and turn a join forced by a hint into another one.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}

JOINS = [
    (build, stream, columns)
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
"""Rows of the build side, rows of the streamed side, columns of each besides the key."""

STEPS = [(1_000_000, 1), (4_000_000, 1), (1_000_000, 8), (4_000_000, 8)]
"""Rows and columns of the tables on which single steps are measured."""

PAIRS = 4
"""Rows of the build side with the same key, in joins that multiply rows."""

FEW, MANY = 1000, 2_000_000
"""Groups of aggregations: those that fit a processor's cache, and those that do not."""


@dataclass(frozen=True)
class Case:
    """A query to be timed, and what it pays for."""

    name: str
    query: DataFrame
    terms: Terms


@dataclass
class Tables:
    """Generated tables, each written once as Parquet."""

    spark: SparkSession
    folder: Path

    def read(self, rows: int, keys: int, columns: int, prefix: str = "p") -> DataFrame:
        """Read a table with key ``k`` of so many values, and other columns."""
        path = self.folder / f"{rows}-{keys}-{columns}-{prefix}"
        if not path.exists():
            payload = [f"hash(id, {i}) * id AS {prefix}{i}" for i in range(columns)]
            numbers = self.spark.range(0, rows, 1, 8)
            table = numbers.selectExpr(f"pmod(id * 7919, {keys}) AS k", *payload)
            table.write.parquet(str(path))
        return self.spark.read.parquet(str(path))


def costs(join: DataFrame) -> dict[str, float]:
    """Read what the cost model says of a join."""
    prefix = "cost of "
    return {
        found.name.removeprefix(prefix): found.value
        for decision in selinger.explain(join).decisions
        for found in decision.numbers
        if found.name.startswith(prefix)
    }


def run(query: DataFrame) -> float:
    start = time.perf_counter()
    query.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def timed(cases: list[Case], runs: int) -> list[Measured]:
    """Run cases in turn, once unmeasured; the median of its runs is a case's time."""
    turns = [[run(case.query) for case in cases] for _ in range(runs + 1)]
    return [
        Measured(case.name, case.terms, statistics.median(seconds))
        for case, seconds in zip(cases, zip(*turns[1:], strict=True), strict=True)
    ]


def join_cases(tables: Tables, build: int, stream: int, columns: int, pairs: int) -> list[Case]:
    """Join two tables by every operator; each streamed row finds `pairs` rows."""
    keys = max(1, build // pairs)
    right = tables.read(build, keys, columns, "q")
    left = tables.read(stream, keys, columns)
    built, streamed = Side(build, columns), Side(stream, columns)
    around = (
        shared(step("scan", built) + step("scan", streamed), SLOTS)
        + shared(step("output", Side(stream * pairs, 2 * columns)), SLOTS)
        + paid(querySeconds=1e6)
    )
    cases = []
    for operator, hint in HINTS.items():
        # Tables that several rows share a key of outgrow the processor's cache: see `hashedPairs`.
        pair = "mergedPairNs" if operator == "SortMergeJoin" else "hashedPairNs"
        more = shared(paid(**{pair: stream * (pairs - 1.0)}), SLOTS)
        terms = around + joincost.join(operator, built, streamed, SLOTS) + more
        cases.append(Case(operator, left.join(right.hint(hint), "k"), terms))
    return cases


def measure_join(
    tables: Tables, build: int, stream: int, columns: int, runs: int
) -> tuple[Row, list[Measured]]:
    """Measure one join with every operator, and what the model says of it."""
    name = f"{build:,} x {stream:,} rows, {columns} columns"
    cases = join_cases(tables, build, stream, columns, 1)
    model = costs(
        tables.read(stream, build, columns).join(tables.read(build, build, columns, "q"), "k")
    )
    measured = timed(cases, runs)
    seconds = {case.name: case.seconds for case in measured}
    known = {operator: model[operator] for operator in HINTS if operator in model}
    pick = min(known, key=lambda operator: known[operator])
    row = {
        "name": name,
        "ratio": seconds[pick] / min(seconds.values()),
        "pick": pick,
        "fastest": min(seconds, key=lambda operator: seconds[operator]),
        "measured_s": seconds,
        "model_s": known,
        "equation_s": joincost.costs(HINTS, Side(build, columns), Side(stream, columns), SLOTS),
    }
    return row, [replace(case, name=f"{name}, {case.name}") for case in measured]


def step_cases(tables: Tables, rows: int, columns: int) -> list[Case]:
    key = tables.read(rows, rows, columns)
    parted = key.repartition(PARTITIONS, "k")
    side, two = Side(rows, columns), Side(rows, columns, single_key=False)
    scanned = shared(step("scan", side), SLOTS) + paid(querySeconds=1e6)
    shuffled = scanned + shared(step("shuffle", side), SLOTS) + paid(stageSeconds=1e6)

    def grouped(groups: int) -> Case:
        table = tables.read(rows, groups, columns).repartition(PARTITIONS, "k")
        miss = paid(groupMissNs=rows) if groups == MANY else paid()
        terms = shuffled + shared(paid(buildNs=rows) + miss, SLOTS)
        name = f"group {rows:,} rows to {groups:,}, {columns} columns"
        return Case(name, table.groupBy("k").count(), terms)

    where = f"{rows:,} rows, {columns} columns"
    cases = [
        Case(f"scan {where}", key, scanned),
        Case(f"shuffle {where}", parted, shuffled),
        Case(
            f"read again {where}",
            parted.union(parted),
            shuffled + shared(step("read", side), SLOTS),
        ),
        Case(
            f"sort by one number {where}",
            parted.sortWithinPartitions("k"),
            shuffled + shared(joincost.sort(side, SLOTS), SLOTS),
        ),
        Case(
            f"sort by two columns {where}",
            parted.sortWithinPartitions("k", "p0"),
            shuffled + shared(joincost.sort(two, SLOTS), SLOTS),
        ),
    ]
    return cases + ([grouped(groups) for groups in (FEW, MANY)] if columns == 1 else [])


def summarise(rows: list[Row], cases: list[Measured]) -> Row:
    """Sum the regrets up, fit the constants, and compare our equations with the model."""
    found = joincost.calibrate(cases)
    # As the lines for JoinCost have them: what came out as nothing stays as it is in the code.
    fitted = {name: one["fitted"] or one["code"] for name, one in found["constants"].items()}
    fitted |= found["fit"]["not_in_the_model"]
    by_name = {case.name: case for case in cases}
    picked = sum(row["measured_s"][row["pick"]] for row in rows)
    fastest = sum(row["measured_s"][row["fastest"]] for row in rows)
    refitted = sum(
        by_name[min(names, key=lambda name: by_name[name].predicted(fitted))].seconds
        for names in ([f"{row['name']}, {operator}" for operator in HINTS] for row in rows)
    )
    worst = max(rows, key=lambda row: float(row["ratio"]))
    drift = [
        abs(row["equation_s"][operator] / cost - 1)
        for row in rows
        for operator, cost in row["model_s"].items()
    ]
    return {
        "total_ratio": picked / fastest,
        "total_ratio_fitted": refitted / fastest,
        "geomean_ratio": geometric_mean([row["ratio"] for row in rows]),
        "worst": {"name": worst["name"], "ratio": worst["ratio"]},
        "equations_off_by": statistics.median(drift),
        **found,
    }


def measure(spark: SparkSession, folder: Path, runs: int, share: float) -> tuple[list[Row], Row]:
    """Measure all joins and steps, with this share of their rows."""
    tables = Tables(spark, folder)
    rows: list[Row] = []
    measured: list[Measured] = []
    small = [(int(rows * share), columns) for rows, columns in STEPS]
    multiplied = [(count // 4, count, columns) for count, columns in small]
    with progress(len(JOINS) + len(small) + len(multiplied)) as done:
        for build, stream, columns in JOINS:
            row, found = measure_join(
                tables, int(build * share), int(stream * share), columns, runs
            )
            rows.append(row)
            measured += found
            done(f"{row['name']}: picks {row['pick']}, fastest {row['fastest']}")
        groups = [step_cases(tables, count, columns) for count, columns in small]
        groups += [join_cases(tables, *sizes, pairs=PAIRS) for sizes in multiplied]
        for cases in groups:
            measured += timed(cases, runs)
            done(f"{cases[0].name} and {len(cases) - 1} more")
    return rows, summarise(rows, measured)


def main(arguments: list[str] | None = None) -> int:
    made = commands.parser("operators", __doc__)
    made.add_argument("--runs", type=int, default=2)
    made.add_argument("--memory", default="8g")
    made.add_argument("--share", type=float, default=1.0, help="of the rows, for a quick look")
    options = commands.parse(made, arguments)
    with (
        tempfile.TemporaryDirectory(prefix="operators-", ignore_cleanup_errors=True) as folder,
        local.session(options.memory, CONF) as spark,
    ):
        rows, summary = measure(spark, Path(folder), options.runs, options.share)
    lines = []
    for row in rows:
        took, model = row["measured_s"], row["model_s"]
        times = [f"{took[one]:.2f} / {number(model.get(one))}" for one in HINTS]
        lines.append([row["name"], *times, row["pick"], number(row["ratio"])])
    print(render(["measured / model, s", *HINTS, "pick", "regret"], lines) + "\n")
    lines = [
        [name, f"{known['code']:g}", number(known["fitted"], 1)]
        for name, known in summary["constants"].items()
    ]
    print(render(["constant of JoinCost, ns or ms", "in the code", "fitted"], lines))
    fit = summary["fit"]
    print(f"fit: {fit['cases']} times, median error {fit['median_error']:.0%}")
    print(f"\nregret in all: {summary['total_ratio']:.3f} with the constants in the code, ", end="")
    print(f"{summary['total_ratio_fitted']:.3f} with the fitted ones. If these have less, write")
    print(f"them into {public_text(str(joincost.JOIN_COST))}, build, and measure again:\n")
    print("\n".join(joincost.scala_lines(summary["constants"])))
    if summary["equations_off_by"] > 0.05:
        print("The equations in benchmarks/runner/joincost.py are no longer those of JoinCost.")
    partial = "" if options.share == 1.0 else f"only {options.share:g} of the rows"
    commands.finish("operators", options, rows, summary, partial=partial)
    return 0


if __name__ == "__main__":
    sys.exit(main())
