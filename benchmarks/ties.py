"""
Results that differ because ORDER BY … LIMIT left the choice open.

Where rows tie on the sort keys, any of them may stand in the last places. So the query is run
again without its final LIMIT, and the whole results are compared: part by part, to stay within
memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.compare import Difference, Row, compare_rows
from benchmarks.duck import connect

if TYPE_CHECKING:
    import duckdb

PART_ROWS = 200_000
EXACT_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DECIMAL")
INEXACT = ("FLOAT", "DOUBLE")


def compare_files(left: Path, right: Path, relative: float) -> Difference:
    """
    Compare two results that are Parquet files with columns ``c0``, ``c1``, ….

    Parameters
    ----------
    left, right : pathlib.Path
        A file, or a folder of them.
    relative : float
        Tolerance in inexact columns.

    Returns
    -------
    Difference
        Of all rows.

    Examples
    --------
    >>> compare_files(Path("stock"), Path("selinger"), 1e-9).equal  # doctest: +SKIP
    True
    """
    connection = connect()
    try:
        for name, path in (("l", left), ("r", right)):
            files = f"{path}/*.parquet" if path.is_dir() else str(path)
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{files}')")
        counts = [_count(connection, name) for name in ("l", "r")]
        if counts[0] != counts[1]:
            return Difference(counts[0], counts[1])
        for ours, theirs in _parts(connection, max(counts)):
            found = compare_rows(ours, theirs, relative)
            if not found.equal:
                return Difference(counts[0], counts[1], found.only_left, found.only_right)
        return Difference(counts[0], counts[1])
    finally:
        connection.close()


def _count(connection: duckdb.DuckDBPyConnection, view: str) -> int:
    found = connection.execute(f"SELECT count(*) FROM {view}").fetchone()
    return int(found[0]) if found else 0


def _types(connection: duckdb.DuckDBPyConnection, view: str) -> dict[str, str]:
    rows = connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE {view})").fetchall()
    return {str(name): str(kind) for name, kind in rows}


def part_key(left: dict[str, str], right: dict[str, str]) -> str:
    """
    Write an expression that is the same for rows that agree, to part both results by.

    Parameters
    ----------
    left, right : dict of str to str
        Type of every column.

    Returns
    -------
    str
        SQL for DuckDB, over the columns that are exact on both sides; a constant if there is none.

    Examples
    --------
    >>> part_key({"c0": "VARCHAR", "c1": "DOUBLE"}, {"c0": "VARCHAR", "c1": "DOUBLE"})
    'hash(CAST(c0 AS VARCHAR))'
    >>> part_key({"c0": "DOUBLE"}, {"c0": "DECIMAL(7,2)"})
    '0'
    """
    texts = []
    for name, kind in left.items():
        kinds = (kind, right.get(name, kind))
        if any(kind.startswith(INEXACT) for kind in kinds):
            continue
        number = all(kind.startswith(EXACT_NUMBERS) for kind in kinds)
        exact = f"CAST({name} AS DECIMAL(38,10))" if number else name
        texts.append(f"CAST({exact} AS VARCHAR)")
    return f"hash({', '.join(texts)})" if texts else "0"


def _parts(
    connection: duckdb.DuckDBPyConnection, rows: int
) -> Iterator[tuple[list[Row], list[Row]]]:
    key = part_key(_types(connection, "l"), _types(connection, "r"))
    parts = rows // PART_ROWS + 1
    for part in range(parts):
        chosen = f"WHERE {key} % {parts} = {part}" if parts > 1 else ""
        ours = connection.execute(f"SELECT * FROM l {chosen}").fetchall()
        theirs = connection.execute(f"SELECT * FROM r {chosen}").fetchall()
        yield ours, theirs
