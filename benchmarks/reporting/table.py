"""Results as a table in a terminal."""

import sys
from collections.abc import Collection, Sequence
from statistics import median

from selinger._render import quantity, text_table

from benchmarks.reporting.figures import Row
from benchmarks.reporting.verdicts import of_all, verdict_of


def render(
    header: Sequence[str], lines: Sequence[Sequence[str]], left: Collection[int] = (0,)
) -> str:
    """Lay out a table, as wide as it has to be; all columns but those named go to the right."""
    right = frozenset(range(len(header))) - set(left)
    return text_table(header, lines, width=sys.maxsize, right=right)


def number(value: float | None, digits: int = 2) -> str:
    """Write a number, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def factor(value: float | None, digits: int) -> str:
    """Write a factor: with so many digits, or, from 1,000 on, as a power of ten."""
    if value is None:
        return "none"
    return f"{value:.{digits}f}" if value < 1000 else f"{value:.1e}"


def seconds(row: Row, side: str) -> str:
    """Write the median of a side's times, or a dash where there is none."""
    times = row.get(f"{side}_s")
    return number(median(times) if times else None)


def answer_word(row: Row) -> str:
    """Say in a word whether a row's answers agree."""
    failures = row.get("failures")
    if failures:
        return f"FAILED {','.join(failures)}"
    return {True: "equal", "ties": "ties", False: "DIFFER"}.get(row.get("equal", False), "DIFFER")


def row_cells(row: Row, profiles: Sequence[str]) -> list[str]:
    cells = [row["name"], *(seconds(row, name) for name in profiles), number(row.get("duckdb_s"))]
    if len(profiles) > 1:
        low, high = row.get("ratio_spread") or (None, None)
        spread = "-" if low == high else f"{number(low)}..{number(high)}"
        cells += [number(row.get("ratio")), spread + (" again" if "first" in row else "")]
        base, last = (row.get(f"planning_{name}_ms") for name in (profiles[0], profiles[-1]))
        cells.append("-" if base is None or last is None else f"{last - base:+.0f}")
    return [*cells, answer_word(row)]


def row_header(profiles: Sequence[str]) -> list[str]:
    compared = ["ratio", "spread", "plan +ms"] if len(profiles) > 1 else []
    return ["query", *(f"{name} s" for name in profiles), "DuckDB s", *compared, "answers"]


def headlines(
    summary: Row, profiles: Sequence[str], *, singles: bool = False
) -> list[tuple[str, str]]:
    """
    Sum a run up: what a figure is, and the figure; of several sides, in their order.

    Ratios of single queries are shown where they are of enough runs to be published.
    """

    def sides(key: str, unit: str) -> str:
        found = [summary.get(f"{name}_{key}") for name in profiles]
        return "" if None in found else " → ".join(quantity(one, unit) for one in found if one)

    answers = {True: "all equal", "ties": "all equal, some but for ties under LIMIT"}
    found = [
        (f"time of all queries: {', '.join(profiles)}", sides("total_s", "s")),
        ("time of all queries in DuckDB, a yardstick", quantity(summary["duckdb_total_s"], "s")),
        ("answers, also DuckDB's", answers.get(summary["equal"], "NOT ALL EQUAL")),
    ]
    if summary.get("total_ratio"):
        best, worst = summary["best"], summary["worst"]
        found += [
            ("ratio of the totals", number(summary["total_ratio"])),
            ("geometric mean of the ratios", number(summary["geomean_ratio"])),
            ("best ratio", f"{number(best['ratio'])} ({best['name']})" * singles),
            ("worst ratio", f"{number(worst['ratio'])} ({worst['name']})" * singles),
            ("faster by more than a tenth", f"{summary['faster']} of {summary['rated']}" * singles),
            ("slower by more than a tenth", f"{summary['slower']} of {summary['rated']}" * singles),
            ("planning time added, median", f"{number(summary['planning_added_ms_median'], 1)} ms"),
        ]
    found += [
        ("rows out of all joins", sides("join_rows", "")),
        ("rows out of joins: Selinger's / DuckDB's", number(summary.get("join_rows_over_duckdb"))),
        ("shuffled bytes", sides("shuffled_bytes", "bytes")),
        ("heap of each session", summary.get("heap_of_each_session", "")),
    ]
    return [(label, figure) for label, figure in found if figure]


def results_table(rows: Sequence[Row], summary: Row, profiles: Sequence[str]) -> str:
    lines = [row_cells(row, profiles) for row in rows]
    totals = render(["", ""], headlines(summary, profiles)).split("\n", 2)[2]
    said = of_all(rows, summary, profiles)
    return f"{render(row_header(profiles), lines)}\n\n{totals}\n\n{said}"


def progress_line(row: Row, profiles: Sequence[str]) -> str:
    parts = [f"{name} {seconds(row, name)} s" for name in profiles]
    parts.append(f"duckdb {number(row.get('duckdb_s'))} s")
    if len(profiles) > 1:
        parts.append(verdict_of(row, profiles).short)
    return f"{row['name']}: {', '.join([*parts, answer_word(row)])}"
