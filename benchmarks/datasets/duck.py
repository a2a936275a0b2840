"""DuckDB as the maker of data, the source of query texts and the yardstick."""

import importlib
import os
from pathlib import Path

import duckdb

SUITES = ("tpcds", "tpch")


def extension_path(suite: str) -> Path:
    """Find the DuckDB extension file inside the Python package that carries it."""
    package = importlib.import_module(f"duckdb_extension_{suite}")
    folder = Path(str(package.__file__)).parent / "extensions" / f"v{duckdb.__version__}"
    path = folder / f"{suite}.duckdb_extension"
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing: install duckdb-extension-{suite}=={duckdb.__version__}, "
            f"the version of the duckdb package."
        )
    return path


def connect(
    suite: str | None = None,
    database: str = ":memory:",
    memory: str = "4GB",
    threads: int | None = None,
    temp: Path | None = None,
) -> duckdb.DuckDBPyConnection:
    """Open DuckDB with a suite's extension loaded and memory bounded."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory,
        "threads": threads or os.cpu_count() or 2,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if temp is not None:
        config["temp_directory"] = str(temp)
    connection = duckdb.connect(database, config=config)
    if suite is not None:
        connection.execute(f"LOAD '{extension_path(suite)}'")
    connection.execute("SET enable_progress_bar = false")
    return connection


def attach(connection: duckdb.DuckDBPyConnection, name: str, path: Path) -> None:
    """Make a view of a Parquet file, or of a folder of them."""
    files = f"{path}/*.parquet" if path.is_dir() else str(path)
    connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{files}')")


def attach_tables(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    for path in sorted(folder.glob("*.parquet")):
        attach(connection, path.stem, path)


def count(connection: duckdb.DuckDBPyConnection, relation: str) -> int:
    found = connection.execute(f"SELECT count(*) FROM {relation}").fetchone()
    return int(found[0]) if found else 0
