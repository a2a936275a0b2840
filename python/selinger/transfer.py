"""Statistics without the data: out of one session, into another that plans queries by them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from selinger._render import html_table, quantity, text_table
from selinger.errors import StatisticsUnusable
from selinger.session import call_table

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

__all__ = [
    "Relation",
    "Relations",
    "export_stats",
    "forget_imported",
    "import_stats",
    "imported_stats",
]


@dataclass(frozen=True)
class Relation:
    """A relation whose statistics were exported or imported.

    Attributes
    ----------
    name : str
        As queries name it.
    rows : float or None
        Its rows; None if nobody knows them.
    size : float
        Its size in bytes, as Spark sees it.
    kind : str
        ``exported``; ``view`` for a relation that is planned without data; ``override`` for one
        with data of its own that is planned by imported numbers.
    """

    name: str
    rows: float | None
    size: float
    kind: str


class Relations(tuple[Relation, ...]):
    """Some relations; a tuple that prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        return text_table(*self._table(), right=frozenset({1, 2}))

    def _repr_html_(self) -> str:
        return html_table(*self._table())

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        headers = ("name", "rows", "size", "kind")
        return headers, [
            (
                r.name,
                "unknown" if r.rows is None else quantity(r.rows, "rows"),
                quantity(r.size, "bytes"),
                r.kind,
            )
            for r in self
        ]


def export_stats(
    spark: SparkSession,
    tables_or_paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Mapping[str, Any],
    file: str | os.PathLike[str],
    *,
    values: bool = True,
) -> Relations:
    """Write what is known of tables or files to a small JSON file, without their rows.

    The file has each relation's schema, rows, size, and of each column the share of nulls, smallest
    and largest value, number of distinct values, average width and frequent values, each with its
    origin. `import_stats` plans queries by it where the data is not. docs/statistics-file.md
    defines it.

    **It contains some values of the data**: the smallest and the largest of numbers and dates, and
    values that occur often. `values=False` leaves the frequent ones out.

    Nothing is run on the cluster: footers are read, and some rows, within
    ``spark.selinger.stats.exportBudgetMs`` a relation.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A classic or a Connect session with Selinger.
    tables_or_paths : str, path, sequence of them, or mapping of str to str
        Tables or views of the session, or paths of Parquet or ORC files. A path's last part is its
        name; a mapping gives other names: ``{"sales.orders": "s3a://lake/orders"}``.
    file : str or path
        Where to write. A path is a local one; with a scheme, such as ``s3a://…`` or
        ``hdfs://…``, Spark writes it. It is replaced whole or not at all.
    values : bool, default True
        Whether frequent values are written.

    Returns
    -------
    Relations
        What was written; prints as a table.

    Raises
    ------
    StatisticsUnusable
        If a name is no table or path, or a view of a query.
    NotLoaded, UnsupportedSpark
        If the session runs without Selinger.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import selinger, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> spark.range(1000).write.parquet(str(folder / "numbers"))
    >>> written = selinger.export_stats(spark, folder / "numbers", folder / "numbers.json")
    >>> [(relation.name, relation.rows) for relation in written]
    [('numbers', 1000.0)]
    """
    named = _named(tables_or_paths)
    options: dict[str, Any] = {"values": values}
    if isinstance(tables_or_paths, Mapping):
        options["names"] = list(named)
    target = os.fspath(file)
    if "://" in target:
        options["file"] = target
    found = _call(spark, "selinger_export_stats", *named.values(), json.dumps(options))
    text = str(found[0]["json"])
    if "://" not in target:
        _write(Path(target), text)
    return Relations(
        Relation(r["name"], _rows(r), float(r["bytes"]), "exported")
        for r in json.loads(text)["relations"]
    )


