"""Other layouts of a data set: the same rows, in other files and in another order."""

import math
import re
from dataclasses import dataclass
from pathlib import Path

import duckdb

from benchmarks.datasets.duck import count
from benchmarks.paths import GENERATED

ROW_GROUP_ROWS = 1 << 20
FILE_ROWS = 1 << 22
ALL = 1 << 40

# The day that facts are about; tables without such a column keep their order.
_DAY = re.compile(r"(\w+_(sold|returned)|inv)_date_sk|l_shipdate|o_orderdate")


@dataclass(frozen=True)
class Layout:
    """
    How the rows of a table lie in its files.

    `order`: ``""`` keeps the order of the generator, ``"day"`` sorts fact tables by their date
    column, ``"random"`` puts rows in an order without meaning, the same one each time.
    `files`: how many files a table of more than a million rows has; if 0, each file has `file_rows`
    rows instead. `group_rows`: rows of a row group. `partitioned`: each day of a fact table is a
    folder of its own.
    """

    order: str = ""
    files: int = 0
    file_rows: int = FILE_ROWS
    group_rows: int = ROW_GROUP_ROWS
    partitioned: bool = False


LAYOUTS = {
    GENERATED: Layout(),
    "by-day": Layout("day"),
    "unordered": Layout("random"),
    "one-file": Layout(file_rows=ALL),
    "many-files": Layout(files=200),
    "one-group": Layout(file_rows=ALL, group_rows=ALL),
    "small-groups": Layout(group_rows=1 << 15),
    "by-folder": Layout("day", partitioned=True),
}


def rewrite_table(
    connection: duckdb.DuckDBPyConnection, source: Path, target: Path, layout: Layout
) -> dict[str, int]:
    """Copy the Parquet files of one table into another layout."""
    read = f"read_parquet('{source}/*.parquet')"
    columns = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {read}").fetchall()]
    day = next(filter(_DAY.fullmatch, columns), None)
    order = {"day": day, "random": "hash(t)"}.get(layout.order)
    sorted_by = f" ORDER BY {order}" if order else ""
    if layout.partitioned and day:
        target.mkdir(parents=True)
        connection.execute(
            f"COPY (SELECT * FROM {read} t{sorted_by}) TO '{target}' (FORMAT parquet, "
            f"COMPRESSION snappy, ROW_GROUP_SIZE {layout.group_rows}, PARTITION_BY ({day}), "
            f"OVERWRITE_OR_IGNORE)"
        )
        return size_of(count(connection, read), target)
    connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT * FROM {read} t{sorted_by}")
    written = write_table(connection, "t", target, layout)
    connection.execute("DROP TABLE t")
    return written


def write_table(
    connection: duckdb.DuckDBPyConnection, table: str, target: Path, layout: Layout
) -> dict[str, int]:
    """Write a table of DuckDB's, in the order that it has, to ``<target>/part-*.parquet``."""
    rows = count(connection, table)
    per_file = layout.file_rows
    if layout.files and rows > FILE_ROWS / 4:
        per_file = math.ceil(rows / layout.files)
    group_rows = min(layout.group_rows, rows + 1)
    target.mkdir(parents=True)
    for number, (first, end) in enumerate(slices(rows, per_file)):
        connection.execute(
            f"COPY (SELECT * FROM {table} WHERE rowid >= {first} AND rowid < {end}) "
            f"TO '{target}/part-{number:05d}.parquet' "
            f"(FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {group_rows})"
        )
    return size_of(rows, target)


def slices(rows: int, per_file: int = FILE_ROWS) -> list[tuple[int, int]]:
    """Cut a table into files by row number."""
    return [(at, min(at + per_file, rows)) for at in range(0, max(rows, 1), per_file)]


def size_of(rows: int, target: Path) -> dict[str, int]:
    files = list(target.rglob("*.parquet"))
    return {"rows": rows, "files": len(files), "bytes": sum(file.stat().st_size for file in files)}
