from __future__ import annotations

import math
import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row
from selinger._answers import differences

NAN, INF = float("nan"), float("inf")
NEXT = math.nextafter(1.0, 2.0)

SAME: dict[str, tuple[list[Any], list[Any]]] = {
    "empty": ([], []),
    "order": ([(1, "a"), (2, "b")], [(2, "b"), (1, "a")]),
    "duplicates": ([(1,), (1,), (2,)], [(2,), (1,), (1,)]),
    "nulls": ([(None, 1), (None, 1)], [(None, 1), (None, 1)]),
    "NaN": ([(NAN,), (1.0,)], [(1.0,), (float("nan"),)]),
    "infinity": ([(INF,), (-INF,)], [(-INF,), (INF,)]),
    "signed zero": ([(0.0,)], [(-0.0,)]),
    "last bits": ([(0.1 + 0.2,)], [(0.3,)]),
    "large floats": ([(1e300,)], [(1e300 * (1 + 1e-12),)]),
    "decimal scale": ([(Decimal("1.50"),)], [(Decimal("1.5"),)]),
    "decimal zero": ([(Decimal("0.00"),)], [(Decimal("-0E+3"),)]),
    "nested": ([(Row(a=1, b=[1.0, None]), {"x": 1.0, "y": 2.0})],
               [(Row(a=1, b=[1.0 + 1e-12, None]), {"y": 2.0, "x": 1.0})]),
    "bytes": ([(bytearray(b"x"),)], [(bytearray(b"x"),)]),
    "dates": ([(date(2020, 1, 1), datetime(2020, 1, 1))],
              [(date(2020, 1, 1), datetime(2020, 1, 1))]),
    "bits on different rows": ([(1.0, 5.0), (NEXT, 2.0)], [(1.0, 2.0), (NEXT, 5.0)]),
    "column names twice": ([Row("a", "a")(1, 2)], [Row("a", "a")(1, 2)]),
}  # fmt: skip

DIFFERENT: dict[str, tuple[list[Any], list[Any]]] = {
    "count of a duplicate": ([(1,), (1,), (2,)], [(1,), (2,), (2,)]),
    "count of a float": ([(1.5,), (1.5,)], [(1.5,)]),
    "null and empty": ([("",)], [(None,)]),
    "null and NaN": ([(NAN,)], [(None,)]),
    "null and zero": ([(0,)], [(None,)]),
    "infinities": ([(INF,)], [(-INF,)]),
    "infinity and large": ([(INF,)], [(1.7e308,)]),
    "float": ([(1.0,)], [(1.0 + 1e-8,)]),
    "small floats": ([(1e-20,)], [(2e-20,)]),
    "zero and tiny": ([(0.0,)], [(1e-300,)]),
    "integers beyond double": ([(2**53,)], [(2**53 + 1,)]),
    "decimals": ([(Decimal("1.0000000000000000000000000001"),)], [(Decimal(1),)]),
    "decimals of 38 digits": ([(Decimal("9" * 38),)], [(Decimal("9" * 37 + "8"),)]),
    "type": ([(1,)], [(1.0,)]),
    "boolean and integer": ([(True,)], [(1,)]),
    "column order": ([(1, 2)], [(2, 1)]),
    "list order": ([([1, 2],)], [([2, 1],)]),
    "list length": ([([1.0],)], [([1.0, 1.0],)]),
    "map value": ([({"a": 1.0},)], [({"a": 2.0},)]),
    "map key": ([({"a": 1},)], [({"b": 1},)]),
    "trailing space": ([("a",)], [("a ",)]),
    "floats swapped between rows": ([("a", 1.0), ("b", 2.0)], [("a", 2.0), ("b", 1.0)]),
}


@pytest.mark.parametrize("case", SAME)
def test_same(case: str) -> None:
    left, right = SAME[case]
    assert differences(left, right) == ([], [])
    assert differences(right, left) == ([], [])


@pytest.mark.parametrize("case", DIFFERENT)
def test_different(case: str) -> None:
    left, right = DIFFERENT[case]
    ours, theirs = differences(left, right)
    assert ours or theirs
    assert differences(right, left) == (theirs, ours)


def test_names_the_rows_that_differ() -> None:
    left = [(i, float(i)) for i in range(100)]
    right = [*left[:50], (50, 50.5), *left[51:], (7, 7.0)]
    assert differences(left, right) == ([(50, 50.0)], [(7, 7.0), (50, 50.5)])


def test_gives_no_more_rows_than_asked() -> None:
    ours, theirs = differences([(i,) for i in range(100)], [], at_most=3)
    assert (len(ours), theirs) == (3, [])


def test_shuffled_rows_with_noise_are_the_same() -> None:
    rng = random.Random(1979)
    rows = [(rng.randrange(3), rng.choice([0.1, 0.2, 0.3]), rng.random()) for _ in range(3000)]
    noisy = [(k, a * (1 + 1e-14), b * (1 - 1e-14)) for k, a, b in rows]
    rng.shuffle(noisy)
    assert differences(rows, noisy) == ([], [])
    noisy[17] = (noisy[17][0], noisy[17][1], noisy[17][2] + 0.001)
    ours, theirs = differences(rows, noisy)
    assert (len(ours), theirs) == (1, [noisy[17]])


def test_many_equal_floats_stay_fast() -> None:
    left, right = [(0.5,)] * 50_000, [(0.5,)] * 49_999
    assert differences(left, right) == ([(0.5,)], [])


def test_margins_are_those_of_the_column_a_float_stands_in() -> None:
    left, right = [("a", None, 1.0), ("b", 1.0, 1.0)], [("a", None, 1.4), ("b", 1.0, 1.4)]
    assert differences(left, right, margins=(0.0, 0.0, 0.5)) == ([], [])
    assert differences(left, right, margins=(0.0, 0.5, 0.0)) == (left, right)
    assert differences(left, right, margins=(0.0, 0.5, 0.3)) == (left, right)


def test_a_first_float_within_its_margin_finds_its_partner() -> None:
    left, right = [(0.0, 1.0), (0.3, 2.0)], [(0.1, 2.0), (0.2, 1.0)]
    assert differences(left, right, margins=(0.25, 0.0)) == ([], [])
