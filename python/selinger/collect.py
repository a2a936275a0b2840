"""Statistics that are collected on request: analyze, look at them, forget them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from selinger._render import html_table, quantity, seconds, text_table
from selinger.errors import AnalyzeFailed
from selinger.session import call_table

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from selinger._spark import Value

__all__ = [
    "Analysis",
    "Analyzed",
    "CollectedColumn",
    "CollectedStats",
    "analyze",
    "forget",
    "stats",
]

#: Bytes of files between two steps of a progress bar.
_STEP_BYTES = 2 << 30


@dataclass(frozen=True)
class Analyzed:
    """What one run of `analyze` has done with one relation.

    Attributes
    ----------
    relation : str
        As it was named.
    files, files_read, files_known, files_skipped : int
        Files of the relation; those read now; those that had been read before and have not
        changed; those that could not be read.
    rows_read : int
        Rows read now.
    columns : tuple of str
        The columns that are kept.
    columns_from : str
        ``given``; ``used``: those that queries of this application have filtered, joined, grouped
        or sorted by; or ``all``, where no query has used any.
    columns_skipped : tuple of str
        Columns of which nothing is kept, with why.
    problem : str
        Why a file was skipped; empty if none was.
    sample : float
        Share of the data that was asked for.
    bytes_written : int
        Bytes that this run has added to the store.
    seconds : float
        Time it took.
    files_changed, files_other_columns, files_larger_sample : int
        Why files were read though they had been read before: they have changed since; other
        columns of them were read then; a smaller part of them was read then.
    """

    relation: str
    files: int
    files_read: int
    files_known: int
    files_skipped: int
    rows_read: int
    columns: tuple[str, ...]
    columns_from: str
    columns_skipped: tuple[str, ...]
    problem: str
    sample: float
    bytes_written: int
    seconds: float
    files_changed: int = 0
    files_other_columns: int = 0
    files_larger_sample: int = 0


class Analysis(tuple[Analyzed, ...]):
    """What `analyze` has done; a tuple that prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        table = text_table(*self._table(), right=frozenset({1, 2, 3, 4, 6, 7}))
        return "\n".join([table, *self._notes()])

    def _repr_html_(self) -> str:
        notes = html_table(("notes",), [(note,) for note in self._notes()])
        return html_table(*self._table()) + (notes if self._notes() else "")

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        headers = ("relation", "files", "read", "known", "rows", "columns", "written", "time")
        return headers, [
            (
                r.relation,
                f"{r.files:,}",
                f"{r.files_read:,}",
                f"{r.files_known:,}",
                f"{r.rows_read:,}",
                f"{len(r.columns)} ({r.columns_from})",
                quantity(float(r.bytes_written), "bytes"),
                seconds(r.seconds),
            )
            for r in self
        ]

    def _notes(self) -> list[str]:
        notes = []
        for r in self:
            if r.sample < 1:
                notes.append(f"{r.relation}: a sample of {r.sample:g} of the data was read")
            notes += [
                f"{r.relation}: read again: {_files(count)} {why}"
                for count, why in (
                    (r.files_changed, "changed since the last time"),
                    (r.files_other_columns, "of which other columns were read before"),
                    (r.files_larger_sample, "of which a smaller sample was read before"),
                )
                if count
            ]
            if r.files_skipped:
                notes.append(f"{r.relation}: {r.files_skipped} files skipped: {r.problem}")
            notes += [f"{r.relation}: left out {column}" for column in r.columns_skipped]
        return notes


@dataclass(frozen=True)
class CollectedColumn:
    """What is known of one column of the files that a relation has now.

    Attributes
    ----------
    column, type : str
        Name and type.
    files, files_known : int
        Files of the relation, and those that have been analysed and have not changed since.
    complete : bool
        Whether these are all, of all their rows.
    rows, nulls : int
        Rows that were read, and nulls among them.
    distinct, distinct_error : float or None
        Distinct values among them, and one standard deviation as a share of that.
    min, max : str or None
        Ends of the values; None for texts and binary values.
    average_bytes : float or None
        Width of a value, for types of variable width.
    deciles : tuple of str
        Eleven places, each with a tenth of the values between them; empty for texts.
    frequent : tuple of (str, float)
        Values that are much more frequent than others, with their share of the values.
    """

    column: str
    type: str
    files: int
    files_known: int
    complete: bool
    rows: int
    nulls: int
    distinct: float | None
    distinct_error: float | None
    min: str | None
    max: str | None
    average_bytes: float | None
    deciles: tuple[str, ...]
    frequent: tuple[tuple[str, float], ...]


