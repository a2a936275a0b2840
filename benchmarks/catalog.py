"""
Tables in a catalog with ANALYZE statistics, for the profiles with ANALYZE.

Spark's in-memory catalog forgets them with the session, and a metastore would need a database of
its own. So the statistics are collected once by `ANALYZE TABLE … FOR ALL COLUMNS`, kept in files
in Java's serialised form beside the data, and put back into the catalog of each later session.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession, tables: Mapping[str, str], kept: Path) -> None:
    """
    Make the tables, with the statistics kept in files, or else collected now and kept.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with the in-memory catalog.
    tables : mapping of str to str
        Folder of Parquet files by table name.
    kept : pathlib.Path
        Folder for the statistics, which must belong to these tables alone.

    Examples
    --------
    >>> register(spark, {"item": "data/item.parquet"}, Path("statistics"))  # doctest: +SKIP
    """
    folder = kept / f"spark-{spark.version}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in tables.items():
        spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{path}'")
        file = folder / f"{name}.ser"
        if file.is_file():
            put_statistics(spark, name, file.read_bytes())
            continue
        spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")
        temp = file.with_suffix(".part")
        temp.write_bytes(get_statistics(spark, name))
        temp.replace(file)


def _reach(spark: SparkSession, table: str) -> tuple[Any, Any, Any]:
    jvm: Any = spark._jvm  # noqa: SLF001
    catalog = spark._jsparkSession.sessionState().catalog()  # noqa: SLF001
    return jvm, catalog, jvm.org.apache.spark.sql.catalyst.TableIdentifier(table)


def get_statistics(spark: SparkSession, table: str) -> bytes:
    """
    Read a table's statistics out of the catalog.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session.
    table : str
        A table after ANALYZE.

    Returns
    -------
    bytes
        Spark's own object, serialised.

    Examples
    --------
    >>> kept = get_statistics(spark, "item")  # doctest: +SKIP
    """
    jvm, catalog, identifier = _reach(spark, table)
    found = catalog.getTableMetadata(identifier).stats().get()
    return bytes(jvm.org.apache.spark.util.Utils.serialize(found))


def put_statistics(spark: SparkSession, table: str, kept: bytes) -> None:
    """
    Put statistics back into the catalog.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session.
    table : str
        A table of its catalog.
    kept : bytes
        What `get_statistics` gave, under the same version of Spark.

    Examples
    --------
    >>> put_statistics(spark, "item", kept)  # doctest: +SKIP
    """
    jvm, catalog, identifier = _reach(spark, table)
    found = jvm.org.apache.spark.util.Utils.deserialize(bytearray(kept))
    catalog.alterTableStats(identifier, jvm.scala.Option.apply(found))
