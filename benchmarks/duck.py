"""DuckDB as the maker of data, the source of query texts and the yardstick."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import duckdb

SUITES = ("tpcds", "tpch")


def extension_path(suite: str) -> Path:
    """
    Find the DuckDB extension file inside the Python package that carries it.

    Parameters
    ----------
    suite : str
        ``tpcds`` or ``tpch``.

    Returns
    -------
    pathlib.Path
        The ``.duckdb_extension`` file for the DuckDB that is installed.

    Raises
    ------
    FileNotFoundError
        The package has no file for this DuckDB version; install the two in one version.

    Examples
    --------
    >>> extension_path("tpcds").name
    'tpcds.duckdb_extension'
    """
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
    """
    Open DuckDB with a suite's extension loaded and memory bounded.

    Parameters
    ----------
    suite : str or None
        Extension to load, none if not given.
    database : str
        Path of the database file, or ``:memory:``.
    memory : str
        DuckDB's ``memory_limit``.
    threads : int or None
        Threads, by default as many as the machine has cores.
    temp : pathlib.Path or None
        Folder for spilling.

    Returns
    -------
    duckdb.DuckDBPyConnection
        The connection; the caller closes it.

    Examples
    --------
    >>> connect("tpch").sql("select count(*) from tpch_queries()").fetchone()
    (22,)
    """
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


def attach_tables(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[str]:
    """
    Make a view over each table's Parquet files.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Where the views are made.
    folder : pathlib.Path
        A data set's folder, one ``<table>.parquet`` folder a table.

    Returns
    -------
    list of str
        Table names, sorted.

    Examples
    --------
    >>> attach_tables(connect(), Path("no/such/folder"))
    []
    """
    names = []
    for path in sorted(folder.glob("*.parquet")):
        name = path.name.removesuffix(".parquet")
        files = f"{path}/*.parquet" if path.is_dir() else str(path)
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{files}')")
        names.append(name)
    return names
