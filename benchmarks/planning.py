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

import sys
from collections.abc import Sequence

from benchmarks import commands
from benchmarks.reporting.figures import Row, percentile
from benchmarks.reporting.table import render
from benchmarks.sessions.local import submit

MAIN = "io.selinger.bench.PlanningBench"
SHAPES = ("chain", "cycle", "star", "clique", "snowflake", "tree", "shared")
SIZES = (5, 8, 10, 12, 14, 16, 18, 20, 30, 50, 75, 100)


def summarise(rows: Sequence[Row]) -> Row:
    def worst(other: str) -> float | None:
        ratios = [row["cost"] / row[other] for row in rows if row.get(other)]
        return round(max(ratios), 4) if ratios else None

    sizes = sorted({row["relations"] for row in rows})
    times = {n: [row["ms"] for row in rows if row["relations"] == n] for n in sizes}
    return {
        **{f"p95_ms_{n}": round(percentile(found, 0.95) or 0.0, 2) for n, found in times.items()},
        "max_cost_over_optimum": worst("optimum"),
        "compared_with_optimum": sum("optimum" in row for row in rows),
        "max_cost_over_greedy": worst("greedy"),
        "max_cost_over_written": worst("written"),
        "max_allocated_mb": round(max((row["allocated_mb"] for row in rows), default=0.0), 1),
    }


def planning_table(rows: Sequence[Row]) -> str:
    """Show the 95th percentile of each form and size, in milliseconds."""
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    lines = []
    for n in sorted({row["relations"] for row in rows}):
        found = (
            percentile(
                [row["ms"] for row in rows if row["shape"] == shape and row["relations"] == n], 0.95
            )
            for shape in shapes
        )
        lines.append([str(n), *("" if ms is None else f"{ms:.1f}" for ms in found)])
    return render(["relations", *shapes], lines, left=())


def main(arguments: list[str] | None = None) -> int:
    made = commands.parser("planning", __doc__)
    add = made.add_argument
    add("--sizes", default=",".join(map(str, SIZES)), help="numbers of relations")
    add("--shapes", default=",".join(SHAPES), help="forms of the joins")
    add("--seeds", type=int, default=5, help="queries of each form and size, twice: mixed or not")
    add("--warmups", type=int, default=4, help="rounds over all forms before anything is measured")
    add("--pairs", type=int, default=1_200_000, help="that an exhaustive search may look at")
    add("--memory", default="2g", help="heap of the session")
    options = commands.parse(made, arguments)
    request = {
        "shapes": options.shapes.split(","),
        "sizes": [int(size) for size in options.sizes.split(",")],
        "seeds": options.seeds,
        "warmups": options.warmups,
        "exhaustivePairs": options.pairs,
    }
    conf = {"spark.master": "local[1]", "spark.ui.enabled": "false"}
    rows = submit(MAIN, request, options.memory, conf)
    summary = summarise(rows)
    whole = set(SHAPES) <= set(request["shapes"]) and set(SIZES) <= set(request["sizes"])
    partial = "" if whole else "not all forms and sizes"
    print(f"95th percentile of the time to find an order, in ms\n\n{planning_table(rows)}\n")
    for name, value in summary.items():
        print(f"{name}: {value}")
    commands.finish("planning", options, rows, summary, request, partial)
    compared = (summary[f"max_cost_over_{other}"] for other in ("greedy", "written"))
    return int(any(ratio is not None and ratio > 1.0 + 1e-9 for ratio in compared))


if __name__ == "__main__":
    sys.exit(main())
