"""What a measurement was made with: commit, versions, machine."""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.paths import ROOT

SOURCES = ("src", "python/selinger", "build.sbt", "version.sbt", "project", "conf")


def commit() -> str:
    """
    Name the commit that is measured.

    Returns
    -------
    str
        Its hash, with ``-dirty`` if the sources differ from it; ``none`` without a commit.

    Examples
    --------
    >>> isinstance(commit(), str)
    True
    """
    head = _git("rev-parse", "--verify", "--quiet", "HEAD")
    if not head:
        return "none"
    return f"{head}-dirty" if _git("status", "--porcelain", "--", *SOURCES) else head


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip()


def machine() -> dict[str, Any]:
    """
    Describe the machine as far as figures depend on it.

    Returns
    -------
    dict
        ``cores``, ``memory_gib`` and ``cpu``, as far as they can be found out.

    Examples
    --------
    >>> machine()["cores"] > 0
    True
    """
    found: dict[str, Any] = {"cores": os.cpu_count() or 1}
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        found["memory_gib"] = round(size / 2**30, 1)
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                found["cpu"] = line.partition(":")[2].strip()
                break
    return found


def versions() -> dict[str, str]:
    """
    Give the versions of what is compared.

    Returns
    -------
    dict of str to str
        Of PySpark and DuckDB.

    Examples
    --------
    >>> versions()["duckdb"]
    '1.5.5'
    """
    return {"spark": version("pyspark"), "duckdb": version("duckdb")}
