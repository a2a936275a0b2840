"""Results as a table in a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import median
from typing import Any

Row = dict[str, Any]


def render(
    header: Sequence[str], lines: Sequence[Sequence[str]], left: Collection[int] = (0,)
) -> str:
    """
    Lay out a table.

    Parameters
    ----------
    header : sequence of str
        Column titles.
    lines : sequence of sequences of str
        Cells.
    left : collection of int
        Columns set to the left; all others are numbers, to the right.

    Returns
    -------
    str

    Examples
    --------
    >>> print(render(["query", "s"], [["q01", "1.00"]]))
    query     s
    -----  ----
    q01    1.00
    """
    widths = [max(len(line[at]) for line in [header, *lines]) for at in range(len(header))]

    def layout(line: Sequence[str]) -> str:
        cells = (
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([layout(header), rule, *map(layout, lines)])


def number(value: float | None, digits: int = 2) -> str:
    """
    Write a number, or a dash where there is none.

    Parameters
    ----------
    value : float or None
        The number.
    digits : int
        After the point.

    Returns
    -------
    str

    Examples
    --------
    >>> number(1.234), number(None)
    ('1.23', '-')
    """
    return "-" if value is None else f"{value:.{digits}f}"


def middle(times: Sequence[float] | None) -> float | None:
    """
    Take the median, if there is anything.

    Parameters
    ----------
    times : sequence of float or None
        Seconds.

    Returns
    -------
    float or None

    Examples
    --------
    >>> middle([1.0, 3.0, 2.0]), middle([])
    (2.0, None)
    """
    return median(times) if times else None


def answer_word(row: Row) -> str:
    """
    Say in a word whether a row's answers agree.

    Parameters
    ----------
    row : dict
        A row of the results.

    Returns
    -------
    str
        ``equal``, ``ties``, ``DIFFER``, or ``FAILED`` with the sides that did.

    Examples
    --------
    >>> answer_word({"equal": None, "failures": {"stock": "TIMEOUT"}})
    'FAILED stock'
    """
    failures = row.get("failures")
    if failures:
        return f"FAILED {','.join(failures)}"
    return {True: "equal", "ties": "ties", False: "DIFFER"}.get(row.get("equal", False), "DIFFER")


def row_cells(row: Row, profiles: Sequence[str]) -> list[str]:
    """
    Write one query's line.

    Parameters
    ----------
    row : dict
        A row of the results.
    profiles : sequence of str
        In the order of the columns.

    Returns
    -------
    list of str

    Examples
    --------
    >>> row_cells({"name": "q01", "stock_s": [1.0], "equal": True}, ["stock"])
    ['q01', '1.00', '-', 'equal']
    """
    cells = [row["name"]]
    cells += [number(middle(row.get(f"{name}_s"))) for name in profiles]
    cells.append(number(row.get("duckdb_s")))
    if len(profiles) > 1:
        low, high = row.get("ratio_spread") or (None, None)
        mark = " again" if "first" in row else ""
        cells += [number(row.get("ratio")), f"{number(low)}..{number(high)}{mark}"]
        base, last = (row.get(f"planning_{name}_ms") for name in (profiles[0], profiles[-1]))
        cells.append("-" if base is None or last is None else f"{last - base:+.0f}")
    return [*cells, answer_word(row)]


def results_table(rows: Sequence[Row], summary: Row, profiles: Sequence[str]) -> str:
    """
    Write all queries, then total, geometric mean, best and worst.

    Parameters
    ----------
    rows : sequence of dict
        Rows of the results.
    summary : dict
        Their summary.
    profiles : sequence of str
        Names of the profiles.

    Returns
    -------
    str

    Examples
    --------
    >>> row = {"name": "q01", "stock_s": [1.0], "equal": True}
    >>> "total" in results_table([row], {"equal": True, "stock_total_s": 1.0}, ["stock"])
    True
    """
    header = ["query", *(f"{name} s" for name in profiles), "duckdb s"]
    if len(profiles) > 1:
        header += ["ratio", "spread", "plan +ms"]
    lines = [row_cells(row, profiles) for row in rows]
    totals = ["total", *(number(summary.get(f"{name}_total_s"), 1) for name in profiles)]
    totals.append(number(summary.get("duckdb_total_s"), 1))
    if len(profiles) > 1:
        added = summary.get("planning_added_ms_median")
        totals += [
            number(summary.get("total_ratio")),
            "",
            "-" if added is None else f"{added:+.1f}",
        ]
    totals.append(answer_word({"equal": summary["equal"]}))
    text = render([*header, "answers"], [*lines, totals])
    if "geomean_ratio" not in summary:
        return text
    best, worst = summary["best"], summary["worst"]
    return "\n".join(
        [
            text,
            "",
            f"total          {number(summary['total_ratio'])} x {profiles[0]}",
            f"geometric mean {number(summary['geomean_ratio'])}",
            f"best           {number(best['ratio'])} ({best['name']})",
            f"worst          {number(worst['ratio'])} ({worst['name']})",
            f"faster         {summary['faster']} of {summary['rated']} by more than a tenth",
            f"slower         {summary['slower']}",
        ]
    )
