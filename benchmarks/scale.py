"""
TPC-DS planned at scales that nobody here has the disks for, from statistics of scale factor 1.

``python -m benchmarks.scale`` writes these statistics, ``tests/golden/tpcds-sf1-statistics.json``,
from the benchmark's data. ``tests/python/test_scale.py`` plans all queries by them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession
    from selinger import Decision, Explanation

STATISTICS = ROOT / "tests" / "golden" / "tpcds-sf1-statistics.json"
"""Statistics of TPC-DS at scale factor 1: numbers and names, no frequent values, no paths."""

FACTORS = (1, 100, 10_000)
"""Scale factors that are planned."""

CLUSTER = {
    "spark.selinger.cluster.cores": "1000",
    "spark.selinger.cluster.executors": "125",
    "spark.selinger.cluster.executorMemoryBytes": "32g",
    "spark.selinger.cluster.driverMemoryBytes": "16g",
    "spark.sql.shuffle.partitions": "2000",
}
"""A cluster of a thousand cores."""

# Rows of each table at these factors: TPC-DS 3.2.0, table 3-2.
_ROWS = {
    "call_center": (6, 30, 54),
    "catalog_page": (11_718, 20_400, 40_000),
    "catalog_returns": (144_067, 14_404_374, 1_440_033_112),
    "catalog_sales": (1_441_548, 143_997_065, 14_399_964_710),
    "customer": (100_000, 2_000_000, 65_000_000),
    "customer_address": (50_000, 1_000_000, 32_500_000),
    "customer_demographics": (1_920_800, 1_920_800, 1_920_800),
    "date_dim": (73_049, 73_049, 73_049),
    "household_demographics": (7_200, 7_200, 7_200),
    "income_band": (20, 20, 20),
    "inventory": (11_745_000, 399_330_000, 1_311_525_000),
    "item": (18_000, 204_000, 402_000),
    "promotion": (300, 1_000, 2_000),
    "reason": (35, 55, 70),
    "ship_mode": (20, 20, 20),
    "store": (12, 402, 1_500),
    "store_returns": (287_514, 28_795_080, 2_879_970_104),
    "store_sales": (2_880_404, 287_997_024, 28_799_983_563),
    "time_dim": (86_400, 86_400, 86_400),
    "warehouse": (5, 15, 25),
    "web_page": (60, 2_040, 4_002),
    "web_returns": (71_763, 7_197_670, 720_020_485),
    "web_sales": (719_384, 72_001_237, 7_199_963_324),
    "web_site": (30, 24, 78),
}


def growth(factor: int) -> dict[str, float]:
    """
    Give how many times the rows of scale factor 1 each table has.

    Parameters
    ----------
    factor : int
        One of `FACTORS`.

    Returns
    -------
    dict of str to float
        By table.

    Examples
    --------
    >>> growth(10_000)["item"] == 402_000 / 18_000
    True
    >>> set(growth(1).values())
    {1.0}
    """
    place = FACTORS.index(factor)
    return {table: rows[place] / rows[0] for table, rows in _ROWS.items()}


def problems(explanation: Explanation) -> list[str]:
    """
    Find what no plan may have: a number that is none, a broadcast too large, no time left.

    Parameters
    ----------
    explanation : selinger.Explanation
        Of one query.

    Returns
    -------
    list of str
        Empty if all is well.
    """
    found = [
        f"{decision.node}: {number}"
        for decision in explanation.decisions
        for number in decision.numbers
        if not 0 < number.value < float("inf")
    ]
    found += [
        f"{decision.node}: {decision.chosen} builds more than {decision.numbers}"
        for decision in explanation.decisions
        if _is_too_large(decision)
    ]
    if "planning.budgetMs was reached" in explanation.text or any(
        decision.reason == "PLANNING_BUDGET_EXCEEDED" for decision in explanation.decisions
    ):
        found.append("the planning budget was used up")
    return found


def _is_too_large(decision: Decision) -> bool:
    """Tell whether a broadcast was chosen whose build side exceeds the limit."""
    if decision.chosen is None or not decision.chosen.startswith("Broadcast"):
        return False
    numbers = {number.name: number.value for number in decision.numbers}
    side = "left" if decision.chosen.endswith("(left)") else "right"
    return numbers[f"{side} hash table"] > numbers["broadcast limit"]


def outline(decisions: Sequence[Decision]) -> dict[str, str]:
    """
    Give what was decided at each node, without numbers.

    Parameters
    ----------
    decisions : sequence of selinger.Decision
        Of one query.

    Returns
    -------
    dict of str to str
        Outcome, choice and reason, by rule and node; equal nodes are counted through.
    """
    seen: Counter[str] = Counter()
    found = {}
    for decision in decisions:
        if decision.outcome == "informed":
            continue
        node = f"{decision.rule}: {decision.node}"
        seen[node] += 1
        again = f" [{seen[node]}]" if seen[node] > 1 else ""
        parts = (decision.outcome, decision.chosen, decision.reason)
        found[node + again] = ", ".join(part for part in parts if part)
    return found


def changes(
    outlines: Mapping[int, Mapping[str, Mapping[str, str]]],
) -> dict[str, dict[str, dict[str, str | None]]]:
    """
    Give what is not decided alike at all scale factors.

    Parameters
    ----------
    outlines : mapping of int to mapping of str to mapping of str to str
        By scale factor, by query: what `outline` gives.

    Returns
    -------
    dict of str to dict
        By query, by node, by scale factor; None where there is no such node.

    Examples
    --------
    >>> changes({1: {"q": {"a": "x", "b": "z"}}, 100: {"q": {"a": "y", "b": "z"}}})
    {'q': {'a': {'1': 'x', '100': 'y'}}}
    """
    found = {}
    for query in sorted(next(iter(outlines.values()))):
        nodes = sorted({node for outline in outlines.values() for node in outline[query]})
        each = {
            node: {str(factor): outlines[factor][query].get(node) for factor in outlines}
            for node in nodes
        }
        differing = {node: by for node, by in each.items() if len(set(by.values())) > 1}
        if differing:
            found[query] = differing
    return found


def write_statistics(spark: SparkSession, folder: Path, target: Path) -> None:
    """
    Write the statistics of a folder of tables, without paths and values.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with Selinger.
    folder : pathlib.Path
        One Parquet file a table.
    target : pathlib.Path
        The file to write.
    """
    import selinger

    tables = {path.stem: str(path) for path in sorted(folder.glob("*.parquet"))}
    selinger.export_stats(spark, tables, target, values=False)
    lines = target.read_text(encoding="utf-8").splitlines(keepends=True)
    target.write_text(
        "".join(line for line in lines if not line.lstrip().startswith('"path":')),
        encoding="utf-8",
    )
    json.loads(target.read_text(encoding="utf-8"))


def main() -> None:
    """Write `STATISTICS` from the benchmark's data."""
    import selinger
    from pyspark.sql import SparkSession

    from benchmarks import data

    parser = argparse.ArgumentParser(description="Write statistics of TPC-DS, scale factor 1.")
    parser.add_argument("--target", type=Path, default=STATISTICS)
    arguments = parser.parse_args()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.selinger.stats.exportBudgetMs", "60000")
    spark = selinger.configure(builder).getOrCreate()
    try:
        write_statistics(spark, data.make("tpcds", 1), arguments.target)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
