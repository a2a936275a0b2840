"""Whether two answers are the same."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from selinger._answers import differences

if TYPE_CHECKING:
    from tests.fuzz.engines import Outcome, Row

SAME = "same"
ROWS = "different rows"
ZERO = "different sign of zero"
ORDER = "different order"
FAILS = "fails only with Selinger"
PASSES = "fails only with stock Spark"
OTHER_ERROR = "another error"
OPEN_ERROR = "another row's error"
ENDLESS = "stopped only with Selinger"
STOPPED = "stopped after a time"
DUCK = "DuckDB has other rows"
BROKEN = "fuzzer broke"
LOST = "Spark's JVM ended"

#: Kinds of differences between Selinger's answer and stock Spark's.
DIFFERENCES = (ROWS, ZERO, ORDER, FAILS, PASSES, OTHER_ERROR, ENDLESS)
#: Kinds that are findings.
FINDINGS = (*DIFFERENCES, DUCK, BROKEN, LOST)

#: Errors that one row raises. Which of several rows comes first is open, so if a query has more
#: than one of them, either may be what it ends with.
ROW_ERRORS = frozenset(
    {
        "ARITHMETIC_OVERFLOW",
        "BINARY_ARITHMETIC_OVERFLOW",
        "CAST_INVALID_INPUT",
        "CAST_OVERFLOW",
        "CAST_OVERFLOW_IN_TABLE_INSERT",
        "DATETIME_OVERFLOW",
        "DIVIDE_BY_ZERO",
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
        "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION",
        "REMAINDER_BY_ZERO",
        "SCALAR_SUBQUERY_TOO_MANY_ROWS",
    }
)
#: One part of a query failed, and the error of another one, which was cancelled then, came first:
#: it stands for the error of any row.
CANCELLED = frozenset({"SPARK_JOB_CANCELLED", "java.util.concurrent.CancellationException"})


def are_row_errors(*errors: str) -> bool:
    """Tell whether rows raised all these errors, of which each may be of several stages.

    Examples
    --------
    >>> are_row_errors("CAST_OVERFLOW and DIVIDE_BY_ZERO"), are_row_errors("INTERNAL_ERROR")
    (True, False)
    """
    known = ROW_ERRORS | CANCELLED
    return all(name in known for error in errors for name in error.split(" and "))


@dataclass(frozen=True)
class Verdict:
    """The kind of a difference, what it is, and the error that it is about, if any."""

    kind: str
    detail: str = ""
    error: str = ""

    @property
    def wrong(self) -> bool:
        """Whether it is a finding."""
        return self.kind in FINDINGS

    def is_like(self, other: Verdict) -> bool:
        """Tell whether another one is of the same kind; which row's error it is stays open."""
        same = self.error == other.error or are_row_errors(self.error, other.error)
        return self.kind == other.kind and same


def judge(expected: Outcome, found: Outcome, *, ordered: bool, zero_open: bool) -> Verdict:
    """Compare an answer with stock Spark's.

    Parameters
    ----------
    expected, found : Outcome
        Stock Spark's answer, and the other.
    ordered : bool
        Whether the order of rows counts.
    zero_open : bool
        Whether -0.0 may stand for 0.0.

    Examples
    --------
    >>> judge(Outcome([(1,)]), Outcome([(1,), (1,)]), ordered=False, zero_open=True).kind
    'different rows'
    >>> judge(Outcome([(0.0,)]), Outcome([(-0.0,)]), ordered=False, zero_open=False).kind
    'different sign of zero'
    """
    if expected.rows is None or found.rows is None:
        return _errors(expected, found)
    left, right = expected.rows, found.rows
    if ordered:
        same = len(left) == len(right) and all(map(_near, left, right))
        if not same and _multiset(left, right).kind == SAME:
            return Verdict(ORDER, _first_difference(left, right))
    verdict = _multiset(left, right)
    if verdict.kind == SAME and not zero_open:
        signed = _multiset(_signed(left), _signed(right))
        if signed.wrong:
            return Verdict(ZERO, signed.detail)
    return verdict


def _errors(expected: Outcome, found: Outcome) -> Verdict:
    if expected.timed_out:
        return Verdict(STOPPED)
    if found.timed_out:
        return Verdict(ENDLESS)
    if expected.rows is not None:
        return Verdict(FAILS, f"{found.error}: {found.message}", found.error)
    if found.rows is not None:
        return Verdict(PASSES, f"{expected.error}: {expected.message}", expected.error)
    if expected.error == found.error:
        return Verdict(SAME)
    detail = f"expected {expected.error}, found {found.error}: {found.message}"
    kind = OPEN_ERROR if are_row_errors(expected.error, found.error) else OTHER_ERROR
    return Verdict(kind, detail, found.error)


def _multiset(left: Sequence[Row], right: Sequence[Row]) -> Verdict:
    if Counter(map(repr, left)) == Counter(map(repr, right)):
        return Verdict(SAME)
    only_left, only_right = differences(left, right)
    if not only_left and not only_right:
        return Verdict(SAME)
    counts = f"{len(left)} rows expected, {len(right)} found"
    return Verdict(ROWS, f"{counts}; only expected: {only_left}; only found: {only_right}")


def _signed(rows: Sequence[Row]) -> list[Row]:
    return [tuple(_marked(value) for value in row) for row in rows]


def _marked(value: Any) -> Any:
    negative = isinstance(value, float) and value == 0 and math.copysign(1.0, value) < 0
    return "-0.0" if negative else value


def _near(left: Row, right: Row) -> bool:
    return not any(differences([left], [right]))


def _first_difference(left: Sequence[Row], right: Sequence[Row]) -> str:
    for i, (a, b) in enumerate(zip(left, right, strict=False)):
        if not _near(a, b):
            return f"row {i}: expected {a}, found {b}"
    return ""