class CollectedStats(tuple[CollectedColumn, ...]):
    """What is known of a relation, column by column; prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        if not self:
            return "Nothing current is kept; selinger.analyze(spark, …) collects it."
        return text_table(*self._table(), right=frozenset({2, 3, 4}))

    def _repr_html_(self) -> str:
        return html_table(*self._table())

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        headers = ("column", "files", "rows", "nulls", "distinct", "min", "max", "frequent")
        return headers, [
            (
                c.column,
                f"{c.files_known:,} of {c.files:,}",
                f"{c.rows:,}",
                f"{c.nulls:,}",
                "" if c.distinct is None else f"{c.distinct:,.0f}",
                c.min or "",
                c.max or "",
                ", ".join(f"{value} ({share:.1%})" for value, share in c.frequent[:3]),
            )
            for c in self
        ]


def analyze(
    spark: SparkSession,
    target: str | Sequence[str],
    columns: Sequence[str] | None = None,
    sample: float | None = None,
    progress: bool | None = None,
) -> Analysis:
    """Collect statistics of tables or paths: distinct values, quantiles, frequent values, a sample.

    One distributed pass reads the columns of all files of which nothing current is kept; run
    again, it reads only files that are new or have changed. What it finds is kept under the conf
    ``spark.selinger.stats.location``, for all sessions that have the same location, and queries
    are planned with it at once.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with Selinger, classic or Connect.
    target : str or sequence of str
        A folder or file of Parquet or ORC data, a table of such files, or a view that only
        scans them; or several of these.
    columns : sequence of str, optional
        Columns to collect. By default those that queries of this application have filtered,
        joined, grouped or sorted by; all columns if there are none.
    sample : float, optional
        Share of the files (of few Parquet files: of their row groups) to read, above 0 and at
        most 1. Numbers are then extrapolated, and marked as sampled.
    progress : bool, optional
        Whether to show a progress bar; by default if standard error is a terminal. With a bar,
        files are read some gigabytes at a time.

    Returns
    -------
    Analysis
        A tuple of `Analyzed`, one a target, which prints as a table.

    Raises
    ------
    AnalyzeFailed
        If no location is set, if the target is something else, or if there is no such column.
    NotLoaded, UnsupportedSpark
        If the session runs without Selinger.

    Examples
    --------
    >>> import selinger, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     spark.range(1000).write.parquet(f"{folder}/t")
    ...     with selinger.settings(spark, stats_location=f"{folder}/statistics"):
    ...         done = selinger.analyze(spark, f"{folder}/t")
    >>> done[0].rows_read, done[0].columns
    (1000, ('id',))
    """
    targets = [target] if isinstance(target, str) else list(target)
    shown = sys.stderr.isatty() if progress is None else progress
    chosen = None if columns is None else list(columns)
    with _Bar(targets, shown) as bar:
        return Analysis(
            _analyzed(spark, name, chosen, sample, bar if shown else None) for name in targets
        )


def stats(spark: SparkSession, target: str) -> CollectedStats:
    """Tell what `analyze` has collected of a table or path, as its files are now.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with Selinger.
    target : str
        As in `analyze`.

    Returns
    -------
    CollectedStats
        A tuple of `CollectedColumn`, which prints as a table; empty if nothing is kept.

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
    ...         done = selinger.analyze(spark, f"{folder}/t")
    ...         known = selinger.stats(spark, f"{folder}/t")
    >>> known[0].column, known[0].rows, known[0].complete, known[0].max
    ('id', 1000, True, '999')
    """
    rows = _rows(spark, "selinger_stats", target)
    return CollectedStats(
        CollectedColumn(
            column=row["column"],
            type=row["type"],
            files=row["files"],
            files_known=row["files_known"],
            complete=row["complete"],
            rows=row["rows"],
            nulls=row["nulls"],
            distinct=row["distinct"],
            distinct_error=row["distinct_error"],
            min=row["min"],
            max=row["max"],
            average_bytes=row["average_bytes"],
            deciles=tuple(row["deciles"]),
            frequent=tuple(zip(row["frequent"], row["frequent_shares"], strict=True)),
        )
        for row in rows
    )


def forget(spark: SparkSession, target: str, columns: Sequence[str] | None = None) -> int:
    """Delete what `analyze` has collected of a table or path, and the keys declared for it.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with Selinger.
    target : str
        As in `analyze`.
    columns : sequence of str, optional
        Only these columns, and keys that have them.

    Returns
    -------
    int
        How many columns were forgotten.

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
    ...         done = selinger.analyze(spark, f"{folder}/t")
    ...         selinger.forget(spark, f"{folder}/t")
    1
    """
    chosen: dict[str, Value] = {} if columns is None else {"columns": list(columns)}
    return int(_rows(spark, "selinger_forget", target, **chosen)[0]["columns_forgotten"])


def _analyzed(
    spark: SparkSession,
    target: str,
    columns: list[str] | None,
    sample: float | None,
    bar: _Bar | None,
) -> Analyzed:
    """Analyse one target, in steps if somebody is watching."""
    done, left, size = _step(spark, target, columns, sample, _STEP_BYTES if bar else None)
    while left:
        if bar:
            bar.advance(done.files_read, left)
        # A file that cannot be read is tried first each time: then all the others at once.
        most = _STEP_BYTES if size else None
        more, left, size = _step(spark, target, list(done.columns), sample, most)
        done = replace(
            done,
            files_read=done.files_read + more.files_read,
            files_skipped=more.files_skipped,
            rows_read=done.rows_read + more.rows_read,
            problem=more.problem or done.problem,
            bytes_written=done.bytes_written + more.bytes_written,
            seconds=done.seconds + more.seconds,
            files_changed=done.files_changed + more.files_changed,
            files_other_columns=done.files_other_columns + more.files_other_columns,
            files_larger_sample=done.files_larger_sample + more.files_larger_sample,
        )
        if most is None:
            break
    if bar:
        bar.finish_target()
    return done


def _step(
    spark: SparkSession,
    target: str,
    columns: list[str] | None,
    sample: float | None,
    most: int | None,
) -> tuple[Analyzed, int, int]:
    """Run the table function once: what it did, files that are left, files that it read."""
    arguments: dict[str, Value] = {}
    if columns is not None:
        arguments["columns"] = columns
    if sample is not None:
        arguments["sample"] = float(sample)
    if most is not None:
        arguments["max_bytes"] = most
    row = _rows(spark, "selinger_analyze", target, **arguments)[0]
    made = Analyzed(
        relation=row["relation"],
        files=row["files"],
        files_read=row["files_read"],
        files_known=row["files_known"],
        files_skipped=row["files_skipped"],
        rows_read=row["rows_read"],
        columns=tuple(row["columns"]),
        columns_from=row["columns_from"],
        columns_skipped=tuple(row["columns_skipped"]),
        problem=row["problem"] or "",
        sample=row["sample"],
        bytes_written=row["bytes_written"],
        seconds=row["seconds"],
        files_changed=row["files_changed"],
        files_other_columns=row["files_other_columns"],
        files_larger_sample=row["files_larger_sample"],
    )
    return made, int(row["files_left"]), made.files_read


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _rows(spark: SparkSession, function: str, target: str, **arguments: Value) -> list[Row]:
    return call_table(spark, function, target, failing=AnalyzeFailed, **arguments)


class _Bar:
    """A progress bar over targets and their files, or nothing."""

    def __init__(self, targets: Sequence[str], shown: bool) -> None:
        self._shown = shown
        self._targets = len(targets)
        self._done = 0.0
        self._bar: Any = None

    def __enter__(self) -> _Bar:
        if self._shown:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self._targets, desc="analyze", unit="relation")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, read: int, left: int) -> None:
        """Show the part of a target's files that is done."""
        self._move(int(self._done) + read / max(1, read + left))

    def finish_target(self) -> None:
        """Show that a target is done."""
        self._move(int(self._done) + 1.0)

    def _move(self, to: float) -> None:
        if self._bar is not None:
            self._bar.update(to - self._done)
        self._done = to
