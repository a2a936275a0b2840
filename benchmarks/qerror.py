"""The arithmetic of estimates: how far they are from the truth, by number of joins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from benchmarks.table import render

Row = dict[str, Any]

JOINS = ("0", "1", "2", "3", "4+")
OFF = 10.0
"""A q-error from which an estimate counts as off."""


def q_error(estimate: float | None, truth: float) -> float:
    """
    Say by which factor an estimate is off, too high or too low.

    Parameters
    ----------
    estimate : float or None
        Estimated rows; None if the estimator has no idea.
    truth : float
        Counted rows.

    Returns
    -------
    float
        1 or more; infinite without an estimate. Less than one row counts as one.

    Examples
    --------
    >>> q_error(50, 100), q_error(300, 100), q_error(0.1, 0)
    (2.0, 3.0, 1.0)
    """
    if estimate is None:
        return math.inf
    expected, counted = max(estimate, 1.0), max(truth, 1.0)
    return max(expected / counted, counted / expected)


def percentile(values: Sequence[float], share: float) -> float | None:
    """
    Find the smallest value that at least a share of the values does not exceed.

    Parameters
    ----------
    values : sequence of float
        In any order.
    share : float
        Above 0, at most 1.

    Returns
    -------
    float or None
        None if there are no values.

    Examples
    --------
    >>> percentile([3.0, 1.0, 2.0, 4.0], 0.5)
    2.0
    """
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else None


def share_off(errors: Sequence[float]) -> float | None:
    """
    Give the share of errors that are large.

    Parameters
    ----------
    errors : sequence of float
        Q-errors.

    Returns
    -------
    float or None
        0 to 1; None if there are no errors.

    Examples
    --------
    >>> share_off([1.0, 10.0])
    0.5
    """
    return sum(error >= OFF for error in errors) / len(errors) if errors else None


def figures(errors: Sequence[float]) -> Row:
    """
    Sum up errors.

    Parameters
    ----------
    errors : sequence of float
        Q-errors.

    Returns
    -------
    dict
        ``count``, ``median``, ``p90``, ``p95`` and ``share_off_10x``. What is infinite, because
        there was no estimate, is None.

    Examples
    --------
    >>> figures([1.0, 20.0])
    {'count': 2, 'median': 1.0, 'p90': 20.0, 'p95': 20.0, 'share_off_10x': 0.5}
    """

    def finite(value: float | None) -> float | None:
        return None if value is None or math.isinf(value) else round(value, 4)

    return {
        "count": len(errors),
        **{
            name: finite(percentile(errors, share))
            for name, share in (("median", 0.5), ("p90", 0.9), ("p95", 0.95))
        },
        "share_off_10x": finite(share_off(errors)),
    }


def joins_class(joins: int) -> str:
    """
    Name the row of the table that a sub-plan belongs to.

    Parameters
    ----------
    joins : int
        Joins in it.

    Returns
    -------
    str
        One of `JOINS`.

    Examples
    --------
    >>> joins_class(2), joins_class(7)
    ('2', '4+')
    """
    return str(joins) if joins < 4 else "4+"


def by_joins(rows: Sequence[Row], estimator: str) -> dict[str, Row]:
    """
    Sum up one estimator's errors by number of joins, and all of them.

    Parameters
    ----------
    rows : sequence of dict
        ``joins``, ``rows`` (counted) and, by estimator, estimates.
    estimator : str
        Its field.

    Returns
    -------
    dict of str to dict
        `figures` by `JOINS` and ``all``.

    Examples
    --------
    >>> by_joins([{"joins": 1, "rows": 5, "stock": 5}], "stock")["1"]["median"]
    1.0
    """
    errors: dict[str, list[float]] = {name: [] for name in (*JOINS, "all")}
    for row in rows:
        error = q_error(row.get(estimator), row["rows"])
        errors[joins_class(row["joins"])].append(error)
        errors["all"].append(error)
    return {name: figures(values) for name, values in errors.items()}


def summarise(rows: Sequence[Row], estimators: Sequence[str]) -> Row:
    """
    Sum up a suite.

    Parameters
    ----------
    rows : sequence of dict
        One a sub-plan; those that were not counted (without ``rows``) are left out.
    estimators : sequence of str
        Fields of the estimates.

    Returns
    -------
    dict
        ``median_q_error`` and ``share_off_10x_3_joins`` (of sub-plans with three joins or more) of
        Selinger with nothing collected; the same of the others with the suffix ``_stock``,
        ``_stock_analyzed`` or ``_analyzed``; ``tables`` by estimator; and how many sub-plans have
        more rows than Selinger feared (``above_high``) or thought possible (``above_bound``).

    Examples
    --------
    >>> rows = [{"joins": 3, "rows": 5, "selinger": 5}, {"joins": 3}]
    >>> summarise(rows, ["selinger"])["share_off_10x_3_joins"]
    0.0
    """
    counted = [row for row in rows if row.get("rows") is not None]
    summary: Row = {"sub_plans": len(counted), "not_counted": len(rows) - len(counted)}
    for estimator in estimators:
        suffix = f"_{estimator}".removeprefix("_selinger")
        errors = [q_error(row.get(estimator), row["rows"]) for row in counted]
        deep = [error for error, row in zip(errors, counted, strict=True) if row["joins"] >= 3]
        summary[f"median_q_error{suffix}"] = figures(errors)["median"]
        summary[f"share_off_10x_3_joins{suffix}"] = share_off(deep)
    for limit in ("high", "bound"):
        summary[f"above_{limit}"] = sum(
            # A share times rows may lose the last bits of a count.
            row["rows"] > row[f"selinger_{limit}"] * (1 + 1e-9)
            for row in counted
            if f"selinger_{limit}" in row
        )
    summary["tables"] = {name: by_joins(counted, name) for name in estimators}
    return summary


def estimates_table(summary: Row) -> str:
    """
    Write a suite's table.

    Parameters
    ----------
    summary : dict
        As `summarise` gives it.

    Returns
    -------
    str
        One line a number of joins and estimator.

    Examples
    --------
    >>> rows = [{"joins": 0, "rows": 5, "stock": 50}]
    >>> print(estimates_table(summarise(rows, ["stock"])))
    joins  estimator  sub-plans  median  90 %  95 %  off by 10
    -----  ---------  ---------  ------  ----  ----  ---------
    0      stock              1   10.00  10.0  10.0      100 %
    all    stock              1   10.00  10.0  10.0      100 %
    """
    header = ["joins", "estimator", "sub-plans", "median", "90 %", "95 %", "off by 10"]
    lines = []
    for name in (*JOINS, "all"):
        for estimator, table in summary["tables"].items():
            found = table[name]
            if found["count"]:
                lines.append(
                    [
                        name,
                        estimator,
                        f"{found['count']:,}",
                        factor(found["median"], 2),
                        factor(found["p90"], 1),
                        factor(found["p95"], 1),
                        f"{100 * found['share_off_10x']:.0f} %",
                    ]
                )
    return render(header, lines, left=(0, 1))


def factor(value: float | None, digits: int) -> str:
    """
    Write a q-error.

    Parameters
    ----------
    value : float or None
        The q-error, None if it is infinite.
    digits : int
        After the point, of numbers below a thousand.

    Returns
    -------
    str

    Examples
    --------
    >>> factor(1.234, 2), factor(45678.0, 2), factor(None, 2)
    ('1.23', '4.6e+04', 'none')
    """
    if value is None:
        return "none"
    return f"{value:.{digits}f}" if value < 1000 else f"{value:.1e}"
