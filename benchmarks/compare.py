"""
Whether two results are the same rows, in whatever order.

Exact columns (numbers without a fraction, decimals, texts, dates) must agree exactly. A column in
which either side has floating-point values is compared with a tolerance; where the other side has
decimals there, which happens between engines that give a division different types, half a unit of
the decimals' last place is allowed as well; a whole unit where the floating-point value is itself
rounded to that place, since the decimal 1.025 rounds up and its binary neighbour down.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]

SAME_ENGINE = 1e-9
OTHER_ENGINE = 1e-6
SAMPLE = 5
PAIRING_ROWS = 3000


@dataclass(frozen=True)
class Difference:
    """
    What distinguishes two results.

    Attributes
    ----------
    left_rows, right_rows : int
        Rows of each side.
    only_left, only_right : tuple of rows
        Some rows that the other side lacks.
    """

    left_rows: int
    right_rows: int
    only_left: tuple[Row, ...] = ()
    only_right: tuple[Row, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether there is none."""
        return not self.only_left and not self.only_right and self.left_rows == self.right_rows

    def __str__(self) -> str:
        """Both counts and the first rows that differ."""
        if self.equal:
            return f"{self.left_rows} rows, equal"
        return (
            f"{self.left_rows} rows against {self.right_rows}; "
            f"only left {list(self.only_left[:2])}, only right {list(self.only_right[:2])}"
        )


def inexact_columns(*sides: Sequence[Row]) -> set[int]:
    """
    Find the columns in which any side has floating-point values.

    Parameters
    ----------
    *sides : sequences of rows
        The results.

    Returns
    -------
    set of int
        Positions.

    Examples
    --------
    >>> inexact_columns([(1, 2.0)], [(1, None)])
    {1}
    """
    return {
        at for rows in sides for row in rows for at, value in enumerate(row) if type(value) is float
    }


def close(left: Any, right: Any, relative: float) -> bool:
    """
    Compare two values of an inexact column.

    Parameters
    ----------
    left, right : number or None
        The values.
    relative : float
        Tolerance as a share of the larger value; as an absolute one too, near zero.

    Returns
    -------
    bool

    Examples
    --------
    >>> close(0.3333333333, Decimal("0.3333"), 1e-9)
    True
    >>> close(Decimal("1.03"), 1.02, 1e-9), close(Decimal("1.03"), 1.024, 1e-9)
    (True, False)
    >>> close(None, 0.0, 1e-9)
    False
    """
    if left is None or right is None:
        return left is right
    if not isinstance(left, int | float | Decimal) or not isinstance(right, int | float | Decimal):
        return bool(left == right)
    a, b = float(left), float(right)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    rounding = max(_rounding(left, b), _rounding(right, a))
    return a == b or abs(a - b) <= max(relative * max(abs(a), abs(b), 1.0), rounding)


def _rounding(value: Any, other: float) -> float:
    """Give what rounding to a decimal's last place may make of two equal values."""
    exponent = value.as_tuple().exponent if isinstance(value, Decimal) else None
    if not isinstance(exponent, int) or math.isinf(other):
        return 0.0
    both_rounded = exponent < 0 and round(other, -exponent) == other
    return (1.01 if both_rounded else 0.51) * 10.0**exponent


def compare_rows(left: Sequence[Row], right: Sequence[Row], relative: float) -> Difference:
    """
    Compare two results as multisets.

    Parameters
    ----------
    left, right : sequences of rows
        The results.
    relative : float
        Tolerance in inexact columns.

    Returns
    -------
    Difference

    Examples
    --------
    >>> compare_rows([(1, 0.1 + 0.2), (2, None)], [(2, None), (1, 0.3)], 1e-9).equal
    True
    >>> compare_rows([("a",), ("a",)], [("a",), ("b",)], 1e-9).only_right
    (('b',),)
    """
    inexact = sorted(inexact_columns(left, right))
    ours, theirs = _groups(left, inexact), _groups(right, inexact)
    only_left: list[Row] = []
    only_right: list[Row] = []
    for key in ours.keys() | theirs.keys():
        lonely, missed = _match(ours.get(key, []), theirs.get(key, []), inexact, relative)
        only_left += lonely
        only_right += missed
    return Difference(len(left), len(right), _sample(only_left), _sample(only_right))


def same_keys(
    left: Sequence[Row], right: Sequence[Row], columns: Sequence[int], relative: float
) -> bool:
    """
    Tell whether two results have the same sort keys, row by row or not.

    Parameters
    ----------
    left, right : sequences of rows
        The results.
    columns : sequence of int
        Positions of the sort keys.
    relative : float
        Tolerance in inexact columns.

    Returns
    -------
    bool
        True as well when no position is known.

    Examples
    --------
    >>> same_keys([(1, "x")], [(1, "y")], [0], 1e-9)
    True
    """
    ours = [tuple(row[at] for at in columns) for row in left]
    theirs = [tuple(row[at] for at in columns) for row in right]
    return compare_rows(ours, theirs, relative).equal


def _groups(rows: Iterable[Row], inexact: Sequence[int]) -> dict[Row, list[Row]]:
    groups: dict[Row, list[Row]] = defaultdict(list)
    skipped = set(inexact)
    for row in rows:
        key = tuple(value for at, value in enumerate(row) if at not in skipped)
        groups[key].append(row)
    return groups


def _match(
    ours: list[Row], theirs: list[Row], inexact: Sequence[int], relative: float
) -> tuple[list[Row], list[Row]]:
    """Pair rows that agree; return those without a partner."""

    def agree(a: Row, b: Row) -> bool:
        return all(close(a[at], b[at], relative) for at in inexact)

    def order(row: Row) -> list[tuple[bool, float]]:
        return [(row[at] is None, 0.0 if row[at] is None else float(row[at])) for at in inexact]

    if inexact:
        ours, theirs = sorted(ours, key=order), sorted(theirs, key=order)
    if len(ours) == len(theirs) and all(map(agree, ours, theirs)):
        return [], []
    if max(len(ours), len(theirs)) > PAIRING_ROWS:  # pairing is quadratic
        differing = [(a, b) for a, b in zip(ours, theirs, strict=False) if not agree(a, b)]
        shared = min(len(ours), len(theirs))
        return (
            [a for a, _ in differing] + ours[shared:],
            [b for _, b in differing] + theirs[shared:],
        )
    lonely = []
    left_over = list(theirs)
    for row in ours:
        partner = next((at for at, other in enumerate(left_over) if agree(row, other)), None)
        if partner is None:
            lonely.append(row)
        else:
            del left_over[partner]
    return lonely, left_over


def _sample(rows: list[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=repr)[:SAMPLE])