def import_stats(
    spark: SparkSession,
    file: str | os.PathLike[str],
    scale: float | Mapping[str, float] = 1,
    tables: Sequence[str] | None = None,
    *,
    override: bool = False,
) -> Relations:
    """Plan and explain queries by the statistics of a file, without its data.

    Each relation of the file that this session lacks becomes a temporary view (a name of several
    parts, such as ``sales.orders``, is found as well): queries on it are planned as where the data
    is, by Selinger and by stock Spark, and can be explained. Running one is an error that says so.

    All relations are registered or, after an error, none. They belong to this session; a second
    import replaces those of the same names; `forget_imported` removes them.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A classic or a Connect session with Selinger.
    file : str or path
        A file that `export_stats` has written; a local one unless it has a scheme.
    scale : float or mapping of str to float, default 1
        Plans as if tables had this many times their rows; a mapping has a factor for each table,
        and those that it does not name stay as they are. Keys grow with the rows, and so do
        columns that refer to them; see docs/statistics-file.md.
    tables : sequence of str, optional
        Import only these.
    override : bool, default False
        Whether tables that exist here with data of their own are planned by the file's numbers
        too. Their queries run as before. Otherwise such tables are an error.

    Returns
    -------
    Relations
        What was imported; prints as a table.

    Raises
    ------
    StatisticsUnusable
        If the file is none of Selinger's, is damaged, or was written by a newer version; if a table
        exists here already or differs from the file; or if the scale is no positive number.
    NotLoaded, UnsupportedSpark
        If the session runs without Selinger.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import selinger, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> spark.range(1000).write.parquet(str(folder / "digits"))
    >>> _ = selinger.export_stats(spark, folder / "digits", folder / "digits.json")
    >>> [r.rows for r in selinger.import_stats(spark, folder / "digits.json", scale=1000)]
    [1000000.0]
    >>> spark.sql("SELECT id FROM digits WHERE id < 10").columns
    ['id']
    >>> [relation.name for relation in selinger.forget_imported(spark)]
    ['digits']
    """
    source = os.fspath(file)
    options: dict[str, Any] = {"scale": _scale(scale), "override": override}
    if tables is not None:
        if isinstance(tables, str):
            raise TypeError("tables is a sequence of names; put the one name into a list")
        options["tables"] = list(tables)
    text = source if "://" in source else Path(source).read_text(encoding="utf-8")
    if "://" not in source and not text.lstrip().startswith("{"):
        raise StatisticsUnusable(f"{source} is no statistics file of Selinger: it is not JSON.")
    return _relations(_call(spark, "selinger_import_stats", text, json.dumps(options)))


def imported_stats(spark: SparkSession) -> Relations:
    """List what this session plans by imported statistics.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A classic or a Connect session with Selinger.

    Returns
    -------
    Relations
        By name; prints as a table.

    Raises
    ------
    NotLoaded, UnsupportedSpark
        If the session runs without Selinger.

    Examples
    --------
    >>> import selinger
    >>> len(selinger.imported_stats(spark))
    0
    """
    return _relations(_call(spark, "selinger_imported_stats"))


def forget_imported(spark: SparkSession, tables: Sequence[str] | None = None) -> Relations:
    """Forget imported statistics: their views are dropped, and overridden tables are as before.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A classic or a Connect session with Selinger.
    tables : sequence of str, optional
        Forget only these; names that were not imported are passed over.

    Returns
    -------
    Relations
        What was forgotten.

    Raises
    ------
    NotLoaded, UnsupportedSpark
        If the session runs without Selinger.

    Examples
    --------
    >>> import selinger
    >>> selinger.forget_imported(spark, ["orders"])
    ()
    """
    if tables is not None and not tables:
        return Relations()
    if isinstance(tables, str):
        raise TypeError("tables is a sequence of names; put the one name into a list")
    # Over Connect a query runs once more when its rows are fetched, and then nothing is left.
    before = imported_stats(spark)
    _call(spark, "selinger_forget_imported", *(tables or ()))
    after = {relation.name for relation in imported_stats(spark)}
    return Relations(relation for relation in before if relation.name not in after)


def _named(tables_or_paths: Any) -> dict[str, str]:
    """Give every relation a name; the place where it is, unless the caller has a better one."""
    if isinstance(tables_or_paths, Mapping):
        return {str(name): os.fspath(place) for name, place in tables_or_paths.items()}
    if isinstance(tables_or_paths, (str, os.PathLike)):
        return {os.fspath(tables_or_paths): os.fspath(tables_or_paths)}
    return {os.fspath(place): os.fspath(place) for place in tables_or_paths}


def _scale(scale: float | Mapping[str, float]) -> float | dict[str, float]:
    """Refuse what JSON has no number for."""
    factors = list(scale.values()) if isinstance(scale, Mapping) else [scale]
    for factor in factors:
        if not (math.isfinite(factor) and factor > 0):
            raise StatisticsUnusable(
                f"The scale must be a positive number, and is {factor!r}.",
                "scale=1000 plans as if there were a thousand times the rows",
            )
    return dict(scale) if isinstance(scale, Mapping) else scale


def _write(target: Path, text: str) -> None:
    """Replace a file whole or not at all."""
    draft = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
    try:
        with draft.open("x", encoding="utf-8") as out:
            out.write(text)
        draft.replace(target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def _rows(relation: Mapping[str, Any]) -> float | None:
    return float(relation["rows"]["value"]) if "rows" in relation else None


def _relations(rows: list[Row]) -> Relations:
    return Relations(Relation(r["name"], r["rows"], r["bytes"], r["kind"]) for r in rows)


def _call(spark: SparkSession, function: str, *arguments: str) -> list[Row]:
    """Call a table function, and give its errors as ours."""
    return call_table(spark, function, *arguments, failing=StatisticsUnusable)
