"""DuckDB on the same files: a second opinion on every answer, and a yardstick for its time."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.duck import attach_tables, connect
from benchmarks.queries import DUCKDB_SETTINGS

if TYPE_CHECKING:
    import duckdb

    from benchmarks.compare import Row


class Yardstick:
    """
    A DuckDB session over a data set.

    Parameters
    ----------
    folder : pathlib.Path
        The data set's folder.
    threads : int
        As many as Spark's sessions have.
    memory : str
        DuckDB's memory limit.
    temp : pathlib.Path
        Folder for spilling.

    Examples
    --------
    >>> Yardstick(Path("data"), 2, "2GB", Path("/tmp")).run("select 1", 10)[1]  # doctest: +SKIP
    [(1,)]
    """

    def __init__(self, folder: Path, threads: int, memory: str, temp: Path) -> None:
        self.connection = connect(memory=memory, threads=threads, temp=temp)
        for setting in DUCKDB_SETTINGS:
            self.connection.execute(setting)
        attach_tables(self.connection, folder)

    def run(self, sql: str, timeout: float, best_of: int = 2) -> tuple[float, list[Row]]:
        """
        Run a query and fetch its rows.

        Parameters
        ----------
        sql : str
            In DuckDB's dialect.
        timeout : float
            Seconds after which it is interrupted.
        best_of : int
            How often it is run.

        Returns
        -------
        seconds : float
            Of the fastest run.
        rows : list of tuple
            The result.

        Raises
        ------
        duckdb.Error
            Also when interrupted.
        """
        seconds = float("inf")
        rows: list[Row] = []
        for _ in range(best_of):
            start = time.perf_counter()
            with _interrupted_after(self.connection, timeout):
                rows = self.connection.execute(sql).fetchall()
            seconds = min(seconds, time.perf_counter() - start)
        return seconds, rows

    def join_rows(self, sql: str, timeout: float) -> int:
        """
        Rows that all joins of a query's plan return, as DuckDB's profiler counts them.

        Parameters
        ----------
        sql : str
            In DuckDB's dialect. It runs once more.
        timeout : float
            Seconds after which it is interrupted.

        Returns
        -------
        int
            The sum over all joins.

        Raises
        ------
        duckdb.Error
            Also when interrupted.
        """
        with _interrupted_after(self.connection, timeout):
            rows = self.connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {sql}").fetchall()
        return rows_out_of_joins(json.loads(rows[0][1]))

    def write(self, sql: str, to: Path, timeout: float) -> None:
        """
        Write a query's whole result as Parquet, columns named ``c0``, ``c1``, ….

        Parameters
        ----------
        sql : str
            In DuckDB's dialect.
        to : pathlib.Path
            The file.
        timeout : float
            Seconds after which it is interrupted.
        """
        width = len(self.connection.execute(f"DESCRIBE {sql}").fetchall())
        names = ", ".join(f"c{number}" for number in range(width))
        with _interrupted_after(self.connection, timeout):
            self.connection.execute(
                f"COPY (SELECT * FROM ({sql}) AS whole({names})) TO '{to}' (FORMAT parquet)"
            )

    def close(self) -> None:
        """End the session."""
        self.connection.close()


def rows_out_of_joins(operator: dict[str, Any]) -> int:
    """
    Sum the rows of all joins of a profiled plan.

    Parameters
    ----------
    operator : dict
        Of the profiler's JSON: ``operator_type``, ``operator_cardinality`` and ``children``.

    Returns
    -------
    int
        The sum. A delim join, which stands for the join below it, is not counted twice.

    Examples
    --------
    >>> scan = {"operator_type": "TABLE_SCAN", "operator_cardinality": 9}
    >>> join = {"operator_type": "HASH_JOIN", "operator_cardinality": 4, "children": [scan, scan]}
    >>> rows_out_of_joins({"children": [join]})
    4
    """
    kind = str(operator.get("operator_type", ""))
    joins = kind == "CROSS_PRODUCT" or (kind.endswith("_JOIN") and "DELIM" not in kind)
    own = int(operator["operator_cardinality"]) if joins else 0
    return own + sum(rows_out_of_joins(child) for child in operator.get("children", []))


class _interrupted_after:  # noqa: N801  # reads as a statement
    def __init__(self, connection: duckdb.DuckDBPyConnection, seconds: float) -> None:
        self.timer = threading.Timer(seconds, connection.interrupt)

    def __enter__(self) -> None:
        self.timer.start()

    def __exit__(self, *error: object) -> None:
        self.timer.cancel()
