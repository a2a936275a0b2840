"""Data sets that are kept: which are complete, and what killed processes have left."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import skewed

LAYOUT = 1
MARKER = "_complete.json"


def expected_marker(suite: str, scale: float) -> dict[str, Any]:
    """
    State what a finished data set's marker must say to be used again.

    Parameters
    ----------
    suite : str
        ``tpcds``, ``tpch`` or ``skewed``.
    scale : float
        Scale factor.

    Returns
    -------
    dict
        Suite, scale, DuckDB version, layout number, and the definition of tables of our own.

    Examples
    --------
    >>> expected_marker("tpcds", 1)["layout"]
    1
    """
    marker = {"suite": suite, "scale": scale, "duckdb": duckdb.__version__, "layout": LAYOUT}
    return {**marker, "definition": skewed.digest()} if suite == "skewed" else marker


def read_marker(folder: Path) -> dict[str, Any]:
    """
    Read a data set's marker.

    Parameters
    ----------
    folder : pathlib.Path
        The data set's folder.

    Returns
    -------
    dict
        The marker, empty if there is none.

    Examples
    --------
    >>> read_marker(Path("no/such/folder"))
    {}
    """
    path = folder / MARKER
    if not path.is_file():
        return {}
    marker: dict[str, Any] = json.loads(path.read_text())
    return marker


def clear_left_over(root: Path, name: str) -> None:
    """
    Delete what killed processes have left of a data set.

    Parameters
    ----------
    root : pathlib.Path
        Parent of all data sets.
    name : str
        Name of the data set's folder.

    Examples
    --------
    >>> clear_left_over(Path("no/such/folder"), "tpcds-sf1")
    """
    for folder in root.glob(f".making-{name}-*"):
        if not _alive(int(folder.name.rpartition("-")[2])):
            shutil.rmtree(folder, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
