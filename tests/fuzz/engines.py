"""Sessions of Spark and DuckDB, and what a query answers there."""

from __future__ import annotations

import datetime as dt
import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from selinger._plan import normalised

from tests.fuzz.data import Table, arrow_table, ddl, write_files
from tests.fuzz.options import BASE, Conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]

#: A query that takes longer is stopped.
TIMEOUT_S = 60.0


@dataclass
class Outcome:
    """What a query answered: rows, or an error.

    Attributes
    ----------
    rows : list of tuples or None
        The rows in the order in which they came; None after an error.
    error : str
        The condition of the error, or its class; empty if there was none.
    message : str
        What the error says.
    plan : str
        The plans, before and after adaptive changes, without numbers that change every time.
    """

    rows: list[Row] | None
    error: str = ""
    message: str = ""
    plan: str = ""


def open_spark(memory: str = "2g", extra: Mapping[str, str] | None = None) -> SparkSession:
    """Open a session with Selinger for many small queries."""
    import selinger
    from pyspark.sql import SparkSession

    conf = {
        **BASE,
        "spark.driver.memory": memory,
        # Almost nothing runs often enough to repay the second compiler, which took a quarter of
        # all time; neither did a heap and a metaspace that grow by full collections.
        "spark.driver.extraJavaOptions": f"-XX:ReservedCodeCacheSize=512m -Xss4m -Xms{memory} "
        "-XX:MetaspaceSize=512m -XX:NewRatio=1 -XX:TieredStopAtLevel=1",
        "spark.log.level": "OFF",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.ui.retainedExecutions": "5",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "50",
        "spark.cleaner.periodicGC.interval": "3min",
        "spark.scheduler.mode": "FAIR",
        # Each sort, aggregate and hash table takes a page of 64 MB at once, unless told otherwise:
        # most of the time went into full collections.
        "spark.buffer.pageSize": "1m",
        # Each scan broadcasts Hadoop's settings, and the data is small.
        "spark.broadcast.compress": "false",
        "spark.shuffle.compress": "false",
        "spark.sql.maxPlanStringLength": "1000000",
        **(extra or {}),
    }
    builder = SparkSession.builder.appName("selinger fuzz").master("local[2]")
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = selinger.configure(builder).getOrCreate()
    # Errors are answers here; PySpark would print pages about each.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return session


class Spark:
    """A session of its own, with the tables of one batch.

    Parameters
    ----------
    root : pyspark.sql.SparkSession
        Any session; the one used here shares its JVM and nothing else.
    rewrite : callable, optional
        What to make of a query's text where Selinger is on. A test plants a wrong answer so.
    """

    def __init__(self, root: SparkSession, rewrite: Callable[[str], str] | None = None) -> None:
        self.session: Any = root.newSession()
        self._rewrite = rewrite
        self._conf: Conf = {}
        self._folder = Path(tempfile.mkdtemp(prefix="selinger-fuzz-"))
        self._views: set[str] = set()
        self._versions = 0
        # Explain reads the settings of the thread's session.
        jvm: Any = self.session.sparkContext._jvm
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self.session._jsparkSession)
        for key, value in BASE.items():
            self.session.conf.set(key, value)

    def close(self) -> None:
        """Remove the views and the files."""
        self.load([])
        shutil.rmtree(self._folder, ignore_errors=True)

    def load(self, tables: Sequence[Table]) -> None:
        """Replace the tables."""
        self._apply({})
        for name in self._views:
            self.session.catalog.dropTempView(name)
        self._views.clear()
        shutil.rmtree(self._folder, ignore_errors=True)
        for table in tables:
            self.put(table)

    def put(self, table: Table) -> None:
        """Add a table, or replace it; the files are new ones, so that nothing remembers them."""
        self._versions += 1
        path = write_files(table, self._folder / str(self._versions))
        self.session.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW {table.name} ({ddl(table)}) "
            f"USING parquet OPTIONS (path '{path}')"
        )
        self._views.add(table.name)

    def run(self, text: str, conf: Conf) -> Outcome:
        """Run a query under some settings."""
        self._apply(conf)
        if self._rewrite is not None and conf.get("spark.selinger.mode") != "off":
            text = self._rewrite(text)
        context = self.session.sparkContext
        group = f"fuzz-{id(self)}"
        context.setJobGroup(group, "fuzz", interruptOnCancel=True)
        timer = Timer(TIMEOUT_S, lambda: context.cancelJobGroup(group))
        timer.daemon = True
        timer.start()
        try:
            frame = self.session.sql(text)
            rows = [tuple(row) for row in frame.collect()]
            return self._answered(frame, rows)
        except Exception as error:  # noqa: BLE001 - any error is an answer
            return Outcome(None, *condition_of(error))
        finally:
            timer.cancel()

    def _answered(self, frame: Any, rows: list[Row]) -> Outcome:
        # The plan alone: the whole explain text would be made, sent and parsed for every run.
        return Outcome(rows, plan=_plan(frame._jdf.queryExecution().executedPlan().toString()))

    def fired(self) -> dict[str, int]:
        """Tell how often each rule has acted in this session."""
        rules = self.session.sql("SELECT rule, fired FROM selinger_rules()").collect()
        return {row["rule"]: row["fired"] for row in rules}

    def _apply(self, conf: Conf) -> None:
        for key in self._conf.keys() - conf.keys():
            self.session.conf.unset(key)
        for key, value in conf.items():
            if self._conf.get(key) != value:
                self.session.conf.set(key, value)
        self._conf = dict(conf)


