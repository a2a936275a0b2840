"""
A data set of our own, as uneven as users' data is: its tables and queries.

Uniform data, as TPC-DS and TPC-H make it, flatters every estimator.
"""

import hashlib
import re
from pathlib import Path

from benchmarks.datasets.queries import Query, to_spark
from benchmarks.paths import scale_text

_FOLDER = Path(__file__).parent


def tables_sql(scale: float) -> str:
    """Give the SQL that makes the tables in DuckDB."""
    text = (_FOLDER / "tables.sql").read_text(encoding="utf-8")
    return text.replace("{scale}", scale_text(scale))


def digest() -> str:
    """Identify the definition of the tables, so that data of another one is made again."""
    return hashlib.sha256(tables_sql(1).encode()).hexdigest()[:16]


def load_queries() -> dict[str, Query]:
    text = (_FOLDER / "queries.sql").read_text(encoding="utf-8")
    pieces = re.split(r"^-- (q\d+): .*$", text, flags=re.MULTILINE)[1:]
    return {
        name: Query(name, body.strip(), to_spark(body.strip()))
        for name, body in zip(pieces[::2], pieces[1::2], strict=True)
    }
