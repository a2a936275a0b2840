"""
How long the search for an order of joins takes, and how good its orders are.

    python -m benchmarks.planning

Joins of generated forms (chains, cycles, stars, cliques, snowflakes, random trees, and one key
that all relations share) of 5 to 100 relations with random statistics, half of them with outer,
semi and anti joins, go through the rule that orders joins, in a warm JVM; nothing is executed.
The time of a query is the median of three plannings, one after the other. Costs are those of the
rule's own model: of the order found, up to 30 relations of the greedy order, and up to 18 of the
best of all orders, where these can be tried.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyspark

from benchmarks.estimates import test_jar
from benchmarks.paths import RESULTS
from benchmarks.profiles import public_text
from benchmarks.progress import end_cleanly
from benchmarks.qerror import percentile
from benchmarks.setting import commit, machine, versions

MAIN = "io.selinger.bench.PlanningBench"
SHAPES = ("chain", "cycle", "star", "clique", "snowflake", "tree", "shared")
SIZES = (5, 8, 10, 12, 14, 16, 18, 20, 30, 50, 75, 100)

Row = dict[str, Any]


def parser() -> argparse.ArgumentParser:
    """
    Make the parser of the command line.

    Returns
    -------
    argparse.ArgumentParser

    Examples
    --------
    >>> parser().parse_args([]).seeds
    5
    """
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.planning",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("--sizes", default=",".join(map(str, SIZES)), help="numbers of relations")
    add("--shapes", default=",".join(SHAPES), help="forms of the joins")
    add("--seeds", type=int, default=5, help="queries of each form and size, twice: mixed or not")
    add("--warmups", type=int, default=4, help="rounds over all forms before anything is measured")
    add("--pairs", type=int, default=1_200_000, help="that an exhaustive search may look at")
    add("--memory", default="2g", help="heap of the session")
    add("--jar", type=Path, default=test_jar(), help="the jar with the benchmarks' classes")
    return made


def ask_spark(request: Row, jar: Path, memory: str) -> list[Row]:
    """
    Plan in a session of Spark.

    Parameters
    ----------
    request : dict
        ``shapes``, ``sizes``, ``seeds``, ``warmups``, ``exhaustivePairs``.
    jar : pathlib.Path
        The jar with the class that does it.
    memory : str
        Heap of the session.

    Returns
    -------
    list of dict
        One a query.

    Raises
    ------
    subprocess.CalledProcessError
        The session failed; its messages are on standard error.

    Examples
    --------
    >>> ask_spark({"shapes": ["star"], "sizes": [5]}, Path("tests.jar"), "2g")  # doctest: +SKIP
    []
    """
    from selinger.install import jar_path

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    conf = ["--conf", "spark.log.level=ERROR", "--conf", "spark.ui.enabled=false"]
    with tempfile.TemporaryDirectory(prefix="planning-") as temp:
        asked, answered = Path(temp, "request.json"), Path(temp, "answer.jsonl")
        asked.write_text(json.dumps({**request, "out": str(answered)}), encoding="utf-8")
        command = [str(submit), "--class", MAIN, "--master", "local[1]", "--driver-memory", memory]
        subprocess.run(
            [*command, *conf, "--jars", jar_path(), str(jar), str(asked)],
            check=True,
            cwd=temp,
            env={**os.environ, "SPARK_LOCAL_DIRS": temp, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        return [json.loads(line) for line in answered.read_text(encoding="utf-8").splitlines()]


def summarise(rows: Sequence[Row]) -> Row:
    """
    Summarise the queries.

    Parameters
    ----------
    rows : sequence of dict
        One a query.

    Returns
    -------
    dict
        ``p95_ms_<relations>`` of each size, ``max_cost_over_optimum`` up to 18 relations, the same
        of each form (``max_cost_over_optimum_<form>``),
        ``max_cost_over_greedy``, ``max_cost_over_written``, ``max_allocated_mb``; None where there
        was nothing to compare with.

    Examples
    --------
    >>> row = {"shape": "star", "relations": 20, "ms": 3.0, "allocated_mb": 1.5}
    >>> made = summarise([{**row, "cost": 2.0, "greedy": 4.0, "written": 2.0}])
    >>> made["p95_ms_20"], made["max_cost_over_greedy"], made["max_cost_over_optimum"]
    (3.0, 0.5, None)
    """

    def worst(other: str, form: str | None = None) -> float | None:
        asked = [row for row in rows if row.get(other) and form in (None, row["shape"])]
        return round(max(row["cost"] / row[other] for row in asked), 4) if asked else None

    sizes = sorted({row["relations"] for row in rows})
    forms = sorted({row["shape"] for row in rows if row.get("optimum")})
    times = {n: [row["ms"] for row in rows if row["relations"] == n] for n in sizes}
    return {
        **{f"p95_ms_{n}": round(percentile(found, 0.95) or 0.0, 2) for n, found in times.items()},
        "max_cost_over_optimum": worst("optimum"),
        **{f"max_cost_over_optimum_{form}": worst("optimum", form) for form in forms},
        "compared_with_optimum": sum("optimum" in row for row in rows),
        "max_cost_over_greedy": worst("greedy"),
        "max_cost_over_written": worst("written"),
        "max_allocated_mb": round(max((row["allocated_mb"] for row in rows), default=0.0), 1),
    }


def planning_table(rows: Sequence[Row]) -> str:
    """
    Show the 95th percentile of each form and size, in milliseconds.

    Parameters
    ----------
    rows : sequence of dict
        One a query.

    Returns
    -------
    str

    Examples
    --------
    >>> print(planning_table([{"shape": "star", "relations": 5, "ms": 1.25}]))
    relations  star
            5   1.2
    """
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    lines = [["relations", *shapes]]
    for n in sorted({row["relations"] for row in rows}):
        found = (
            percentile(
                [row["ms"] for row in rows if row["shape"] == shape and row["relations"] == n], 0.95
            )
            for shape in shapes
        )
        lines.append([str(n), *("" if ms is None else f"{ms:.1f}" for ms in found)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )


def main(arguments: list[str] | None = None) -> int:
    """
    Command line: print a table and write ``benchmarks/results/planning.json``.

    Parameters
    ----------
    arguments : list of str or None
        Arguments, by default the process's.

    Returns
    -------
    int
        0, or 1 if an order costs more than the greedy one or the one written.

    Examples
    --------
    >>> main(["--sizes", "5", "--seeds", "1"])  # doctest: +SKIP
    0
    """
    options = parser().parse_args(arguments)
    end_cleanly()
    request = {
        "shapes": options.shapes.split(","),
        "sizes": [int(size) for size in options.sizes.split(",")],
        "seeds": options.seeds,
        "warmups": options.warmups,
        "exhaustivePairs": options.pairs,
    }
    rows = ask_spark(request, options.jar, options.memory)
    results: Row = {
        "benchmark": "planning",
        "commit": commit(),
        "spark": versions()["spark"],
        "config": {**request, "memory": options.memory, "machine": machine()},
        "rows": rows,
        "summary": summarise(rows),
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    out = RESULTS / "planning.json"
    out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"95th percentile of the time to find an order, in ms\n\n{planning_table(rows)}\n")
    for name, value in results["summary"].items():
        print(f"{name}: {value}")
    print(f"\nwritten to {public_text(str(out))}")
    compared = (results["summary"][f"max_cost_over_{other}"] for other in ("greedy", "written"))
    return int(any(ratio is not None and ratio > 1.0 + 1e-9 for ratio in compared))


if __name__ == "__main__":
    sys.exit(main())