_NOISE = re.compile(r"Location: \S+ ?\[[^]]*\]|/tmp/\S+|isFinalPlan=\w+")


def _plan(text: str) -> str:
    return _NOISE.sub("", normalised(text))


def condition_of(error: Exception) -> tuple[str, str]:
    """Name an error as Spark does, or by the class of its first cause.

    Examples
    --------
    >>> condition_of(ValueError(": a.SparkException: [DIVIDE_BY_ZERO] x"))[0]
    'DIVIDE_BY_ZERO'
    """
    condition = getattr(error, "getCondition", lambda: None)()
    text = str(error).partition("\n\nJVM stacktrace")[0]
    if condition:
        return str(condition), text
    causes = _CAUSE.findall(str(error))
    # A thread that builds a broadcast side wraps the error, which PySpark does not look into.
    named = [condition for _, condition in causes if condition]
    if named:
        return named[-1], text[:2000]
    return (causes[-1][0] if causes else type(error).__name__), text[:2000]


_CAUSE = re.compile(
    r"(?:Caused by: |^: )(?:[\w.$]+Exception: )*([\w.$]+(?:Exception|Error)\b)"
    r"(?:: \[([A-Z_][\w.]+)\])?",
    re.M,
)


class Duck:
    """DuckDB with the same tables."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:", config={"threads": 1})

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()

    def load(self, tables: Sequence[Table]) -> None:
        """Replace the tables."""
        for (name,) in self._connection.execute(
            "SELECT table_name FROM duckdb_tables()"
        ).fetchall():
            self._connection.execute(f"DROP TABLE {name}")
        for table in tables:
            found = arrow_table(table)
            for i, column in enumerate(found.schema):
                if pa.types.is_timestamp(column.type):
                    plain = found.column(i).cast(pa.timestamp("us"))
                    found = found.set_column(i, column.name, plain)
            self._connection.register("arrived", found)
            self._connection.execute(f"CREATE TABLE {table.name} AS SELECT * FROM arrived")
            self._connection.unregister("arrived")

    def run(self, text: str) -> Outcome:
        """Run a query."""
        timer = Timer(10.0, self._connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            return Outcome(self._connection.execute(text).fetchall())
        except duckdb.Error as error:
            return Outcome(None, type(error).__name__, str(error))
        finally:
            timer.cancel()


def in_utc(rows: list[Row]) -> list[Row]:
    """Turn PySpark's timestamps, which are in this computer's time zone, into those of UTC."""
    return [tuple(_in_utc(value) for value in row) for row in rows]


def _in_utc(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.timezone.utc).replace(tzinfo=None)
    return value
