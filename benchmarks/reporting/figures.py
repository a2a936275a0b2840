"""The arithmetic of a comparison: medians, ratios with their spread, totals and means."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

Row = dict[str, Any]
"""Figures by their name: of one query, of one case, or the summary of all."""


def ratio(base: Sequence[float], other: Sequence[float]) -> float | None:
    """Divide the median of one side's times by the median of the base's."""
    if not base or not other:
        return None
    return median(other) / median(base)


def ratio_spread(base: Sequence[float], other: Sequence[float]) -> list[float] | None:
    """Give the lowest and the highest ratio of runs, the n-th of both made one after the other."""
    ratios = [theirs / ours for ours, theirs in zip(base, other, strict=False)]
    return [min(ratios), max(ratios)] if ratios else None


def rate(row: Mapping[str, Any], profiles: Sequence[str]) -> dict[str, Any]:
    """Compute a row's ratios: of the last profile to the first, and of those between."""
    if len(profiles) == 1:
        return {}
    base = row[f"{profiles[0]}_s"]
    rated: dict[str, Any] = {
        f"ratio_{name}": ratio(base, row[f"{name}_s"]) for name in profiles[1:-1]
    }
    last = row[f"{profiles[-1]}_s"]
    return {"ratio": ratio(base, last), "ratio_spread": ratio_spread(base, last), **rated}


def geometric_mean(values: Sequence[float]) -> float | None:
    if not values:
        return None
    return math.exp(sum(math.log(value) for value in values) / len(values))


def percentile(values: Sequence[float], share: float) -> float | None:
    """Find the smallest value that at least a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else None


def q_error(estimate: float | None, truth: float) -> float:
    """Say by which factor an estimate is off, too high or too low."""
    if estimate is None:
        return math.inf
    expected, counted = max(estimate, 1.0), max(truth, 1.0)
    return max(expected / counted, counted / expected)


def total_ratio(rows: Sequence[Row], base: str, other: str) -> float | None:
    """Compare the sums of median times, over the queries that both sides finished."""
    pairs = [
        (median(row[f"{base}_s"]), median(row[f"{other}_s"]))
        for row in rows
        if row.get(f"{base}_s") and row.get(f"{other}_s")
    ]
    ours = sum(pair[0] for pair in pairs)
    return sum(pair[1] for pair in pairs) / ours if ours else None


def answers(rows: Sequence[Row]) -> bool | str:
    if not all(row.get("equal") for row in rows):
        return False
    return "ties" if any(row["equal"] == "ties" for row in rows) else True


def summarise(rows: Sequence[Row], profiles: Sequence[str]) -> Row:
    """
    Sum up a benchmark of queries.

    Times are summed over the queries that every side finished; rows out of joins and shuffled bytes
    over those of them where every side was counted.
    """
    base, candidate = profiles[0], profiles[-1]
    rated = sorted((row for row in rows if row.get("ratio")), key=lambda row: float(row["ratio"]))
    summary: Row = {"queries": len(rows), "rated": len(rated), "equal": answers(rows)}
    if rated and candidate != base:
        summary["total_ratio"] = total_ratio(rows, base, candidate)
        summary["geomean_ratio"] = geometric_mean([row["ratio"] for row in rated])
        for label, row in (("best", rated[0]), ("worst", rated[-1])):
            summary[label] = {"name": row["name"], "ratio": row["ratio"]}
        summary["faster"] = sum(row["ratio"] < 0.9 for row in rated)
        summary["slower"] = sum(row["ratio"] > 1.1 for row in rated)
        added = [
            row[f"planning_{candidate}_ms"] - row[f"planning_{base}_ms"]
            for row in rated
            if f"planning_{candidate}_ms" in row and f"planning_{base}_ms" in row
        ]
        summary["planning_added_ms_median"] = median(added) if added else None
    finished = [row for row in rows if all(row.get(f"{profile}_s") for profile in profiles)]
    for profile in profiles:
        summary[f"{profile}_total_s"] = sum(median(row[f"{profile}_s"]) for row in finished)
        if profile not in (base, candidate):
            summary[f"{profile}_total_ratio"] = total_ratio(rows, base, profile)
    summary["duckdb_total_s"] = sum(row.get("duckdb_s") or 0.0 for row in finished)
    summary |= _plan_figures(finished, profiles)
    failed = {row["name"]: row["failures"] for row in rows if row.get("failures")}
    if failed:
        summary["failures"] = failed
    return summary


def _plan_figures(rows: Sequence[Row], profiles: Sequence[str]) -> Row:
    def counted(figure: str, sides: Sequence[str]) -> dict[str, int]:
        metrics = [row.get("metrics", {}) for row in rows]
        found = [[known.get(side, {}).get(figure) for side in sides] for known in metrics]
        complete = [values for values in found if None not in values]
        columns = zip(*complete, strict=True)
        return {side: sum(column) for side, column in zip(sides, columns, strict=False)}

    joined = counted("rows_out_of_joins", [*profiles, "duckdb"])
    found: Row = {f"{side}_join_rows": count for side, count in joined.items()}
    if joined.get("duckdb"):
        found["join_rows_over_duckdb"] = joined[profiles[-1]] / joined["duckdb"]
    shuffled = counted("shuffled_bytes", list(profiles))
    return found | {f"{side}_shuffled_bytes": count for side, count in shuffled.items()}
