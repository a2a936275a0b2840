"""
TPC-DS, TPC-H and our own skewed data as Parquet, at any scale factor, in bounded memory.

DuckDB generates into a database file on disk, from which every table is copied to
Parquet in slices of its row order. So the files are the same on every machine, whatever its number
of threads, and a fact table stays roughly ordered by date, as data that arrives day by day is.

    python -m benchmarks.data --suite tpcds --sf 1
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import skewed
from benchmarks.duck import SUITES, connect
from benchmarks.kept import MARKER, clear_left_over, expected_marker, read_marker
from benchmarks.paths import DATA, data_folder, scale_text
from benchmarks.progress import end_cleanly, heartbeat, say

if TYPE_CHECKING:
    import duckdb

ROW_GROUP_ROWS = 1 << 20
FILE_ROWS = 1 << 22


def slices(rows: int, per_file: int = FILE_ROWS) -> list[tuple[int, int]]:
    """
    Cut a table into files by row number.

    Parameters
    ----------
    rows : int
        Rows of the table.
    per_file : int
        Rows of a file at most.

    Returns
    -------
    list of (int, int)
        First row and the row after the last one, of every file. An empty table has one empty file.

    Examples
    --------
    >>> slices(10, 4)
    [(0, 4), (4, 8), (8, 10)]
    """
    return [(at, min(at + per_file, rows)) for at in range(0, max(rows, 1), per_file)]


def generate(connection: duckdb.DuckDBPyConnection, suite: str, scale: float) -> None:
    """
    Call the suite's generator into the connection's database.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        A connection with the suite's extension.
    suite : str
        ``tpcds``, ``tpch`` or ``skewed``.
    scale : float
        Scale factor.

    Examples
    --------
    >>> connection = connect("tpch")
    >>> generate(connection, "tpch", 0.01)
    >>> connection.sql("select count(*) from nation").fetchone()
    (25,)
    """
    if suite == "skewed":
        connection.execute(skewed.tables_sql(scale))
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
    """
    Copy one table to ``<folder>/<table>.parquet/part-*.parquet``.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Database that has the table.
    table : str
        Its name.
    folder : pathlib.Path
        The data set's folder.

    Returns
    -------
    dict
        ``rows``, ``files`` and ``bytes`` written.

    Examples
    --------
    >>> import tempfile
    >>> connection = connect()
    >>> _ = connection.execute("create table t as select 1 as k")
    >>> write_table(connection, "t", Path(tempfile.mkdtemp()))["rows"]
    1
    """
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
    """
    Make a data set, or find the one that is there.

    Parameters
    ----------
    suite : str
        ``tpcds``, ``tpch`` or ``skewed``.
    scale : float
        Scale factor.
    root : pathlib.Path
        Parent of all data sets.
    memory : str
        Memory that DuckDB may use.
    force : bool
        Make it again even if it is complete.

    Returns
    -------
    pathlib.Path
        The data set's folder, complete.

    Examples
    --------
    >>> make("tpcds", 0.01).name  # doctest: +SKIP
    'tpcds-sf0.01'
    """
    folder = data_folder(suite, scale, root)
    expected = expected_marker(suite, scale)
    found = read_marker(folder)
    if not force and all(found.get(key) == value for key, value in expected.items()):
        return folder
    clear_left_over(root, folder.name)
    temp = root / f".making-{folder.name}-{os.getpid()}"
    temp.mkdir(parents=True)
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
    return folder


def main(arguments: list[str] | None = None) -> int:
    """
    Command line: make a data set and print its folder.

    Parameters
    ----------
    arguments : list of str or None
        Arguments, by default the process's.

    Returns
    -------
    int
        Exit code.

    Examples
    --------
    >>> main(["--suite", "tpcds", "--sf", "0.01"])  # doctest: +SKIP
    0
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.data", description=__doc__)
    parser.add_argument("--suite", choices=(*SUITES, "skewed"), default="tpcds")
    parser.add_argument("--sf", type=float, default=1.0, help="scale factor")
    parser.add_argument("--memory", default="4GB", help="memory that DuckDB may use")
    parser.add_argument("--force", action="store_true", help="make it again")
    options = parser.parse_args(arguments)
    end_cleanly()
    print(make(options.suite, options.sf, memory=options.memory, force=options.force))
    return 0


if __name__ == "__main__":
    sys.exit(main())
