"""
The page of all published figures, ``docs/benchmarks.md``: ``make docs-benchmarks``.

Its text is ``benchmarks.md`` beside this module. Tables come from the published files; what has not
been published is said to be not measured.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.paths import PUBLISHED, ROOT
from benchmarks.reporting.published import load
from benchmarks.reporting.table import factor, headlines, number, row_cells, row_header, seconds

Figures = dict[str, Any]

TEMPLATE = Path(__file__).with_name("benchmarks.md")
PAGE = ROOT / "docs" / "benchmarks.md"
SUITES = {
    "tpcds": "TPC-DS",
    "tpch": "TPC-H",
    "skewed": "skewed data",
    "aggregates": "Aggregations",
    "small": "small tables",
}
SHOWN = 8
"""Queries that are listed as fastest, and as slowest."""

QUERIES = ("tpcds-sf10", "tpcds-sf1", "tpch-sf10", "tpch-sf1")
PLANNING = (
    "planning",
    "plancost-tpcds-sf10",
    "plancost-small-sf1",
    "walks-tpcds-sf1",
    "analyze-tpcds-sf10",
)
ESTIMATES = ("estimates-tpcds-sf1", "estimates-tpch-sf1")
KINDS = {
    "tpcds": ("", "bench SUITE={suite} SF={scale}"),
    "tpch": ("", "bench SUITE={suite} SF={scale}"),
    "aggregates": ("", "bench-aggregates"),
    "estimates": ("Estimates", "bench-estimates SUITE={suite} SF={scale} ANALYZED=1"),
    "planning": ("Search for a join order", "bench-planning"),
    "plancost": ("Planning time added to a query", "bench-plancost SUITE={suite} SF={scale}"),
    "walks": ("Planning of made-up queries", "bench-walks SF={scale}"),
    "analyze": ("selinger.analyze against ANALYZE", "bench-analyze SF={scale}"),
    "operators": ("Join operators", "bench-operators"),
    "ablation": ("Mechanisms of the join ordering", "bench-ablation"),
}
"""What a benchmark is called beside the name of its suite, and the target that measures it."""

LABELS = {
    "planning": {
        "p95_ms_20": "time to find an order of 20 relations, 95th percentile, ms",
        "p95_ms_50": "the same of 50 relations, ms",
        "p95_ms_100": "the same of 100 relations, ms",
        "compared_with_optimum": "queries whose best order is known",
        "max_cost_over_optimum": "cost of the order found over that of the best order, at most",
        "max_cost_over_greedy": "cost of the order found over that of the greedy order, at most",
        "max_cost_over_written": "cost of the order found over that of the order written, at most",
        "max_allocated_mb": "memory allocated for one query, at most, MB",
    },
    "plancost": {
        "queries": "queries",
        "added_ms_median": "added to the planning of a query, median, ms",
        "added_ms_p95": "the same, 95th percentile, ms",
        "added_ms_max": "the same, at most, ms",
        "cpu_ratio_no_join": "processor time of planning / of stock Spark, without joins",
        "cpu_ratio_few_joins": "the same, with one to three joins",
        "cpu_ratio_more_joins": "the same, with more joins, up to 63",
        "new_queries": "queries planned with other numbers, such as years and prices",
        "new_added_ms_median": "added to the planning of these, median, ms",
        "new_added_ms_p95": "the same, 95th percentile, ms",
        "jvms": "JVMs of which the first plan was timed",
        "jvm_stock_ms_median": "first plan of a JVM in stock Spark, median, ms",
        "jvm_added_ms_median": "added to it, median, ms",
        "jvm_added_ms_max": "the same, at most, ms",
    },
    "walks": {
        "queries": "queries",
        "first_added_ms_median": "added to the first plan of a query, median, ms",
        "first_added_ms_p95": "the same, 95th percentile, ms",
        "added_ms_median": "added when the same query is planned again, median, ms",
        "added_ms_p95": "the same, 95th percentile, ms",
        "cpu_ratio": "processor time of planning again / of stock Spark, of all queries",
    },
    "analyze": {
        "selinger_s": "selinger.analyze of all columns, s",
        "stock_s": "Spark's ANALYZE of all columns with histograms, s",
        "total_ratio": "selinger.analyze's time over Spark's, median of the runs",
    },
}
"""What is shown of a summary, in this order."""


def write_docs() -> Path:
    PAGE.write_text(page(), encoding="utf-8")
    return PAGE


def page(folder: Path = PUBLISHED) -> str:
    """Fill the text with what is published in a folder."""

    def sections(names: Sequence[str], write: Callable[[Figures], str]) -> str:
        kinds = {name.partition("-")[0] for name in names}
        known = {path.stem for kind in kinds for path in folder.glob(f"{kind}-*.json")}
        extra = sorted(known - set(names))
        return "\n\n".join(_section(name, folder, write) for name in [*names, *extra])

    parts = {
        "overview": overview(folder),
        "queries": sections(QUERIES, of_queries),
        "aggregates": sections(("aggregates",), of_queries),
        "estimates": sections(ESTIMATES, of_estimates),
        "planning": sections(PLANNING, of_labels),
        "operators": sections(("operators",), of_operators),
        "ablation": sections(("ablation",), of_ablation),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    return text


def title(name: str) -> str:
    """Write the name of a benchmark for people: ``TPC-DS, scale factor 10``."""
    words = name.split("-")
    scale = f", scale factor {words[-1].removeprefix('sf')}" if words[-1].startswith("sf") else ""
    suite = next((SUITES[word] for word in words if word in SUITES), "")
    kind, _ = KINDS.get(words[0], ("", ""))
    return (", ".join(part for part in (kind, suite) if part) or name) + scale


def command_of(name: str) -> str:
    words = name.split("-")
    suite = next((word for word in words if word in SUITES), "tpcds")
    target = KINDS[words[0]][1].format(suite=suite, scale=words[-1].removeprefix("sf"))
    return f"make {target} PUBLISH=1"


def _section(name: str, folder: Path, write: Callable[[Figures], str]) -> str:
    figures = load(name, folder)
    if figures is None:
        return f"### {title(name)}\n\nNot measured. `{command_of(name)}` measures it."
    return f"### {title(name)}\n\n{write(figures)}\n\n{_about(figures)}"


def _about(figures: Figures) -> str:
    machine = figures["machine"]
    said = [
        f"Measured with `{figures['command']}` on {figures['date']}",
        f"commit `{figures['commit'][:12]}`, Spark {figures['spark']}",
        f"{machine['cores']} cores, {machine['memory_gib']} GiB of memory.",
    ]
    return " ".join([", ".join(said), *figures["notes"]])


def overview(folder: Path) -> str:
    """Write one line for each benchmark: its total ratio, and what it divides."""
    names = [*QUERIES, *ESTIMATES, *PLANNING, "operators", "ablation"]
    names += sorted({path.stem for path in folder.glob("*.json")} - set(names))
    lines = []
    for name in names:
        figures = load(name, folder)
        total = number(figures["summary"]["total_ratio"]) if figures else "not measured"
        what = figures["ratio"] if figures else ""
        lines.append([title(name), total, what])
    return table(["benchmark", "ratio of the totals", "what is divided"], lines)


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in rows)


def of_queries(figures: Figures) -> str:
    """Write the totals of a suite, its fastest and slowest queries, and all of them folded."""
    summary, rows = figures["summary"], figures["rows"]
    profiles = figures["config"]["profiles"]
    ranked = sorted(rows, key=lambda row: float(row["ratio"]))
    lines = [row_cells(row, profiles) for row in rows]
    return "\n\n".join(
        [
            table(["", ""], headlines(summary, profiles, singles=True)),
            f"Gains most: {_some(ranked[:SHOWN])}.",
            f"Gains least, or loses: {_some(ranked[: -SHOWN - 1 : -1])}.",
            f"<details><summary>All {len(rows)} queries</summary>",
            table(row_header(profiles), lines),
            "</details>",
        ]
    )


def _some(rows: Sequence[Figures]) -> str:
    return ", ".join(
        f"{row['name']} {row['ratio']:.2f} ({seconds(row, 'stock')} → {seconds(row, 'selinger')} s)"
        for row in rows
    )


def of_estimates(figures: Figures) -> str:
    """Write how far the estimators of a suite are off, and those of the skewed data."""
    parts = ["The q-error is the larger of estimated and true rows, divided by the smaller."]
    suites = {"": figures["summary"], "On the skewed data": figures["summary"].get("skewed")}
    for label, summary in suites.items():
        if summary is None:
            continue
        lines = []
        for estimator, by_joins in summary["tables"].items():
            end = f"_{estimator}".removeprefix("_selinger")
            deep = summary[f"share_off_10x_3_joins{end}"]
            lines.append(
                [
                    f"`{estimator}`",
                    factor(by_joins["all"]["median"], 2),
                    factor(by_joins["all"]["p95"], 1),
                    "-" if deep is None else f"{100 * deep:.0f} %",
                ]
            )
        header = ["estimator", "median q-error", "95th percentile", "off by 10, 3 joins or more"]
        parts.append(
            f"{label + ': ' if label else ''}{summary['sub_plans']:,} sub-plans counted, "
            f"{summary['not_counted']} not. {summary['above_high']} have more rows than Selinger's "
            f"upper confidence bound, {summary['above_bound']} more than its proven bound."
        )
        parts.append(table(header, lines))
    return "\n\n".join(parts)


def of_labels(figures: Figures) -> str:
    """Write what is worth reading of a summary."""
    labels = LABELS[figures["benchmark"].partition("-")[0]]
    summary = figures["summary"]
    found = [(label, summary[key]) for key, label in labels.items() if summary.get(key) is not None]
    return table(["", ""], [[label, f"{value:,.4g}"] for label, value in found])


def of_operators(figures: Figures) -> str:
    """Write the regret of the cost model, and its constants beside the fitted ones."""
    summary = figures["summary"]
    lines = [
        [row["name"], row["pick"], row["fastest"], number(row["ratio"])] for row in figures["rows"]
    ]
    constants = [
        [f"`{name}`", f"{known['code']:g}", number(known["fitted"], 1)]
        for name, known in summary["constants"].items()
    ]
    worst = summary["worst"]
    said = (
        f"Over {len(lines)} joins, the picked operators take {summary['total_ratio']:.2f} times as "
        f"long as the fastest ones; the worst pick takes {worst['ratio']:.2f} times as long "
        f"({worst['name']}). With the fitted constants below it would be "
        f"{summary['total_ratio_fitted']:.2f} times."
    )
    fit = (
        f"Constants of the cost model, fitted to {summary['fit']['cases']} measured times. The "
        f"fitted model is off by {100 * summary['fit']['median_error']:.0f} % in the median. Units "
        f"are nanoseconds for a row or a byte, and milliseconds for `…Seconds`. A dash means that "
        f"one machine cannot tell this constant from others."
    )
    return "\n\n".join(
        [
            said,
            table(["join", "picked", "fastest", "regret"], lines),
            fit,
            table(["constant", "in the code", "fitted"], constants),
        ]
    )


def of_ablation(figures: Figures) -> str:
    """Write a line for each mechanism, those that bring most first."""
    lines = []
    for row in sorted(figures["rows"], key=lambda row: -row["ratio"]):
        sets = [(cost, name) for name, cost in row["cost"].items() if cost]
        cost, name = max(sets)
        times = [f"{row[key][0]:.2f}" for key in ("ms_20", "ms_100")]
        plans = len(row["plans"].get("TPC-DS 10", []))
        lines.append(
            [row["name"], f"{row['ratio']:.3f}", f"{cost:.2f} ({name})", *times, str(plans)]
        )
    header = ["without", "cost of orders", "largest, by set of queries"]
    header += ["planning at 20 relations", "at 100", "TPC-DS queries with another plan"]
    return table(header, lines)
