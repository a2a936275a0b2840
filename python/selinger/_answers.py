"""Are two answers the same? Rows in any order, duplicates counted, floats within a tolerance."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import repeat
from typing import Any

#: What a row is without its floating-point numbers, and those numbers.
Parts = tuple[Hashable, tuple[float, ...]]

_FLOAT = "~"
_MOST_CANDIDATES = 64


def differences(
    left: Iterable[Sequence[Any]],
    right: Iterable[Sequence[Any]],
    *,
    tolerance: float = 1e-9,
    margins: Sequence[float] = (),
    at_most: int = 5,
) -> tuple[list[Sequence[Any]], list[Sequence[Any]]]:
    """Find the rows that one answer has and the other lacks.

    Order does not count, duplicates do. Two floating-point numbers are equal within a relative
    tolerance; NaN equals NaN and -0.0 equals 0.0, as in Spark's own comparisons. All else must
    be equal exactly: decimals by value, nulls only to nulls, maps in any order, and a number
    never equals one of another type.

    Parameters
    ----------
    left, right : iterable of sequences
        The rows.
    tolerance : float
        Relative tolerance for floating-point numbers.
    margins : sequence of float
        Absolute tolerance of each column, for the floating-point numbers that stand in it; none
        by default.
    at_most : int
        How many rows to give for each side.

    Returns
    -------
    (list, list)
        Rows only in `left`, and only in `right`; both empty if the answers are the same.

    Examples
    --------
    >>> differences([(1, 0.1 + 0.2), (2, None)], [(2, None), (1, 0.3)])
    ([], [])
    >>> differences([(1,), (1,)], [(1,)])
    ([(1,)], [])
    """
    groups: dict[Hashable, tuple[list[_Entry], list[_Entry]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((left, right)):
        for row in rows:
            shape, floats = decompose(row)
            groups[shape][side].append((floats, row))
    only_left: list[Sequence[Any]] = []
    only_right: list[Sequence[Any]] = []
    for shape, (ours, theirs) in groups.items():
        close = _Close(tolerance, _margins_of(shape, margins))
        for entries, out in zip(
            _unmatched(ours, theirs, close), (only_left, only_right), strict=True
        ):
            out.extend(row for _, row in entries[: max(at_most - len(out), 0)])
    return only_left, only_right


def decompose(value: Any) -> Parts:
    """Split a value into what must be equal exactly and the floats that need a tolerance.

    Examples
    --------
    >>> decompose((1, 2.5))
    (('tuple', ('int', 1), ('~',)), (2.5,))
    """
    if isinstance(value, float):
        return (("float", repr(value)), ()) if not math.isfinite(value) else ((_FLOAT,), (value,))
    if isinstance(value, Mapping):
        return _map_parts(value)
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return _join(kind, [decompose(item) for item in value])
    return (type(value).__name__, _exact(value)), ()


_Entry = tuple[tuple[float, ...], Sequence[Any]]


class _Close:
    """Whether the floats of two rows agree, within a relative tolerance or absolute margins."""

    def __init__(self, tolerance: float, margins: Sequence[float]) -> None:
        self.tolerance = tolerance
        self.margins = margins

    def __call__(self, left: Sequence[float], right: Sequence[float]) -> bool:
        margins = self.margins or repeat(0.0)
        return len(left) == len(right) and all(
            math.isclose(a, b, rel_tol=self.tolerance, abs_tol=margin)
            for a, b, margin in zip(left, right, margins, strict=False)
        )

    def around(self, first: float) -> float:
        """Bound how far a first float may be from one that agrees with it."""
        return 2 * max(abs(first) * self.tolerance, self.margins[0] if self.margins else 0.0)


def _margins_of(shape: Hashable, margins: Sequence[float]) -> list[float]:
    """Keep the margins of the columns that hold a float in rows of this shape."""
    if not margins or not isinstance(shape, tuple):
        return []
    return [margin for margin, kind in zip(margins, shape[1:], strict=True) if kind == (_FLOAT,)]


def _map_parts(value: Mapping[Any, Any]) -> Parts:
    entries = [_join("entry", [decompose(k), decompose(v)]) for k, v in value.items()]
    return _join("map", sorted(entries, key=repr))


def _join(kind: str, parts: Sequence[Parts]) -> Parts:
    shapes = (kind, *(shape for shape, _ in parts))
    return shapes, tuple(number for _, floats in parts for number in floats)


def _exact(value: Any) -> Hashable:
    if isinstance(value, Decimal):
        return value  # compares by value, whatever the scale
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if hasattr(value, "toJson"):  # a VARIANT
        return str(value.toJson())
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value if isinstance(value, Hashable) else repr(value)


def _unmatched(
    left: list[_Entry], right: list[_Entry], close: _Close
) -> tuple[list[_Entry], list[_Entry]]:
    """Pair rows that differ in nothing but their floats, and give those left over."""
    floats = (left or right)[0][0]
    if not floats or not left or not right:  # only the counts can differ
        return left[len(right) :], right[len(left) :]
    left, right = _without(left, right), _without(right, left)
    left, right = sorted(left, key=_floats), sorted(right, key=_floats)
    if len(left) == len(right) and all(
        close(a, b) for (a, _), (b, _) in zip(left, right, strict=True)
    ):
        return [], []
    return _best_pairing(left, right, close)


def _without(entries: list[_Entry], others: list[_Entry]) -> list[_Entry]:
    """Leave out the rows that the other side has with the very same floats."""
    there = Counter(map(_floats, others))
    rest = []
    for entry in entries:
        if there[entry[0]] > 0:
            there[entry[0]] -= 1
        else:
            rest.append(entry)
    return rest


def _best_pairing(
    left: list[_Entry], right: list[_Entry], close: _Close
) -> tuple[list[_Entry], list[_Entry]]:
    """Pair as many rows as can be: a maximum matching by augmenting paths.

    Sorting alone is not enough: (1.0, 5.0), (1.0 + 1 bit, 2.0) and the same rows with that bit
    on the other one sort differently and yet are the same answer.
    """
    firsts = [floats[0] for floats, _ in right]
    choices = [_candidates(floats, firsts, right, close) for floats, _ in left]
    owner: dict[int, int] = {}
    mate: dict[int, int] = {}
    for start in range(len(left)):
        _augment(start, choices, owner, mate)
    return (
        [entry for i, entry in enumerate(left) if i not in mate],
        [entry for i, entry in enumerate(right) if i not in owner],
    )


def _augment(
    start: int, choices: list[list[int]], owner: dict[int, int], mate: dict[int, int]
) -> None:
    """Find a mate for one row of the left, moving others to another mate where that helps."""
    came_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        row = queue.popleft()
        for choice in choices[row]:
            if choice in came_from:
                continue
            came_from[choice] = row
            if choice not in owner:
                _flip(start, choice, came_from, owner, mate)
                return
            queue.append(owner[choice])


def _flip(
    start: int, end: int, came_from: dict[int, int], owner: dict[int, int], mate: dict[int, int]
) -> None:
    row = came_from[end]
    while row != start:
        previous = mate[row]
        owner[end], mate[row] = row, end
        end, row = previous, came_from[previous]
    owner[end], mate[start] = start, end


def _candidates(
    floats: tuple[float, ...], firsts: list[float], right: list[_Entry], close: _Close
) -> list[int]:
    margin = close.around(floats[0])
    found = []
    for i in range(bisect_left(firsts, floats[0] - margin), len(firsts)):
        if firsts[i] > floats[0] + margin:
            break
        if close(floats, right[i][0]):
            found.append(i)
            if len(found) == _MOST_CANDIDATES:
                break
    return found


def _floats(entry: _Entry) -> tuple[float, ...]:
    return entry[0]
