"""Files of results: what was measured, with which command, of which commit, on what machine."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.paths import RESULTS, ROOT, public_text
from benchmarks.reporting.figures import summarise
from benchmarks.reporting.state import State

SOURCES = ("src", "python/selinger", "build.sbt", "version.sbt", "project", "conf")


def commit() -> str:
    """Name the commit that is measured, with ``-dirty`` if the sources differ from it."""
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


def setting() -> dict[str, Any]:
    """Say when, of which commit, with which versions and on what machine something is measured."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": commit(),
        "spark": version("pyspark"),
        "duckdb": version("duckdb"),
        "machine": {"cores": os.cpu_count() or 1, "memory_gib": round(memory / 2**30, 1)},
    }


def save(results: Mapping[str, Any], out: Path | None = None) -> Path:
    """Write ``benchmarks/results/<benchmark>.json``."""
    path = out or RESULTS / f"{results['benchmark']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(public_text(json.dumps(results, indent=1)) + "\n", encoding="utf-8")
    return path


def of_run(state: State, wanted: Sequence[str] | None = None) -> dict[str, Any]:
    """Put the results of `benchmarks.run` together from its state file: all, or those wanted."""
    names = sorted(state.entries) if wanted is None else wanted
    rows = [state.entries[name]["row"] for name in names]
    config = state.head["record"]["config"]
    missing = len(rows) < config["suite_queries"]
    return {
        **state.head["record"],
        "partial": f"{len(rows)} of {config['suite_queries']} queries" if missing else "",
        "rows": rows,
        "summary": summarise(rows, list(config["profiles"])),
    }
