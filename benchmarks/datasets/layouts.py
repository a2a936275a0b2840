"""Other layouts of a data set: the same rows, in other files and in another order."""

import math
import re
from dataclasses import dataclass
from pathlib import Path

import duckdb

from benchmarks.paths import GENERATED

ROW_GROUP_ROWS = 1 << 20
FILE_ROWS = 1 << 22
MANY = 200
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
    "many-files": Layout(files=MANY),
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
    rows = parquet_rows(connection, source)
    target.mkdir(parents=True)
    day = next(filter(_DAY.fullmatch, columns), None)
    order = {"day": day, "random": "hash(t)"}.get(layout.order)
    sorted_by = f" ORDER BY {order}" if order else ""
    options = f"FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {layout.group_rows}"
    if layout.partitioned and day:
        connection.execute(
            f"COPY (SELECT * FROM {read} t{sorted_by}) TO '{target}' "
            f"({options}, PARTITION_BY ({day}), OVERWRITE_OR_IGNORE)"
        )
    else:
        per_file = layout.file_rows
        if layout.files and rows > FILE_ROWS / 4:
            per_file = math.ceil(rows / layout.files)
        connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT * FROM {read} t{sorted_by}")
        write_slices(connection, "t", rows, target, per_file, layout.group_rows)
        connection.execute("DROP TABLE t")
    return size_of(rows, target)


def write_slices(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    rows: int,
    target: Path,
    file_rows: int = FILE_ROWS,
    group_rows: int = ROW_GROUP_ROWS,
) -> None:
    """Write a table of DuckDB's in the order that it has, some rows a file."""
    for number, (first, end) in enumerate(slices(rows, file_rows)):
        connection.execute(
            f"COPY (SELECT * FROM {table} WHERE rowid >= {first} AND rowid < {end}) "
            f"TO '{target}/part-{number:05d}.parquet' "
            f"(FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {min(group_rows, rows + 1)})"
        )


def slices(rows: int, per_file: int = FILE_ROWS) -> list[tuple[int, int]]:
    """Cut a table into files by row number."""
    return [(at, min(at + per_file, rows)) for at in range(0, max(rows, 1), per_file)]


def parquet_rows(connection: duckdb.DuckDBPyConnection, source: Path) -> int:
    read = f"SELECT sum(num_rows) FROM parquet_file_metadata('{source}/*.parquet')"
    found = connection.execute(read).fetchone()
    return int(found[0]) if found and found[0] else 0


def size_of(rows: int, target: Path) -> dict[str, int]:
    files = list(target.rglob("*.parquet"))
    return {"rows": rows, "files": len(files), "bytes": sum(file.stat().st_size for file in files)}
