"""SQL types, and values written as literals."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

#: A value of a column; None is NULL.
Value = Any

INTEGERS = ("smallint", "int", "bigint")
_WIDTH = {"smallint": 16, "int": 32, "bigint": 64}


@dataclass(frozen=True)
class SqlType:
    """A type by its name; precision and scale are those of a decimal."""

    kind: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        if self.kind == "decimal":
            return f"decimal({self.precision},{self.scale})"
        return self.kind

    @property
    def is_integer(self) -> bool:
        """Whether it is a type of whole numbers."""
        return self.kind in INTEGERS

    @property
    def is_numeric(self) -> bool:
        """Whether one can compute with it."""
        return self.is_integer or self.kind in ("double", "decimal")

    @property
    def largest(self) -> int:
        """The largest value of a type of whole numbers."""
        return int(2 ** (_WIDTH[self.kind] - 1) - 1)


SMALLINT, INT, BIGINT = (SqlType(kind) for kind in INTEGERS)
DOUBLE, STRING, DATE = SqlType("double"), SqlType("string"), SqlType("date")
TIMESTAMP, BOOLEAN = SqlType("timestamp"), SqlType("boolean")


def decimal(precision: int, scale: int) -> SqlType:
    """Give a decimal type."""
    return SqlType("decimal", precision, scale)


def parse_type(text: str) -> SqlType:
    """Read a type as `str` writes it.

    Examples
    --------
    >>> parse_type("decimal(38,4)") == decimal(38, 4)
    True
    """
    if text.startswith("decimal("):
        precision, scale = text[len("decimal(") : -1].split(",")
        return decimal(int(precision), int(scale))
    return SqlType(text)


def text_of(value: Value) -> str:
    """Write a value as a cast from a string takes it, in Spark and in DuckDB."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return repr(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")
    return str(value)


def quoted(text: str) -> str:
    """Write a string literal."""
    return "'" + text.replace("'", "''") + "'"


def literal(value: Value, kind: SqlType) -> str:
    """Write a value as a literal that has just this type in Spark and in DuckDB."""
    if value is None:
        return f"CAST(NULL AS {str(kind).upper()})"
    if kind == STRING:
        return quoted(text_of(value))
    if kind in (INT, BOOLEAN) and value != -(2**31):
        return text_of(value)
    return f"CAST({quoted(text_of(value))} AS {str(kind).upper()})"
