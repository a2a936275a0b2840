"""
Made-up queries over the tables of a suite: each walks from table to table along their keys.

They stand for queries that nobody has tuned for: 4 to 17 joins, predicates with values that the
data has, one grouping. The same seed gives the same queries for the same data.
"""

import datetime as dt
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import duckdb

from benchmarks.datasets.duck import attach, connect
from benchmarks.datasets.queries import Query, to_spark

FEWEST_JOINS, MOST_JOINS = 4, 17
BACKWARD = 0.15
"""
How often a step goes from a table to one that refers to it, rather than the other way.

It does so once in a walk at most: rows of two facts that meet at a dimension are many.
"""

Columns = Mapping[str, str]
"""Types by name."""


@dataclass(frozen=True)
class Reference:
    """A column of ``table`` that holds keys of ``target``."""

    table: str
    column: str
    target: str
    key: str


def _without_prefix(column: str) -> str:
    return column.split("_", 1)[-1]


def references(tables: Mapping[str, Columns], keys: Mapping[str, str]) -> list[Reference]:
    """Find them by the names of ``keys``, one a table: ``ss_item_sk`` ends like ``i_item_sk``."""
    found = []
    for target, key in keys.items():
        found += [
            Reference(table, column, target, key)
            for table, others in tables.items()
            if table != target
            for column in others
            if _without_prefix(column).endswith(_without_prefix(key))
        ]
    return found


def _predicate(
    connection: duckdb.DuckDBPyConnection,
    chance: random.Random,
    table: str,
    alias: str,
    columns: Columns,
) -> str | None:
    """Compare one column that is no key with a value that it has."""
    plain = [name for name in columns if not name.endswith(("_sk", "_id", "key", "number"))]
    name = chance.choice(plain or list(columns))
    sample = f"SELECT {name} FROM {table} USING SAMPLE 1 ROWS (reservoir, {chance.randrange(1000)})"
    row = connection.execute(sample).fetchone()
    if row is None or row[0] is None:
        return None
    value, column = row[0], f"{alias}.{name}"
    if isinstance(value, str):
        text = value.replace("'", "''")
        if chance.random() < 0.5 and text[:3].isalpha():
            return f"{column} LIKE '{text[:3]}%'"
        return f"{column} = '{text}'"
    if isinstance(value, dt.date):
        return f"{column} >= DATE '{value:%Y-%m-%d}'"
    if isinstance(value, int | float | Decimal):
        return chance.choice([f"{column} = {value}", f"{column} > {value}", f"{column} <= {value}"])
    return f"{column} IS NOT NULL"


def _keys(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Columns]) -> dict[str, str]:
    """Find the tables whose first column is a key: its values are all different."""
    firsts = {table: next(iter(columns)) for table, columns in tables.items()}
    return {
        table: first
        for table, first in firsts.items()
        if first.endswith(("_sk", "key"))
        and connection.execute(f"SELECT count(DISTINCT {first}) = count(*) FROM {table}").fetchone()
        == (True,)
    }


def _steps(
    chance: random.Random, start: str, found: Sequence[Reference], joins: int
) -> Iterator[tuple[str, str]]:
    """Walk: the next table, and the condition that joins it to one before."""
    tables = {ref.table for ref in found}
    aliases, turned = [start], False
    for number in range(1, joins + 1):
        referring = [place for place, name in enumerate(aliases) if name in tables]
        at = chance.choice(referring)
        back = [ref for ref in found if ref.target == aliases[at]]
        if back and not turned and chance.random() < BACKWARD:
            ref, turned = chance.choice(back), True
            aliases.append(ref.table)
            yield ref.table, f"t{at}.{ref.key} = t{number}.{ref.column}"
        else:
            ref = chance.choice([ref for ref in found if ref.table == aliases[at]])
            aliases.append(ref.target)
            yield ref.target, f"t{at}.{ref.column} = t{number}.{ref.key}"


def walks(tables: Mapping[str, str], count: int, seed: int) -> list[Query]:
    """Make so many queries over these folders of Parquet files."""
    made = []
    # With several threads, a sample is another one each time.
    with connect(threads=1) as connection:
        for name, path in tables.items():
            attach(connection, name, Path(path))
        types = {
            name: {
                str(row[0]): str(row[1]) for row in connection.sql(f"DESCRIBE {name}").fetchall()
            }
            for name in tables
        }
        found = references(types, _keys(connection, types))
        starts = sorted({ref.table for ref in found})
        for number in range(count):
            chance = random.Random(f"{seed} {number}")
            start = chance.choice(starts)
            steps = list(_steps(chance, start, found, chance.randint(FEWEST_JOINS, MOST_JOINS)))
            visited = [start, *(table for table, _ in steps)]
            conditions = [condition for _, condition in steps]
            for at in chance.sample(range(len(visited)), chance.randint(1, 4)):
                table = visited[at]
                condition = _predicate(connection, chance, table, f"t{at}", types[table])
                conditions += [condition] if condition else []
            at = chance.randrange(len(visited))
            group = f"t{at}.{chance.choice(list(types[visited[at]]))}"
            sources = ", ".join(f"{table} t{place}" for place, table in enumerate(visited))
            sql = f"SELECT {group}, count(*) FROM {sources} WHERE {' AND '.join(conditions)} "
            sql += f"GROUP BY {group}"
            made.append(Query(f"w{number + 1:03d}", sql, to_spark(sql)))
    return made
