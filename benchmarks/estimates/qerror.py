"""The arithmetic of estimates: how far they are from the truth, by number of joins."""

import math
from collections.abc import Sequence

from benchmarks.reporting.figures import Row, percentile, q_error
from benchmarks.reporting.table import factor, render

JOINS = ("0", "1", "2", "3", "4+")
OFF = 10.0
"""A q-error from which an estimate counts as off."""


def share_off(errors: Sequence[float]) -> float | None:
    return sum(error >= OFF for error in errors) / len(errors) if errors else None


def figures(errors: Sequence[float]) -> Row:
    def finite(value: float | None) -> float | None:
        return None if value is None or math.isinf(value) else round(value, 4)

    return {
        "count": len(errors),
        "median": finite(percentile(errors, 0.5)),
        "p90": finite(percentile(errors, 0.9)),
        "p95": finite(percentile(errors, 0.95)),
        "share_off_10x": finite(share_off(errors)),
    }


def by_joins(rows: Sequence[Row], estimator: str) -> dict[str, Row]:
    """Sum up one estimator's errors by number of joins, and all of them."""
    errors: dict[str, list[float]] = {name: [] for name in (*JOINS, "all")}
    for row in rows:
        joins = str(row["joins"]) if row["joins"] < 4 else "4+"
        for name in (joins, "all"):
            errors[name].append(q_error(row.get(estimator), row["rows"]))
    return {name: figures(values) for name, values in errors.items()}


def summarise(rows: Sequence[Row], estimators: Sequence[str]) -> Row:
    counted = [row for row in rows if row.get("rows") is not None]
    summary: Row = {"sub_plans": len(counted), "not_counted": len(rows) - len(counted)}
    tables = {name: by_joins(counted, name) for name in estimators}
    for estimator, table in tables.items():
        suffix = f"_{estimator}".removeprefix("_selinger")
        deep = [q_error(row.get(estimator), row["rows"]) for row in counted if row["joins"] >= 3]
        summary[f"median_q_error{suffix}"] = table["all"]["median"]
        summary[f"share_off_10x_3_joins{suffix}"] = share_off(deep)
    for limit in ("high", "bound"):
        summary[f"above_{limit}"] = sum(
            # A share times rows may lose the last bits of a count.
            row["rows"] > row[f"selinger_{limit}"] * (1 + 1e-9)
            for row in counted
            if f"selinger_{limit}" in row
        )
    return {**summary, "tables": tables}


def estimates_table(summary: Row) -> str:
    header = ["joins", "estimator", "sub-plans", "median", "90 %", "95 %", "off by 10"]
    lines = []
    for name in (*JOINS, "all"):
        for estimator, table in summary["tables"].items():
            found = table[name]
            if found["count"]:
                errors = [factor(found[f], d) for f, d in (("median", 2), ("p90", 1), ("p95", 1))]
                off = f"{100 * found['share_off_10x']:.0f} %"
                lines.append([name, estimator, f"{found['count']:,}", *errors, off])
    return render(header, lines, left=(0, 1))
