"""Random tables, and the Parquet or ORC files that they are written to."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq

from tests.fuzz.sqltypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    SqlType,
    Value,
    decimal,
    literal,
    quoted,
    text_of,
)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        Its name. Columns of one name hold values of one domain in all tables.
    type : SqlType
        Its type.
    tame : bool
        Whether sums are exact, in any order, and far from the limits of the type.
    """

    name: str
    type: SqlType
    tame: bool


@dataclass
class Table:
    """A table: its columns, its rows, and how they are laid out in files.

    The files are `parquet` or `orc`. With `v2`, Spark reads them through its newer interface.
    """

    name: str
    columns: list[Column]
    rows: list[tuple[Value, ...]]
    files: int = 1
    group_rows: int = 1000
    dictionary: bool = True
    integers: bool = False
    source: str = "parquet"
    v2: bool = False

    def values(self, column: int) -> list[Value]:
        """Give the values of one column."""
        return [row[column] for row in self.rows]

    @cached_property
    def most_alike(self) -> list[int]:
        """For each column, the rows of its most frequent value that is not NULL."""
        counts = [
            Counter(text_of(v) for v in self.values(i) if v is not None)
            for i in range(len(self.columns))
        ]
        return [max(each.values(), default=0) for each in counts]

    def copy(
        self,
        rows: list[tuple[Value, ...]] | None = None,
        columns: Sequence[int] | None = None,
        files: int | None = None,
    ) -> Table:
        """Give this table with fewer rows, columns or files."""
        chosen = range(len(self.columns)) if columns is None else columns
        return replace(
            self,
            columns=[self.columns[i] for i in chosen],
            rows=[tuple(row[i] for i in chosen) for row in (self.rows if rows is None else rows)],
            files=self.files if files is None else files,
        )


@dataclass
class _Domain:
    """Where the values of a column come from."""

    column: Column
    values: list[Value] = field(default_factory=list)


def _days(start: dt.date, count: int) -> list[dt.date]:
    return [start + dt.timedelta(days=i) for i in range(count)]


def _domain(rng: Random, name: str, kind: SqlType, wild: bool) -> _Domain:
    make = _MAKERS[kind.kind]
    return _Domain(Column(name, kind, not wild), make(rng, kind, wild))


def _integers(rng: Random, kind: SqlType, wild: bool) -> list[Value]:
    most = rng.choice([3, 8, 20, 80])
    values = list(range(-2, most))
    return [*values, kind.largest, -kind.largest - 1, kind.largest - 1] if wild else values


def _doubles(rng: Random, _: SqlType, wild: bool) -> list[Value]:
    # Multiples of a quarter: their sums are exact, whatever the order.
    values = [i / 4 for i in range(-5, rng.choice([3, 10, 60]))]
    values += [math.nan, math.inf, -math.inf, -0.0, 0.0, -0.0] * rng.choice([0, 1, 1, 3])
    if not wild:
        return values
    # Nothing negative: sums that cancel out would depend on the order in every bit.
    return [*(v for v in values if not v < 0), 1e300, 5e-324, 0.1, 1 / 3]


def _decimals(rng: Random, kind: SqlType, wild: bool) -> list[Value]:
    # Digits before the point are put there by text: arithmetic would round to 28 of them.
    most = 10**kind.precision - 1
    steps = [i * rng.choice([1, 1, 7]) for i in range(-3, rng.choice([3, 10, 60]))]
    steps = [i for i in steps if abs(i) <= most]
    if wild:
        steps += [most, -most, most - 1, 1]
    return [Decimal(f"{i}E-{kind.scale}") for i in steps]


def _strings(rng: Random, _: SqlType, __: bool) -> list[Value]:
    words = ["", " ", "a", "A", "b", "ab", "abc", "ä", "日本", "a'b", "%", "x_y", "12", "-3", "zz"]
    return words[: rng.choice([4, 15])] + [f"v{i}" for i in range(rng.choice([0, 0, 10, 60]))]


def _dates(rng: Random, _: SqlType, wild: bool) -> list[Value]:
    values: list[Value] = [*_days(dt.date(1999, 12, 20), rng.choice([3, 8, 40]))]
    return [*values, dt.date(1, 1, 1), dt.date(9999, 12, 31)] if wild else values


