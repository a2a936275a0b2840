"""Spark's errors as Python gets them, and constants as SQL text that any parser reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selinger.errors import SelingerError

#: What the table functions take.
Value = str | float | Sequence[str]

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]")
_CLASS = re.compile(r"[\w$]+(?:\.[\w$]+)+: ")
_CALL = re.compile(r"An error occurred while calling [^\n]*\n: ")
_TRACE = re.compile(r"\n\nJVM stacktrace|\n\tat |\n\nDriver stacktrace|\nCaused by: ")


def spark_errors() -> tuple[type[Exception], ...]:
    """List what Spark's errors are.

    PySpark gives most errors of a classic session a type of its own. For the others, such as a
    Parquet file that cannot be read, it lets py4j's ``Py4JJavaError`` through.

    Examples
    --------
    >>> [error.__name__ for error in spark_errors()]
    ['PySparkException', 'Py4JJavaError']
    """
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JJavaError
    except ImportError:  # a client of Spark Connect only
        return (PySparkException,)
    return PySparkException, Py4JJavaError


def error_message(error: Exception) -> str:
    r"""Give what Spark says, without stack traces and without the names of Java classes.

    Examples
    --------
    >>> error_message(Exception("An error occurred while calling o7.collectToPython.\n"
    ...     ": org.apache.spark.SparkException: [FAILED_READ_FILE] It is no file.\n\tat a.B.c(D)"))
    '[FAILED_READ_FILE] It is no file.'
    """
    text = _CALL.sub("", str(error), count=1)
    text = _TRACE.split(text, maxsplit=1)[0].strip()
    prefix = _CLASS.match(text)
    if prefix:
        text = text[prefix.end() :]
    text = text.removeprefix("requirement failed: ")  # what Scala's require puts before a message
    condition = _CONDITION.search(text)
    # A job that is aborted says first which task it was, and then the error of that task.
    if condition and text.startswith("Job aborted"):
        text = text[condition.start() :]
    return text or type(error).__name__


def error_condition(error: Exception) -> str:
    """Name an error so that two runs of one failing query give the same name.

    Examples
    --------
    >>> error_condition(Exception("[FAILED_READ_FILE] It is no file."))
    'FAILED_READ_FILE'
    >>> error_condition(Exception("part 7 of 12 is missing"))
    'part N of N is missing'
    """
    told = getattr(error, "getCondition", None)
    condition = told() if told else None
    if condition is not None:
        return str(condition)
    message = error_message(error)
    named = _CONDITION.match(message)
    if named:
        return named.group(1)
    # Without the error's type, which is py4j's for some errors of a classic session.
    return re.sub(r"[0-9]+", "N", message.splitlines()[0])


@contextmanager
def raising(kind: type[SelingerError]) -> Iterator[None]:
    """Give Spark's errors as errors of ours."""
    try:
        yield
    except spark_errors() as error:
        raise kind(error_message(error)) from error


def constant(value: Value) -> str:
    r"""Write a constant as SQL.

    Named parameters would do as well, but they need a parser that passes them on, and the parser
    of a session may be another extension's. Texts with characters that SQL, its settings, or the
    substitution of variables could read otherwise are written as the bytes that they are.

    Examples
    --------
    >>> constant("s3a://lake/orders"), constant(0.5), constant(["a", "it's"])
    ("'s3a://lake/orders'", '0.5D', "array('a', CAST(X'69742773' AS STRING))")
    """
    if isinstance(value, str):
        if re.fullmatch(r"[\w ./:=,*@+-]*", value, re.ASCII):
            return f"'{value}'"
        return f"CAST(X'{value.encode('utf-8').hex().upper()}' AS STRING)"
    if isinstance(value, int):
        return f"{value}L"
    if isinstance(value, float):
        return f"{value!r}D"
    return f"array({', '.join(map(constant, value))})"
