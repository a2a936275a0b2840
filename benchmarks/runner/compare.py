"""
Whether two results are the same rows, in whatever order.

The comparison is that of ``selinger.compare``. What is added here lets two engines be compared: a
column in which either side has floating-point values is compared as such. Where the other side has
decimals there, which happens when engines give a division different types, half a unit of the
decimals' last place is allowed; a whole unit where the floating-point values are themselves rounded
to that place, since the decimal 1.025 rounds up and its binary neighbour down.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
from selinger._answers import differences

from benchmarks.datasets.duck import attach, connect, count

Row = tuple[Any, ...]

SAME_ENGINE = 1e-9
OTHER_ENGINE = 1e-6
SAMPLE = 5
PART_ROWS = 200_000
EXACT_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DECIMAL")
INEXACT = ("FLOAT", "DOUBLE")


@dataclass(frozen=True)
class Difference:
    left_rows: int
    right_rows: int
    only_left: Sequence[Sequence[Any]] = ()
    only_right: Sequence[Sequence[Any]] = ()

    @property
    def equal(self) -> bool:
        return not self.only_left and not self.only_right and self.left_rows == self.right_rows

    def __str__(self) -> str:
        if self.equal:
            return f"{self.left_rows} rows, equal"
        return (
            f"{self.left_rows} rows against {self.right_rows}; "
            f"only left {list(self.only_left[:2])}, only right {list(self.only_right[:2])}"
        )


def compare_rows(left: Sequence[Row], right: Sequence[Row], relative: float) -> Difference:
    ours, theirs = _without_common(left, right)
    if len({len(row) for row in chain(ours, theirs)}) > 1:
        return Difference(len(left), len(right), ours[:SAMPLE], theirs[:SAMPLE])
    margins = [_margin(column, relative) for column in zip(*ours, *theirs, strict=True)]
    only_left, only_right = differences(
        [_alike(row, margins) for row in ours],
        [_alike(row, margins) for row in theirs],
        tolerance=relative,
        margins=[relative if margin is None else margin for margin in margins],
        at_most=SAMPLE,
    )
    return Difference(len(left), len(right), only_left, only_right)


def same_keys(
    left: Sequence[Row], right: Sequence[Row], columns: Sequence[int], relative: float
) -> bool:
    """Tell whether two results have the same sort keys, row by row or not."""
    ours = [tuple(row[at] for at in columns) for row in left]
    theirs = [tuple(row[at] for at in columns) for row in right]
    return compare_rows(ours, theirs, relative).equal


def _without_common(left: Sequence[Row], right: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Leave out the rows that both sides have exactly: nearly all, and quickly found."""
    try:
        ours, theirs = Counter(left), Counter(right)
    except TypeError:  # a value that cannot be hashed, such as a list
        return list(left), list(right)
    return list((ours - theirs).elements()), list((theirs - ours).elements())


def _margin(column: Sequence[Any], relative: float) -> float | None:
    """Give the absolute tolerance of a column; None for a column without floats."""
    floats = [value for value in column if isinstance(value, float)]
    exponents = [
        exponent
        for value in column
        if isinstance(value, Decimal) and isinstance(exponent := value.as_tuple().exponent, int)
    ]
    if not floats:
        return None
    if not exponents:
        return relative
    places = -max(exponents)
    rounded = places > 0 and all(round(value, places) == value for value in floats)
    return max(relative, (1.01 if rounded else 0.51) * 10.0**-places)


def _alike(row: Row, margins: Sequence[float | None]) -> Row:
    """Make numbers of one column the same type: floats where there are any, else decimals."""
    return tuple(
        value
        if isinstance(value, bool) or not isinstance(value, int | Decimal | float)
        else Decimal(value)
        if margin is None
        else float(value)
        for value, margin in zip(row, margins, strict=True)
    )


def compare_files(left: Path, right: Path, relative: float) -> Difference:
    """Compare two results that are Parquet files with columns ``c0``, ``c1``, …, part by part."""
    with connect() as connection:
        attach(connection, "l", left)
        attach(connection, "r", right)
        whole = Difference(count(connection, "l"), count(connection, "r"))
        if not whole.equal:
            return whole
        for ours, theirs in _parts(connection, whole.left_rows):
            found = compare_rows(ours, theirs, relative)
            if not found.equal:
                return replace(whole, only_left=found.only_left, only_right=found.only_right)
        return whole


def _types(connection: duckdb.DuckDBPyConnection, view: str) -> dict[str, str]:
    rows = connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE {view})").fetchall()
    return {str(name): str(kind) for name, kind in rows}


def part_key(left: dict[str, str], right: dict[str, str]) -> str:
    """Write an expression that is the same for rows that agree, to part both results by."""
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
