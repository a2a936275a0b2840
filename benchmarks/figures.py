"""The arithmetic of a comparison: medians, ratios with their spread, totals and means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

Row = dict[str, Any]


def ratio(base: Sequence[float], other: Sequence[float]) -> float | None:
    """
    Divide the median of one side's times by the median of the base's.

    Parameters
    ----------
    base, other : sequences of float
        Seconds of every run.

    Returns
    -------
    float or None
        Below 1 if `other` is faster; None if a side has no run.

    Examples
    --------
    >>> ratio([2.0, 4.0, 3.0], [1.5])
    0.5
    """
    if not base or not other:
        return None
    return median(other) / median(base)


def ratio_spread(base: Sequence[float], other: Sequence[float]) -> list[float] | None:
    """
    Give the lowest and the highest ratio of runs made in turn.

    Parameters
    ----------
    base, other : sequences of float
        Seconds of every run; the n-th of both were made one after the other.

    Returns
    -------
    list of float or None
        Lowest and highest; None if a side has no run.

    Examples
    --------
    >>> ratio_spread([2.0, 4.0], [1.0, 4.0])
    [0.5, 1.0]
    """
    ratios = [theirs / ours for ours, theirs in zip(base, other, strict=False)]
    return [min(ratios), max(ratios)] if ratios else None


def rate(row: Mapping[str, Any], profiles: Sequence[str]) -> dict[str, Any]:
    """
    Compute a row's ratios.

    Parameters
    ----------
    row : mapping
        With ``<profile>_s`` of every profile.
    profiles : sequence of str
        The first is the base, the last what ``ratio`` is about.

    Returns
    -------
    dict
        ``ratio`` and ``ratio_spread``; ``ratio_<profile>`` for the profiles between. Nothing for
        one profile.

    Examples
    --------
    >>> rate({"stock_s": [2.0], "selinger_s": [1.0]}, ["stock", "selinger"])
    {'ratio': 0.5, 'ratio_spread': [0.5, 0.5]}
    """
    if len(profiles) == 1:
        return {}
    base = row[f"{profiles[0]}_s"]
    rated: dict[str, Any] = {
        f"ratio_{name}": ratio(base, row[f"{name}_s"]) for name in profiles[1:-1]
    }
    last = row[f"{profiles[-1]}_s"]
    return {"ratio": ratio(base, last), "ratio_spread": ratio_spread(base, last), **rated}


def geometric_mean(values: Sequence[float]) -> float | None:
    """
    Average ratios.

    Parameters
    ----------
    values : sequence of float
        Positive numbers.

    Returns
    -------
    float or None
        None if there are none.

    Examples
    --------
    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    if not values:
        return None
    return math.exp(sum(math.log(value) for value in values) / len(values))


def total_ratio(rows: Sequence[Row], base: str, other: str) -> float | None:
    """
    Compare the sums of median times, over the queries that both sides finished.

    Parameters
    ----------
    rows : sequence of dict
        Rows of a result.
    base, other : str
        Profile names.

    Returns
    -------
    float or None

    Examples
    --------
    >>> total_ratio([{"stock_s": [2.0], "selinger_s": [1.0]}], "stock", "selinger")
    0.5
    """
    pairs = [
        (median(row[f"{base}_s"]), median(row[f"{other}_s"]))
        for row in rows
        if row.get(f"{base}_s") and row.get(f"{other}_s")
    ]
    ours = sum(pair[0] for pair in pairs)
    return sum(pair[1] for pair in pairs) / ours if ours else None


def answers(rows: Sequence[Row]) -> bool | str:
    """
    Sum up whether all results agree.

    Parameters
    ----------
    rows : sequence of dict
        Rows of a result, each with ``equal``.

    Returns
    -------
    bool or str
        False if any differs or was not compared, ``ties`` if some agree but for ties, else True.

    Examples
    --------
    >>> answers([{"equal": True}, {"equal": "ties"}])
    'ties'
    """
    if not all(row.get("equal") for row in rows):
        return False
    return "ties" if any(row["equal"] == "ties" for row in rows) else True


def summarise(rows: Sequence[Row], profiles: Sequence[str]) -> Row:
    """
    Sum up a benchmark.

    Parameters
    ----------
    rows : sequence of dict
        One a query.
    profiles : sequence of str
        The first is the base of all ratios, the last the one that ``ratio`` is about.

    Returns
    -------
    dict
        Totals are over the queries that every side finished. ``total_ratio``, ``geomean_ratio``,
        ``best``, ``worst``, ``planning_added_ms_median``, ``equal``, total seconds of every side,
        counts, and the ratios of the profiles between first and last. Of the finished plans, where
        every side was counted: rows out of joins (``stock_join_rows``, ``duckdb_join_rows``, …,
        ``join_rows_over_duckdb``) and ``stock_shuffled_bytes``, ….

    Examples
    --------
    >>> row = {"name": "q01", "stock_s": [2.0], "selinger_s": [1.0], "ratio": 0.5, "equal": True}
    >>> summarise([row], ["stock", "selinger"])["total_ratio"]
    0.5
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
