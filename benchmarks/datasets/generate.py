"""
TPC-DS, TPC-H and data of our own as Parquet, at any scale factor, in bounded memory.

DuckDB generates into a database file on disk, from which every table is copied to
Parquet in slices of its row order. So the files are the same on every machine, whatever its number
of threads, and a fact table stays roughly ordered by date, as data that arrives day by day is.

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
from benchmarks.datasets.own import OWN, digest, tables_sql
from benchmarks.paths import DATA, data_folder, scale_text
from benchmarks.progress import end_cleanly, heartbeat, say

ROW_GROUP_ROWS = 1 << 20
FILE_ROWS = 1 << 22
LAYOUT = 1
MARKER = "_complete.json"


def slices(rows: int, per_file: int = FILE_ROWS) -> list[tuple[int, int]]:
    """Cut a table into files by row number."""
    return [(at, min(at + per_file, rows)) for at in range(0, max(rows, 1), per_file)]


def generate(connection: duckdb.DuckDBPyConnection, suite: str, scale: float) -> None:
    """Call the suite's generator into the connection's database."""
    if suite in OWN:
        connection.execute(tables_sql(suite, scale))
        return
    if suite == "tpcds":
        connection.execute(f"CALL dsdgen(sf = {scale_text(scale)})")
        return
    steps = math.ceil(scale)
    if steps <= 1:
        connection.execute(f"CALL dbgen(sf = {scale_text(scale)})")
        return
    for step in range(steps):
        connection.execute(
            f"CALL dbgen(sf = {scale_text(scale)}, children = {steps}, step = {step})"
        )


def write_table(connection: duckdb.DuckDBPyConnection, table: str, folder: Path) -> dict[str, int]:
    """Copy one table to ``<folder>/<table>.parquet/part-*.parquet``."""
    counted = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    rows = int(counted[0]) if counted else 0
    target = folder / f"{table}.parquet"
    target.mkdir(parents=True)
    size = 0
    parts = slices(rows)
    for number, (first, end) in enumerate(parts):
        file = target / f"part-{number:05d}.parquet"
        connection.execute(
            f"COPY (SELECT * FROM {table} WHERE rowid >= {first} AND rowid < {end}) "
            f"TO '{file}' (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
        )
        size += file.stat().st_size
    return {"rows": rows, "files": len(parts), "bytes": size}


def make(
    suite: str, scale: float, root: Path = DATA, memory: str = "4GB", force: bool = False
) -> Path:
    """Make a data set, or find the one that is there."""
    folder = data_folder(suite, scale, root)
    expected = expected_marker(suite, scale)
    if not force and is_made(folder, expected):
        return folder
    root.mkdir(parents=True, exist_ok=True)
    with (root / f".making-{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another process may have made it meanwhile; one that was killed has left its beginning.
        if force or not is_made(folder, expected):
            _make(suite, scale, folder, expected, memory)
    return folder


def is_made(folder: Path, expected: dict[str, Any]) -> bool:
    found = read_marker(folder)
    return all(found.get(key) == value for key, value in expected.items())


def _make(suite: str, scale: float, folder: Path, expected: dict[str, Any], memory: str) -> None:
    temp = folder.with_name(f".making-{folder.name}")
    shutil.rmtree(temp, ignore_errors=True)
    temp.mkdir()
    start = time.monotonic()
    try:
        work = temp / "work"
        work.mkdir()
        say(f"{folder.name}: generating")
        extension = suite if suite in SUITES else None
        connection = connect(extension, str(work / "data.duckdb"), memory, temp=work / "spill")
        with heartbeat("generating", work):
            generate(connection, suite, scale)
        say(f"{folder.name}: generated in {time.monotonic() - start:.0f} s, writing Parquet")
        tables = {}
        names = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
        for number, (table,) in enumerate(names, 1):
            tables[table] = write_table(connection, table, temp)
            facts = tables[table]
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


def expected_marker(suite: str, scale: float) -> dict[str, Any]:
    """State what a finished data set's marker must say to be used again."""
    marker = {"suite": suite, "scale": scale, "duckdb": duckdb.__version__, "layout": LAYOUT}
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
    """Command line: make a data set and print its folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", choices=(*SUITES, *OWN), default="tpcds")
    parser.add_argument("--sf", type=float, default=1.0, help="scale factor")
    parser.add_argument("--memory", default="4GB", help="memory that DuckDB may use")
    parser.add_argument("--force", action="store_true", help="make it again")
    options = parser.parse_args()
    end_cleanly()
    print(make(options.suite, options.sf, memory=options.memory, force=options.force))


if __name__ == "__main__":
    main()