def _timestamps(rng: Random, kind: SqlType, _: bool) -> list[Value]:
    days = _dates(rng, kind, False)
    midnight = dt.time()
    times = [midnight, midnight, dt.time(12, 30), dt.time(23, 59, 59, 999999)]
    return [dt.datetime.combine(day, rng.choice(times)) for day in days]


_MAKERS: dict[str, Callable[[Random, SqlType, bool], list[Value]]] = {
    "smallint": _integers,
    "int": _integers,
    "bigint": _integers,
    "double": _doubles,
    "decimal": _decimals,
    "string": _strings,
    "date": _dates,
    "timestamp": _timestamps,
    "boolean": lambda _, __, ___: [True, False],
}


def _pool(rng: Random, *, orc: bool) -> list[_Domain]:
    """Give the columns that the tables of one batch may have.

    ORC files of another writer than Spark's are no test of what Spark makes of their timestamps,
    and of dates from before the calendar of today.
    """
    small = decimal(*rng.choice([(5, 2), (9, 0), (12, 4), (18, 2)]))
    wide = decimal(*rng.choice([(38, 0), (38, 10), (38, 18), (38, 38), (30, 6)]))
    kinds = [
        ("k", INT, False),
        ("k2", INT, False),
        ("big", BIGINT, False),
        ("far", rng.choice([INT, BIGINT, SMALLINT]), True),
        ("sm", SMALLINT, False),
        ("d", DOUBLE, False),
        ("w", DOUBLE, True),
        ("x", small, False),
        ("y", wide, True),
        ("z", decimal(10, 2), False),
        ("s", STRING, False),
        ("s2", STRING, False),
        ("dt", DATE, rng.random() < 0.2 and not orc),
        *([] if orc else [("ts", TIMESTAMP, False)]),
        ("f", BOOLEAN, False),
    ]
    return [_domain(rng, name, kind, wild) for name, kind, wild in kinds]


def random_tables(rng: Random) -> list[Table]:
    """Make the tables of one batch of cases."""
    source = "orc" if rng.random() < 0.15 else "parquet"
    v2 = rng.random() < 0.15
    pool = _pool(rng, orc=source == "orc")
    count = rng.randint(4, 7)
    tables = [_table(rng, f"t{i}", pool, _row_count(rng)) for i in range(count)]
    if rng.random() < 0.4:
        large = _table(rng, f"t{count}", pool, rng.randint(1000, 3000))
        large.files, large.group_rows = rng.randint(2, 4), rng.choice([200, 1000])
        tables.append(large)
    return [replace(table, source=source, v2=v2) for table in tables]


