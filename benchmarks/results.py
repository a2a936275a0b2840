"""Where results go, and what they look like."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchmarks.figures import summarise
from benchmarks.paths import RESULTS, scale_text
from benchmarks.profiles import public_text
from benchmarks.table import answer_word, middle, number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def line(row: dict[str, Any], profiles: Sequence[str]) -> str:
    """
    Write a query's progress line.

    Parameters
    ----------
    row : dict
        Its row.
    profiles : sequence of str
        Names.

    Returns
    -------
    str

    Examples
    --------
    >>> line({"name": "q01", "stock_s": [1.0], "duckdb_s": 0.1, "equal": True}, ["stock"])
    'q01: stock 1.00 s, duckdb 0.10 s, equal'
    """
    parts = [f"{name} {number(middle(row.get(f'{name}_s')))} s" for name in profiles]
    parts.append(f"duckdb {number(row.get('duckdb_s'))} s")
    if row.get("ratio"):
        parts.append(f"ratio {number(row['ratio'])}")
    return f"{row['name']}: {', '.join([*parts, answer_word(row)])}"


def output_path(suite: str, scale: float, out: Path | None = None) -> Path:
    """
    Find where the results go.

    Parameters
    ----------
    suite : str
        ``tpcds`` or ``tpch``.
    scale : float
        Scale factor.
    out : pathlib.Path or None
        What the user wants.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> output_path("tpcds", 10).name
    'tpcds-sf10.json'
    """
    return (out or RESULTS / f"{suite}-sf{scale_text(scale)}.json").resolve()


def state_path(out: Path) -> Path:
    """
    Find the state file that belongs to a results file.

    Parameters
    ----------
    out : pathlib.Path
        The results.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> from pathlib import Path
    >>> state_path(Path("tpcds-sf1.json")).name
    'tpcds-sf1.state.jsonl'
    """
    return out.with_suffix(".state.jsonl")


def write_results(
    out: Path, settings: dict[str, Any], rows: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """
    Write the results.

    Parameters
    ----------
    out : pathlib.Path
        The file.
    settings : dict
        Of `configuration`, with the data's marker.
    rows : sequence of dict
        One a query.

    Returns
    -------
    dict
        What was written.
    """
    config = dict(settings)
    results = {
        "benchmark": out.stem,
        "commit": config.pop("commit"),
        "spark": config.pop("spark"),
        "data": config.pop("data"),
        "config": config,
        "rows": list(rows),
        "summary": summarise(rows, list(settings["profiles"])),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(public_text(json.dumps(results, indent=1)) + "\n")
    return results
