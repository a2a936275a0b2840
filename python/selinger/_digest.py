"""Compare answers too big to be brought to the client: counts and sums computed in Spark.

Order does not count. The digest of an answer is

* its number of rows;
* two sums over a hash of each row's exact columns (everything but floating-point numbers);
* for each floating-point column how many nulls, NaN and infinities it has, and the sum of its
  values, plain and weighted by the row's hash, which ties each number to its row. The sums are
  compared with the tolerance, against the sum of magnitudes.

Columns that Spark can neither hash nor sum so (variants, and nested ones that hold floats or
maps) count with their nulls only; `Digest.loosely` names them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_WEIGHTS = 1000


@dataclass(frozen=True)
class Digest:
    """What is known of a big answer.

    Attributes
    ----------
    exact : mapping of str to int
        Values that must be equal.
    sums : mapping of str to (float, float)
        A sum, and the sum of magnitudes that its tolerance is relative to.
    loosely : tuple of str
        Columns of which only the nulls were compared.
    """

    exact: Mapping[str, int]
    sums: Mapping[str, tuple[float, float]]
    loosely: tuple[str, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.exact["rows"]

    def differs(self, other: Digest, tolerance: float) -> list[str]:
        """Name the values that differ."""
        found = [name for name, value in self.exact.items() if other.exact.get(name) != value]
        for name, (value, magnitude) in self.sums.items():
            theirs = other.sums[name]
            margin = tolerance * max(magnitude, theirs[1])
            if not math.isclose(value, theirs[0], rel_tol=0.0, abs_tol=margin):
                found.append(name)
        return found


def digest(df: DataFrame) -> Digest:
    """Compute the digest of an answer, in one aggregation and with one row as its result.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The query.

    Returns
    -------
    Digest
        See the module's text.

    Examples
    --------
    >>> one, two = spark.range(1000), spark.range(999, -1, -1)
    >>> digest(one).differs(digest(two), 1e-9)
    []
    """
    from pyspark.sql import functions as F  # noqa: N812

    names = list(df.columns)
    flat = df.toDF(*(f"c{i}" for i in range(len(names))))
    kinds = [_kind(field.dataType) for field in flat.schema.fields]
    hashed = [
        _hashable(F.col(f"c{i}"), field.dataType)
        for i, (kind, field) in enumerate(zip(kinds, flat.schema.fields, strict=True))
        if kind == "exact"
    ]
    flat = flat.withColumn("h", F.xxhash64(F.lit(42), *hashed))
    totals = {
        "rows": F.count(F.lit(1)),
        "hash low": F.coalesce(F.sum(F.expr("h & 4294967295")), F.lit(0)),
        "hash high": F.coalesce(F.sum(F.expr("shiftright(h, 32)")), F.lit(0)),
    }
    sums: dict[str, tuple[Column, Column]] = {}
    for i, kind in enumerate(kinds):
        label = f"column {i + 1}"
        if kind != "exact":
            totals[f"nulls of {label}"] = F.count_if(F.col(f"c{i}").isNull())
        if kind == "float":
            totals.update(_specials(f"c{i}", label))
            sums.update(_sums(f"c{i}", label))
    columns = [*totals.values(), *(column for pair in sums.values() for column in pair)]
    row = flat.agg(*(column.alias(f"a{i}") for i, column in enumerate(columns))).collect()[0]
    values = iter(row)
    exact = {name: int(next(values)) for name in totals}
    tolerant = {name: (float(next(values) or 0.0), float(next(values) or 0.0)) for name in sums}
    loosely = tuple(name for name, kind in zip(names, kinds, strict=True) if kind == "loose")
    return Digest(exact, tolerant, loosely)


def _kind(data_type: DataType) -> str:
    from pyspark.sql import types as T  # noqa: N812

    if isinstance(data_type, (T.FloatType, T.DoubleType)):
        return "float"
    if isinstance(data_type, T.MapType):
        plain = _hashes(data_type.keyType) and _hashes(data_type.valueType)
        return "exact" if plain else "loose"
    return "exact" if _hashes(data_type) else "loose"


def _hashes(data_type: DataType) -> bool:
    """Tell whether Spark's hash of a value says all about it that must be equal."""
    from pyspark.sql import types as T  # noqa: N812

    if isinstance(data_type, T.ArrayType):
        return _hashes(data_type.elementType)
    if isinstance(data_type, T.StructType):
        return all(_hashes(field.dataType) for field in data_type.fields)
    if isinstance(data_type, (T.FloatType, T.DoubleType, T.VariantType)):
        return False
    intervals = (T.CalendarIntervalType, T.YearMonthIntervalType, T.DayTimeIntervalType)
    return isinstance(data_type, (T.AtomicType, T.NullType, *intervals))


def _hashable(column: Column, data_type: DataType) -> Column:
    """Give what to hash: Spark's hash skips nulls, so say where they are; maps have no order."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql import types as T  # noqa: N812

    if isinstance(data_type, T.MapType):
        column = F.array_sort(F.map_entries(column))
    if isinstance(data_type, (T.MapType, T.ArrayType, T.StructType)):
        return F.struct(column.isNull(), column, column.cast("string"))
    return F.struct(column.isNull(), column)


def _specials(column: str, label: str) -> dict[str, Column]:
    from pyspark.sql import functions as F  # noqa: N812

    value = F.col(column).cast("double")
    infinity = F.lit(float("inf"))
    return {
        f"NaN of {label}": F.count_if(F.isnan(value)),
        f"infinities of {label}": F.count_if(value == infinity),
        f"negative infinities of {label}": F.count_if(value == -infinity),
    }


def _sums(column: str, label: str) -> dict[str, tuple[Column, Column]]:
    from pyspark.sql import functions as F  # noqa: N812

    value = F.col(column).cast("double")
    finite = F.when(F.isnan(value) | (F.abs(value) == F.lit(float("inf"))), None).otherwise(value)
    magnitude = F.sum(F.abs(finite))
    weight = F.expr(f"pmod(h, {_WEIGHTS}L) / {_WEIGHTS}D")
    return {
        f"sum of {label}": (F.sum(finite), magnitude),
        f"weighted sum of {label}": (F.sum(finite * weight), magnitude),
    }
