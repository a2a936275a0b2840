"""
TPC-DS, TPC-H and data of our own as Parquet, at any scale factor, in bounded memory.

DuckDB generates into a database file on disk, from which every table is copied to
Parquet in slices of its row order. So the files are the same on every machine, whatever its number
of threads. Of TPC-DS, catalog_sales and inventory come in the order of their days, the other facts
do not; `layouts` has other orders and files.

    python -m benchmarks.datasets.generate --suite tpcds --sf 1
"""

import argparse
import fcntl
import json
import math
import shutil
import time
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.datasets.duck import SUITES, connect
from benchmarks.datasets.layouts import LAYOUTS, rewrite_table, write_table
from benchmarks.datasets.own import OWN, digest, tables_sql
from benchmarks.paths import DATA, GENERATED, data_name, scale_text
from benchmarks.progress import end_cleanly, heartbeat, say

# Counted up when the same layout is written in another way.
WRITER = 1
MARKER = "_complete.json"


def generate(connection: duckdb.DuckDBPyConnection, suite: str, scale: float) -> None:
    """Call the suite's generator into the connection's database."""
    factor = f"sf = {scale_text(scale)}"
    steps = math.ceil(scale)
    if suite in OWN:
        connection.execute(tables_sql(suite, scale))
    elif suite == "tpcds":
        connection.execute(f"CALL dsdgen({factor})")
    elif steps <= 1:
        connection.execute(f"CALL dbgen({factor})")
    else:
        for step in range(steps):
            connection.execute(f"CALL dbgen({factor}, children = {steps}, step = {step})")


def make(
    suite: str,
    scale: float,
    root: Path = DATA,
    memory: str = "4GB",
    force: bool = False,
    layout: str = GENERATED,
) -> Path:
    """Make a data set, or find the one that is there; other layouts are copies of the generated."""
    folder = root / data_name(suite, scale, layout)
    expected = expected_marker(suite, scale, layout)
    source = None if layout == GENERATED else make(suite, scale, root, memory)
    if not force and is_made(folder, expected):
        return folder
    root.mkdir(parents=True, exist_ok=True)
    with (root / f".making-{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another process may have made it meanwhile; one that was killed has left its beginning.
        if force or not is_made(folder, expected):
            _make(folder, expected, memory, source)
    return folder


def is_made(folder: Path, expected: dict[str, Any]) -> bool:
    return expected.items() <= read_marker(folder).items()


def _make(folder: Path, expected: dict[str, Any], memory: str, source: Path | None) -> None:
    suite = expected["suite"]
    temp = folder.with_name(f".making-{folder.name}")
    shutil.rmtree(temp, ignore_errors=True)
    temp.mkdir()
    start = time.monotonic()
    try:
        work = temp / "work"
        work.mkdir()
        say(f"{folder.name}: {'generating' if source is None else 'copying'}")
        extension = suite if suite in SUITES else None
        connection = connect(extension, str(work / "data.duckdb"), memory, temp=work / "spill")
        if source is None:
            with heartbeat("generating", work):
                generate(connection, suite, expected["scale"])
            say(f"{folder.name}: generated in {time.monotonic() - start:.0f} s, writing Parquet")
            found = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
            names = sorted(name for (name,) in found)
        else:
            names = list(table_folders(source))
        layout = LAYOUTS[expected["layout"]]
        tables = {}
        for number, table in enumerate(names, 1):
            target = temp / f"{table}.parquet"
            if source is None:
                facts = write_table(connection, table, target, layout)
            else:
                facts = rewrite_table(connection, source / target.name, target, layout)
            tables[table] = facts
            say(
                f"  {number}/{len(names)} {table}: {facts['rows']:,} rows, {facts['files']} files, "
                f"{facts['bytes'] / 2**20:.1f} MiB ({time.monotonic() - start:.0f} s)"
            )
        connection.close()
        shutil.rmtree(work)
        (temp / MARKER).write_text(json.dumps({**expected, "tables": tables}, indent=1) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        temp.rename(folder)
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    say(f"{folder.name}: complete after {time.monotonic() - start:.0f} s")


def expected_marker(suite: str, scale: float, layout: str) -> dict[str, Any]:
    """State what a finished data set's marker must say to be used again."""
    version = {"duckdb": duckdb.__version__, "writer": WRITER}
    marker = {"suite": suite, "scale": scale, "layout": layout, **version}
    return {**marker, "definition": digest(suite)} if suite in OWN else marker


def read_marker(folder: Path) -> dict[str, Any]:
    path = folder / MARKER
    if not path.is_file():
        return {}
    marker: dict[str, Any] = json.loads(path.read_text())
    return marker


def table_folders(folder: Path) -> dict[str, str]:
    """List a data set's tables: the folder of Parquet files by name."""
    return {path.stem: str(path) for path in sorted(folder.glob("*.parquet"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", choices=(*SUITES, *OWN), default="tpcds")
    parser.add_argument("--sf", type=float, default=1.0, help="scale factor")
    parser.add_argument("--layout", choices=LAYOUTS, default=GENERATED)
    parser.add_argument("--memory", default="4GB", help="memory that DuckDB may use")
    parser.add_argument("--force", action="store_true", help="make it again")
    options = parser.parse_args()
    end_cleanly()
    made = make(
        options.suite, options.sf, memory=options.memory, force=options.force, layout=options.layout
    )
    print(made)


if __name__ == "__main__":
    main()
