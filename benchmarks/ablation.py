"""
What each mechanism of the ordering of joins brings.

    python -m benchmarks.ablation

The same queries are planned with all mechanisms and with each left out; nothing is executed. Joins
of generated forms give costs of orders, and planning times at 20 and 100 relations. Queries of
TPC-DS, planned from statistics at scale factors 10 and 1000 without data, give costs of orders and
tell which queries get another plan: only these need be run to see what a mechanism does to them.

Costs are those of the whole model, whatever was left out to find an order. Planning times are
those of the rule that orders joins, the least of several plannings of a query.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from benchmarks import scale
from benchmarks.estimates import test_jar
from benchmarks.paths import RESULTS
from benchmarks.queries import load_queries
from benchmarks.setting import commit, machine, versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAIN = "io.selinger.bench.AblationBench"
EXTENSIONS = "io.selinger.SelingerExtension,io.selinger.bench.PlanRecorder"
SHAPES = "chain,cycle,star,clique,snowflake,tree,shared"
TIMED = (20, 100)
"""Relations at which planning times are given."""

SCALES: dict[int, tuple[float, dict[str, str]]] = {
    10: (0.5, {"spark.sql.shuffle.partitions": "16"}),
    1000: (0.5, scale.CLUSTER),
}
"""By scale factor: where it is between the two of the specification, and the cluster."""

Row = dict[str, Any]


def growth(factor: int) -> dict[str, float]:
    """
    Give how many times the rows of scale factor 1 each table has, between known scale factors.

    Parameters
    ----------
    factor : int
        One of `SCALES`.

    Returns
    -------
    dict of str to float
        By table: the geometric mean of the scale factors around it.

    Examples
    --------
    >>> round(growth(10)["store_sales"])
    10
    """
    below, above = (scale.growth(known) for known in ((1, 100) if factor < 100 else (100, 10_000)))
    share = SCALES[factor][0]
    return {table: below[table] ** (1 - share) * above[table] ** share for table in below}


def ask_spark(request: Row, jar: Path, memory: str) -> list[Row]:
    """
    Plan in a session of Spark.

    Parameters
    ----------
    request : dict
        What `AblationBench` reads.
    jar : pathlib.Path
        The jar with that class.
    memory : str
        Heap of the session.

    Returns
    -------
    list of dict
        One a query and mechanism.

    Raises
    ------
    subprocess.CalledProcessError
        The session failed; its messages are on standard error.
    """
    from selinger.install import jar_path

    conf = {
        "spark.sql.extensions": EXTENSIONS,
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.selinger.failOnError": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.maxPlanStringLength": "100000000",
        "spark.sql.debug.maxToStringFields": "10000",
        "spark.sql.session.timeZone": "UTC",
    }
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    with tempfile.TemporaryDirectory(prefix="ablation-") as temp:
        asked, answered = Path(temp, "request.json"), Path(temp, "answer.jsonl")
        asked.write_text(json.dumps({**request, "out": str(answered)}), encoding="utf-8")
        command = [submit, "--class", MAIN, "--master", "local[2]", "--driver-memory", memory]
        command += [part for item in conf.items() for part in ("--conf", "=".join(item))]
        subprocess.run(
            [*command, "--jars", jar_path(), str(jar), str(asked)],
            check=True,
            cwd=temp,
            env={**os.environ, "SPARK_LOCAL_DIRS": temp, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        return [json.loads(line) for line in answered.read_text(encoding="utf-8").splitlines()]


def percentile(values: Sequence[float], share: float) -> float:
    """
    Give the value that a share of all does not exceed.

    Examples
    --------
    >>> percentile([3.0, 1.0, 2.0], 0.5)
    2.0
    """
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]


def compare(rows: Iterable[Row]) -> list[Row]:
    """
    Sum each mechanism up against all of them.

    Parameters
    ----------
    rows : iterable of dict
        What `ask_spark` returns.

    Returns
    -------
    list of dict
        ``name``; ``ratio``, the geometric mean of the costs without it over those with it;
        ``worst`` of these and the query; ``best``; ``cost`` by set of queries; ``ms_<relations>``
        with median, 95th percentile and maximum without it over the same with it; ``plans``, the
        names of queries with another plan by set.

    Examples
    --------
    >>> base = {"set": "star", "query": "a", "relations": 20}
    >>> made = compare([{**base, "without": "", "cost": 1.0, "ms": 2.0},
    ...                 {**base, "without": "x", "cost": 2.0, "ms": 1.0}])
    >>> made[0]["name"], made[0]["ratio"], made[0]["ms_20"]
    ('x', 2.0, [0.5, 0.5, 0.5])
    """
    by: dict[str, dict[tuple[str, str], Row]] = {}
    for row in rows:
        by.setdefault(row["without"], {})[row["set"], row["query"]] = row
    full = by.pop("")

    def times(found: dict[tuple[str, str], Row], relations: int) -> list[float]:
        ms = [row["ms"] for row in found.values() if row.get("relations") == relations]
        return [percentile(ms, share) for share in (0.5, 0.95, 1.0)] if ms else []

    made = []
    for name, found in by.items():
        ratios = {
            key: row["cost"] / full[key]["cost"]
            for key, row in found.items()
            if full[key]["cost"] > 0
        }
        sets = dict.fromkeys(key[0] for key in found)
        worst, best = max(ratios, key=ratios.__getitem__), min(ratios, key=ratios.__getitem__)
        result: Row = {
            "name": name,
            "ratio": mean(ratios.values()),
            "worst": [round(ratios[worst], 4), ", ".join(worst)],
            "best": [round(ratios[best], 4), ", ".join(best)],
            "cost": {s: mean(r for key, r in ratios.items() if key[0] == s) for s in sets},
            "plans": {
                s: sorted(
                    key[1]
                    for key, row in found.items()
                    if key[0] == s and row["plan"] != full[key]["plan"]
                )
                for s in sets
                if any(key[0] == s and "plan" in row for key, row in found.items())
            },
        }
        for n in TIMED:
            pairs = zip(times(found, n), times(full, n), strict=True)
            result[f"ms_{n}"] = [round(without / base, 3) for without, base in pairs]
        made.append(result)
    return made


def mean(ratios: Iterable[float]) -> float:
    """Give the geometric mean, 1 of nothing."""
    logs = [math.log(ratio) for ratio in ratios]
    return round(math.exp(sum(logs) / len(logs)), 4) if logs else 1.0


def table(rows: Sequence[Row]) -> str:
    """Show the comparison, one mechanism a line."""
    lines = [["without", "cost", "worst", "ms at 20", "ms at 100", "other plans"]]
    for row in rows:
        times = ["/".join(f"{ratio:.2f}" for ratio in row[f"ms_{n}"]) for n in TIMED]
        plans = ", ".join(f"{name}: {len(found)}" for name, found in row["plans"].items())
        lines.append([row["name"], f"{row['ratio']:.3f}", f"{row['worst'][0]:.2f}", *times, plans])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def main(arguments: list[str] | None = None) -> int:
    """Plan, print a table, and write ``benchmarks/results/ablation.json``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    add = parser.add_argument
    add("--mechanisms", default="", help="those to leave out, parted by commas; default: each")
    add("--sizes", default="8,14,20,40,100", help="relations of generated joins; empty: none")
    add("--shapes", default=SHAPES, help="forms of generated joins")
    add("--seeds", type=int, default=2, help="queries of each form and size, twice: mixed or not")
    add("--plannings", type=int, default=2, help="of each, of which the quickest counts")
    add("--warmups", type=int, default=1, help="rounds before anything is measured")
    add("--scales", default="10,1000", help="scale factors of TPC-DS; empty: none")
    add("--memory", default="3g", help="heap of the session")
    add("--out", type=Path, default=RESULTS / "ablation.json")
    add("--jar", type=Path, default=test_jar(), help="the jar with the benchmarks' classes")
    options = parser.parse_args(arguments)
    request = {
        "mechanisms": [name for name in options.mechanisms.split(",") if name],
        "shapes": options.shapes.split(","),
        "sizes": [int(size) for size in options.sizes.split(",") if size],
        "seeds": options.seeds,
        "plannings": options.plannings,
        "warmups": options.warmups,
    }
    queries = [{"name": q.name, "text": q.spark} for q in load_queries("tpcds").values()]
    scales = [
        {"name": f"TPC-DS {factor}", "growth": growth(factor), "conf": SCALES[factor][1]}
        for factor in map(int, filter(None, options.scales.split(",")))
    ]
    statistics = scale.STATISTICS.read_text(encoding="utf-8")
    asked = {**request, "queries": queries, "scales": scales, "statistics": statistics}
    found = ask_spark(asked, options.jar, options.memory)
    rows = compare(found)
    results: Row = {
        "benchmark": "ablation",
        "command": "python -m benchmarks.ablation " + " ".join(arguments or sys.argv[1:]),
        "commit": commit(),
        "spark": versions()["spark"],
        "machine": machine(),
        "rows": rows,
        "summary": {"mechanisms": len(rows), "planned": len(found)},
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
