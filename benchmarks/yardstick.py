"""DuckDB on the same files: a second opinion on every answer, and a yardstick for its time."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

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


class _interrupted_after:  # noqa: N801  # reads as a statement
    def __init__(self, connection: duckdb.DuckDBPyConnection, seconds: float) -> None:
        self.timer = threading.Timer(seconds, connection.interrupt)

    def __enter__(self) -> None:
        self.timer.start()

    def __exit__(self, *error: object) -> None:
        self.timer.cancel()