def _row_count(rng: Random) -> int:
    most = rng.choice([0, 8, 20, 20, 40, 60, 60, 100, 150, 300])
    return rng.randint(most // 2, most)


def _table(rng: Random, name: str, pool: Sequence[_Domain], rows: int) -> Table:
    chosen = [d for d in pool if d.column.name == "k" or rng.random() < 0.45]
    chosen = chosen[:7]
    columns = [Column("id", INT, tame=True)]
    ids = list(range(rows))
    rng.shuffle(ids)
    lists: list[list[Value]] = [[*ids]]
    for domain in chosen:
        kind = domain.column.type
        # The same name in another width, now and then: joins must cast.
        if kind == INT and domain.column.tame and rng.random() < 0.12:
            kind = rng.choice([BIGINT, decimal(10, 2), SMALLINT])
        columns.append(Column(domain.column.name, kind, domain.column.tame))
        lists.append(_fill(rng, domain, rows))
    filled = [
        tuple(_typed(c.type, v) for c, v in zip(columns, row, strict=True))
        for row in zip(*lists, strict=True)
    ]
    if rng.random() < 0.35:
        _sort(rng, columns, filled)
    return Table(
        name,
        columns,
        filled,
        files=rng.choice([1, 1, 1, 2, 3]),
        group_rows=rng.choice([7, 50, 1000]),
        dictionary=rng.random() < 0.7,
        integers=rng.random() < 0.5,
    )


def _sort(rng: Random, columns: Sequence[Column], rows: list[tuple[Value, ...]]) -> None:
    """Sort rows by a key, as facts arrive day by day: files then hold different parts of it."""
    keys = [i for i, c in enumerate(columns) if c.type in (INT, BIGINT, SMALLINT, DATE)]
    by = rng.choice(keys)
    known: Any = [row for row in rows if row[by] is not None]
    rows[:] = [row for row in rows if row[by] is None] + sorted(known, key=lambda row: row[by])


def _typed(kind: SqlType, value: Value) -> Value:
    return Decimal(value) if kind.kind == "decimal" and isinstance(value, int) else value


def _fill(rng: Random, domain: _Domain, rows: int) -> list[Value]:
    """Draw one column: unique, uniform or skewed, with NULL at some rate, sorted or not."""
    nulls = rng.choice([0.0, 0.0, 0.0, 0.05, 0.1, 0.3, 0.9 if rng.random() < 0.5 else 0.1])
    shape = rng.choice(["unique", "uniform", "uniform", "skewed"])
    values = domain.values
    if shape == "unique" and len(values) >= rows:
        drawn = rng.sample(values, rows)
    elif shape == "skewed":
        last = len(values) - 1
        drawn = [values[min(last, int(rng.expovariate(0.6)))] for _ in range(rows)]
    else:
        drawn = [rng.choice(values) for _ in range(rows)]
    if rng.random() < 0.2 and domain.column.type != DOUBLE:
        drawn.sort()
    return [None if rng.random() < nulls else value for value in drawn]


# ---- files ---------------------------------------------------------------------------------

_ARROW: dict[str, Any] = {
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "boolean": pa.bool_(),
}


def arrow_type(kind: SqlType) -> Any:
    """Give Arrow's type."""
    if kind.kind == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    return _ARROW[kind.kind]


def arrow_table(table: Table, rows: list[tuple[Value, ...]] | None = None) -> Any:
    """Give a table, or some of its rows, as Arrow has it."""
    chosen = table.rows if rows is None else rows
    arrays = [
        pa.array([row[i] for row in chosen], type=arrow_type(column.type))
        for i, column in enumerate(table.columns)
    ]
    return pa.table(arrays, names=[column.name for column in table.columns])


def write_files(table: Table, folder: Path) -> Path:
    """Write a table as files into a folder of its own, and give that."""
    target = folder / table.name
    target.mkdir(parents=True)
    size = max(1, math.ceil(len(table.rows) / table.files))
    starts = range(0, max(1, len(table.rows)), size)
    for number, start in enumerate(starts):
        part = arrow_table(table, table.rows[start : start + size])
        path = target / f"part-{number}.{table.source}"
        if table.source == "orc":
            po.write_table(
                part,
                str(path),
                row_index_stride=table.group_rows,
                dictionary_key_size_threshold=1.0 if table.dictionary else 0.0,
            )
        else:
            pq.write_table(
                part,
                path,
                row_group_size=table.group_rows,
                use_dictionary=table.dictionary,
                store_decimal_as_integer=table.integers,
            )
    return target


def ddl(table: Table) -> str:
    """Give the columns as CREATE TABLE takes them."""
    return ", ".join(f"{column.name} {str(column.type).upper()}" for column in table.columns)


def values_sql(table: Table) -> str:
    """Give a table as a statement of Spark SQL that needs no files."""
    casts = ", ".join(f"CAST({c.name} AS {str(c.type).upper()}) AS {c.name}" for c in table.columns)
    names = ", ".join(column.name for column in table.columns)
    rows = [
        "(" + ", ".join("NULL" if v is None else quoted(text_of(v)) for v in row) + ")"
        for row in table.rows
    ]
    body = ",\n  ".join(rows) or "(" + ", ".join("NULL" for _ in table.columns) + ")"
    where = "" if rows else "\nWHERE false"
    return (
        f"CREATE OR REPLACE TEMPORARY VIEW {table.name} AS SELECT {casts} FROM VALUES\n"
        f"  {body}\nAS v({names}){where}"
    )


def samples(table: Table, column: int, rng: Random, count: int = 8) -> list[Value]:
    """Draw some values of a column, without NULL."""
    values = list(itertools.islice((v for v in table.values(column) if v is not None), 200))
    return rng.sample(values, min(count, len(values)))


__all__ = [
    "Column",
    "Table",
    "arrow_table",
    "ddl",
    "literal",
    "random_tables",
    "samples",
    "values_sql",
    "write_files",
]
