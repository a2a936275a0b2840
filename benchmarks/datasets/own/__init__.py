"""
Data sets of our own, and their queries: a folder each.

``skewed`` is as uneven as users' data is: uniform data, as TPC-DS and TPC-H make it, flatters
every estimator. ``aggregates`` has what users aggregate, from a thousand to ten million groups.
``small`` has 64 tables of at most 10,000 rows, on which nothing can be gained: it shows what
planning costs there.
"""

import hashlib
import re
from pathlib import Path

from benchmarks.paths import scale_text

OWN = ("skewed", "aggregates", "small")

_FOLDER = Path(__file__).parent


def tables_sql(suite: str, scale: float) -> str:
    """Give the SQL that makes the tables in DuckDB."""
    text = (_FOLDER / suite / "tables.sql").read_text(encoding="utf-8")
    return text.replace("{scale}", scale_text(scale))


def digest(suite: str) -> str:
    """Identify the definition of the tables, so that data of another one is made again."""
    return hashlib.sha256(tables_sql(suite, 1).encode()).hexdigest()[:16]


def query_texts(suite: str) -> dict[str, str]:
    text = (_FOLDER / suite / "queries.sql").read_text(encoding="utf-8")
    pieces = re.split(r"^-- (q\d+): .*$", text, flags=re.MULTILINE)[1:]
    return {name: body.strip() for name, body in zip(pieces[::2], pieces[1::2], strict=True)}
