"""A query as users give it: SQL text, with or without a session, or a DataFrame."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from selinger.errors import NoSession, NotAQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUERY = re.compile(r"(?:\s|\(|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*(\w+)", re.S)
_QUERY_WORDS = {"select", "with", "from", "values", "table", "map", "reduce"}


def checked_query(sql: str) -> str:
    """Give SQL text back if it is a query.

    Raises
    ------
    NotAQuery
        If it is a statement.

    Examples
    --------
    >>> checked_query("SELECT 1")
    'SELECT 1'
    """
    word = _QUERY.match(sql)
    if word is None or word.group(1).lower() not in _QUERY_WORDS:
        raise NotAQuery(word.group(1) if word else sql[:20])
    return sql


def active_session() -> SparkSession:
    """Find the session for SQL text.

    Raises
    ------
    NoSession
        If there is none.
    """
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is None:
        raise NoSession
    return session
