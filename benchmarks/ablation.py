"""
What each mechanism of the ordering of joins brings.

    python -m benchmarks.ablation

The same queries are planned with all mechanisms and with each left out; nothing is executed. Joins
of generated forms give costs of orders, and planning times by number of relations. Queries of
TPC-DS, planned from statistics at scale factors 10 and 1000 without data, give costs of orders and
tell which queries get another plan: only these need be run to see what a mechanism does to them.

Costs are those of the whole model, whatever was left out to find an order. Planning times are the
processor times of the rule that orders joins, the least of several; no search is cut short.
"""

import math
import sys
from collections.abc import Iterable, Sequence

from benchmarks import commands, scale
from benchmarks.datasets.queries import load_queries
from benchmarks.planning import SHAPES
from benchmarks.reporting.figures import Row, geometric_mean, percentile
from benchmarks.reporting.table import number, render
from benchmarks.sessions.local import submit

MAIN = "io.selinger.bench.AblationBench"
NOISE = "nothing (noise)"
"""With everything, a second time: what differs is noise."""

CONF = {
    "spark.sql.extensions": "io.selinger.bench.PlanRecorder,io.selinger.SelingerExtension",
    "spark.ui.enabled": "false",
    "spark.selinger.failOnError": "true",
    "spark.selinger.planning.budgetMs": "60000",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.maxPlanStringLength": "100000000",
    "spark.sql.debug.maxToStringFields": "10000",
    "spark.sql.session.timeZone": "UTC",
}
SCALES = {
    factor: {
        "spark.selinger.cluster.cores": str(8 * executors),
        "spark.selinger.cluster.executors": str(executors),
        "spark.selinger.cluster.executorMemoryBytes": "32g",
        "spark.selinger.cluster.driverMemoryBytes": "16g",
        "spark.sql.shuffle.partitions": str(16 * executors),
    }
    for factor, executors in ((10, 1), (1000, 125))
}
"""Scale factors of TPC-DS, and the cluster for which each is planned."""

FACTS = [f"{seller}_{k}" for seller in ("catalog", "store", "web") for k in ("sales", "returns")]


def growth(factor: int) -> dict[str, float]:
    """
    Give how many times the rows of scale factor 1 the tables have that grow, at one of `SCALES`.

    Between the scale factors of the specification it is the geometric mean.
    """
    place = 0 if factor < 100 else 1
    between = {
        table: math.sqrt(rows[place] * rows[place + 1]) / rows[0]
        for table, rows in scale.rows().items()
        if rows[0] != rows[-1]
    }
    return {**between, **dict.fromkeys(FACTS, float(factor))}


def compare(rows: Iterable[Row]) -> list[Row]:
    """
    Sum each mechanism up: ``ratio`` is the mean of the costs without it over those with it.

    Queries that cost nothing, with it or without, have no ratio and are counted in ``free``.
    ``ms_<relations>`` has median, 95th percentile and maximum of the planning times without it over
    the same with it; ``plans`` has the queries that get another plan, by set of queries.

    Examples
    --------
    >>> base = {"set": "star", "query": "a", "relations": 20}
    >>> made = compare([{**base, "without": "", "cost": 1.0, "ms": 2.0},
    ...                 {**base, "without": "x", "cost": 2.0, "ms": 1.0}])
    >>> made[0]["name"], made[0]["ratio"], made[0]["ms_20"]
    ('x', 2.0, [0.5, 0.5, 0.5])
    """
    rows = list(rows)
    sizes = sorted({row["relations"] for row in rows if row.get("relations")})
    by: dict[str, dict[tuple[str, str], Row]] = {}
    for row in rows:
        by.setdefault(row["without"], {})[row["set"], row["query"]] = row
    full = by.pop("")

    def times(found: dict[tuple[str, str], Row], relations: int) -> list[float]:
        ms = [row["ms"] for row in found.values() if row.get("relations") == relations]
        return [percentile(ms, share) or 0.0 for share in (0.5, 0.95, 1.0)]

    made = []
    for name, found in by.items():
        ratios = {
            key: row["cost"] / full[key]["cost"]
            for key, row in found.items()
            if row["cost"] > 0 and full[key]["cost"] > 0
        }
        sets = dict.fromkeys(key[0] for key in found)
        result: Row = {
            "name": name,
            "ratio": geometric_mean(list(ratios.values())),
            "free": len(found) - len(ratios),
            "cost": {
                s: geometric_mean([r for key, r in ratios.items() if key[0] == s]) for s in sets
            },
            "queries": {", ".join(key): ratio for key, ratio in ratios.items()},
            "plans": {
                s: sorted(key[1] for key in found if key[0] == s and found[key].get("changed"))
                for s in sets
            },
        }
        for n in sizes:
            pairs = zip(times(found, n), times(full, n), strict=True)
            result[f"ms_{n}"] = [round(without / base, 3) for without, base in pairs]
        made.append(result)
    return made


