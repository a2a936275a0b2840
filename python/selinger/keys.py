"""Keys of tables: declared by a user, checked by a job, and shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from selinger._render import html_table, text_table
from selinger.errors import AnalyzeFailed
from selinger.session import call_table

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

__all__ = ["DeclaredKey", "DeclaredKeys", "declare_key", "declared_keys"]


@dataclass(frozen=True)
class DeclaredKey:
    """A key that a job has found without duplicates.

    Attributes
    ----------
    relation : str
        As it was named.
    columns : tuple of str
        The columns of the key, of which no two rows have the same values. Rows with a null in one
        of them are left aside, as they match nothing in a join.
    files, rows, nulls : int
        Files and rows that the job has read; rows with a null in one of the columns.
    consecutive : bool
        Whether it is one column of integers with all numbers from its smallest to its largest.
    current : bool
        Whether these are the files that Spark lists for the relation. If not, the key is not used
        in this session: files have changed since, or Spark's list of them is old (REFRESH TABLE).
    """

    relation: str
    columns: tuple[str, ...]
    files: int
    rows: int
    nulls: int
    consecutive: bool
    current: bool


class DeclaredKeys(tuple[DeclaredKey, ...]):
    """The keys of a relation; prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        if not self:
            return "No key was declared; selinger.declare_key(spark, …) checks one."
        return text_table(*self._table(), right=frozenset({1, 2, 3}))

    def _repr_html_(self) -> str:
        return html_table(*self._table())

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        headers = ("key", "files", "rows", "nulls", "no number is missing", "current")
        return headers, [
            (
                ", ".join(key.columns),
                f"{key.files:,}",
                f"{key.rows:,}",
                f"{key.nulls:,}",
                "yes" if key.consecutive else "",
                "yes" if key.current else "no: files have changed, or Spark's list of them is old",
            )
            for key in self
        ]


def declare_key(spark: SparkSession, target: str, columns: str | Sequence[str]) -> DeclaredKey:
    """Check that columns are a key of a table or path, so that plans may rely on it.

    A distributed job groups all rows by the columns and looks for duplicates. If there are none,
    that is kept under the conf ``spark.selinger.stats.location``, for just these files. As soon
    as a file is added, changed or removed, the key is not used until it is declared again.

    Keys of Parquet and ORC tables of up to ``spark.selinger.keys.maxRows`` rows need not be
    declared: they are read while a query is planned.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with Selinger, classic or Connect.
    target : str
        A folder or file of Parquet or ORC data, a table of such files without partitions, or a
        view that only scans them.
    columns : str or sequence of str
        The columns of the key, which are in the files, not in the names of folders: integers,
        decimals, dates, timestamps without time zone, or texts without a collation.

    Returns
    -------
    DeclaredKey
        What the job has found.

    Raises
    ------
    AnalyzeFailed
        If there are duplicates (the message has an example), if no location is set, if the target
        is something else, if there is no such column, or if the files have changed meanwhile.
        Nothing is kept then.
    NotLoaded, UnsupportedSpark
        If the session runs without Selinger.

    Examples
    --------
    >>> import selinger, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     spark.range(1000).write.parquet(f"{folder}/t")
    ...     with selinger.settings(spark, stats_location=f"{folder}/statistics"):
    ...         key = selinger.declare_key(spark, f"{folder}/t", "id")
    >>> key.columns, key.rows, key.nulls, key.consecutive
    (('id',), 1000, 0, True)
    """
    names = [columns] if isinstance(columns, str) else list(columns)
    rows = call_table(spark, "selinger_declare_key", target, failing=AnalyzeFailed, columns=names)
    return _key(rows[0])


def declared_keys(spark: SparkSession, target: str) -> DeclaredKeys:
    """Tell which keys of a table or path have been declared, and whether its files are the same.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with Selinger.
    target : str
        As in `declare_key`.

    Returns
    -------
    DeclaredKeys
        A tuple of `DeclaredKey`, the last one that was checked first; prints as a table. `forget`
        deletes them.

    Raises
    ------
    AnalyzeFailed
        If no location is set, or the target is something else.
    NotLoaded, UnsupportedSpark
        If the session runs without Selinger.

    Examples
    --------
    >>> import selinger, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     spark.range(1000).write.parquet(f"{folder}/t")
    ...     with selinger.settings(spark, stats_location=f"{folder}/statistics"):
    ...         key = selinger.declare_key(spark, f"{folder}/t", "id")
    ...         spark.range(9).write.mode("append").parquet(f"{folder}/t")
    ...         keys = selinger.declared_keys(spark, f"{folder}/t")
    >>> keys[0].columns, keys[0].current
    (('id',), False)
    """
    rows = call_table(spark, "selinger_keys", target, failing=AnalyzeFailed)
    return DeclaredKeys(_key(row) for row in rows)


def _key(row: Row) -> DeclaredKey:
    return DeclaredKey(
        relation=row["relation"],
        columns=tuple(row["columns"]),
        files=row["files"],
        rows=row["rows"],
        nulls=row["nulls"],
        consecutive=row["consecutive"],
        current=row["current"],
    )
