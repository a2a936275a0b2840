"""
Queries of TPC-DS and TPC-H, put into Spark's SQL at run time, and those of our own data sets.

The rewrites are general: they work on tokens and know no single query. What else differs between
the two systems is set on DuckDB's side (`DUCKDB_SETTING`), so that both answer the same question.
"""

import re
from dataclasses import dataclass

from benchmarks.datasets.duck import connect
from benchmarks.datasets.own import OWN, query_texts

DUCKDB_SETTING = "SET default_null_order = 'nulls_first_on_asc_last_on_desc'"
"""Nulls sort as in Spark: first in ascending, last in descending order."""

_TOKEN = re.compile(
    r"""
    (?P<comment>--[^\n]*|/\*.*?\*/)
    | (?P<string>'(?:[^']|'')*')
    | (?P<name>"(?:[^"]|"")*")
    | (?P<open>\()
    | (?P<close>\))
    | (?P<word>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<number>\d+(?:\.\d+)?)
    | (?P<space>\s+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    kind: str
    text: str


@dataclass(frozen=True)
class Query:
    name: str
    duckdb: str
    spark: str


def tokens(sql: str) -> list[Token]:
    """Split SQL into tokens; together they are the text again."""
    return [Token(str(found.lastgroup), found.group()) for found in _TOKEN.finditer(sql)]


def to_spark(sql: str) -> str:
    """Translate from DuckDB's dialect to Spark's.

    Double-quoted names get backticks; a doubled quote inside a string becomes an escaped one,
    because Spark would read two strings side by side; comments go.
    """
    parts = []
    for token in tokens(sql):
        if token.kind == "comment":
            parts.append(" ")
        elif token.kind == "name":
            inner = token.text[1:-1].replace('""', '"').replace("`", "``")
            parts.append(f"`{inner}`")
        elif token.kind == "string":
            inner = token.text[1:-1].replace("\\", "\\\\").replace("''", "\\'")
            parts.append(f"'{inner}'")
        else:
            parts.append(token.text)
    return "".join(parts)


def without_limit(sql: str) -> str | None:
    """Remove the final ``LIMIT n`` of the outermost query."""
    pieces = tokens(sql)
    solid = [at for at, token in enumerate(pieces) if token.kind not in ("space", "comment")]
    if len(solid) < 2:
        return None
    keyword, number = solid[-2], solid[-1]
    if pieces[keyword].text.upper() != "LIMIT" or pieces[number].kind != "number":
        return None
    return "".join(token.text for token in pieces[:keyword]).rstrip()


def with_other_numbers(sql: str, more: int) -> str | None:
    """Add ``more`` to whole numbers such as years and prices, but those of a LIMIT.

    Numbers below 40 stay, for they are places, lengths and precisions as often as values. ``None``
    if none changes.
    """
    made, before = [], ""
    for token in tokens(sql):
        changes = token.kind == "number" and token.text.isdigit() and int(token.text) >= 40
        changes = changes and before != "LIMIT"
        made.append(str(int(token.text) + more) if changes else token.text)
        before = before if token.kind == "space" else token.text.upper()
    changed = "".join(made)
    return None if changed == sql else changed


def load_queries(suite: str) -> dict[str, Query]:
    texts = query_texts(suite) if suite in OWN else _texts_of_duckdb(suite)
    return {name: Query(name, text, to_spark(text)) for name, text in texts.items()}


def _texts_of_duckdb(suite: str) -> dict[str, str]:
    sql = f"SELECT query_nr, query FROM {suite}_queries() ORDER BY query_nr"
    with connect(suite) as connection:
        found = connection.execute(sql).fetchall()
    return {f"q{number:02d}": text.strip().removesuffix(";").strip() for number, text in found}


def choose(queries: dict[str, Query], wanted: str) -> list[Query]:
    """Pick queries by a list on the command line."""
    if wanted == "all":
        return list(queries.values())
    if step := re.fullmatch(r"every:([1-9]\d*)", wanted.strip()):
        return list(queries.values())[:: int(step[1])]
    names: set[str] = set()
    for item in wanted.split(","):
        match = re.fullmatch(r"q?(\d+)(?:-q?(\d+))?", item.strip())
        if match is None:
            raise ValueError(f"{item!r} is not a query name; write all, q05, q01-q09 or every:3")
        first, last = int(match[1]), int(match[2] or match[1])
        names.update(f"q{number:02d}" for number in range(first, last + 1))
    unknown = sorted(names - set(queries))
    if unknown:
        raise ValueError(f"no such query: {', '.join(unknown)} (there are {len(queries)})")
    return [query for name, query in queries.items() if name in names]