def extremes(ratios: dict[str, float | None]) -> list[str]:
    """Name the smallest and the largest ratio."""
    known = sorted((ratio, name) for name, ratio in ratios.items() if ratio is not None)
    return [f"{r:.3f} {name}" for r, name in (known[0], known[-1])] if known else ["-", "-"]


def table(rows: Sequence[Row]) -> str:
    lines, plans = [], []
    timed = [key for key in rows[0] if key.startswith("ms_")]
    for row in rows:
        times = ["/".join(f"{ratio:.2f}" for ratio in row[key]) for key in timed]
        ends = [*extremes(row["cost"]), *extremes(row["queries"])]
        lines.append([row["name"], number(row["ratio"], 3), *ends, str(row["free"]), *times])
        named = [f"{name}: {', '.join(found)}" for name, found in row["plans"].items() if found]
        plans += [f"  {row['name']}: {'; '.join(named)}"] if named else []
    header = ["without", "cost", "least set", "largest set", "best query", "worst query", "no cost"]
    header += [f"{key.replace('_', ' at ')} (median/95 %/max)" for key in timed]
    return "\n".join([render(header, lines, left=(0, 2, 3, 4, 5)), "", "Other orders:", *plans])


def main(arguments: list[str] | None = None) -> int:
    made = commands.parser("ablation", __doc__)
    add = made.add_argument
    add("--mechanisms", nargs="*", default=[], help="those to leave out, default: each")
    add("--sizes", nargs="*", type=int, default=[8, 14, 20, 40, 100], help="of generated joins")
    add("--shapes", nargs="*", choices=SHAPES, default=SHAPES, help="forms of generated joins")
    add("--seeds", type=int, default=2, help="queries of each form and size, twice: mixed or not")
    add("--plannings", type=int, default=2, help="of each, of which the quickest counts")
    add("--warmups", type=int, default=1, help="rounds before anything is measured")
    add("--scales", nargs="*", type=int, choices=SCALES, default=list(SCALES), help="of TPC-DS")
    add("--memory", default="3g", help="heap of the session")
    options = commands.parse(made, arguments)
    names = ("mechanisms", "shapes", "sizes", "seeds", "plannings", "warmups")
    request = {name: getattr(options, name) for name in names}
    queries = [{"name": q.name, "text": q.spark} for q in load_queries("tpcds").values()]
    scales = [
        {"name": f"TPC-DS {factor}", "growth": growth(factor), "conf": SCALES[factor]}
        for factor in options.scales
    ]
    statistics = scale.STATISTICS.read_text(encoding="utf-8")
    asked = {**request, "queries": queries, "scales": scales, "statistics": statistics}
    found = submit(MAIN, asked, options.memory, CONF)
    rows = compare(found)
    summary = {"mechanisms": len({row["name"] for row in rows} - {NOISE}), "planned": len(found)}
    print(table(rows))
    partial = "only some mechanisms" if options.mechanisms else ""
    config = {**request, "scales": options.scales}
    commands.finish("ablation", options, rows, summary, config, partial)
    return 0


if __name__ == "__main__":
    sys.exit(main())
