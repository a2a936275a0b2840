"""DuckDB on the same files: a second opinion on every answer, and a yardstick for its time."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.datasets.duck import attach_tables, connect
from benchmarks.datasets.queries import DUCKDB_SETTING
from benchmarks.runner.compare import Row


class Yardstick:
    def __init__(self, folder: Path, threads: int, memory: str, temp: Path) -> None:
        self.connection = connect(memory=memory, threads=threads, temp=temp)
        self.connection.execute(DUCKDB_SETTING)
        attach_tables(self.connection, folder)

    def run(self, sql: str, timeout: float, best_of: int = 2) -> tuple[float, list[Row]]:
        seconds = float("inf")
        rows: list[Row] = []
        for _ in range(best_of):
            start = time.perf_counter()
            with _interrupted_after(self.connection, timeout):
                rows = self.connection.execute(sql).fetchall()
            seconds = min(seconds, time.perf_counter() - start)
        return seconds, rows

    def join_rows(self, sql: str, timeout: float) -> int:
        """Rows that all joins of a query's plan return, as DuckDB's profiler counts them."""
        with _interrupted_after(self.connection, timeout):
            rows = self.connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {sql}").fetchall()
        return rows_out_of_joins(json.loads(rows[0][1]))

    def write(self, sql: str, to: Path, timeout: float) -> None:
        """Write a query's whole result as Parquet, columns named ``c0``, ``c1``, …."""
        width = len(self.connection.execute(f"DESCRIBE {sql}").fetchall())
        names = ", ".join(f"c{number}" for number in range(width))
        with _interrupted_after(self.connection, timeout):
            self.connection.execute(
                f"COPY (SELECT * FROM ({sql}) AS whole({names})) TO '{to}' (FORMAT parquet)"
            )

    def close(self) -> None:
        self.connection.close()


def rows_out_of_joins(operator: dict[str, Any]) -> int:
    """Sum the rows of all joins of a profiled plan."""
    kind = str(operator.get("operator_type", ""))
    joins = kind == "CROSS_PRODUCT" or (kind.endswith("_JOIN") and "DELIM" not in kind)
    own = int(operator["operator_cardinality"]) if joins else 0
    return own + sum(rows_out_of_joins(child) for child in operator.get("children", []))


@contextmanager
def _interrupted_after(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, connection.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
