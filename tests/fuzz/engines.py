"""Sessions of Spark and DuckDB, and what a query answers there."""

from __future__ import annotations

import datetime as dt
import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from selinger._plan import normalised

from tests.fuzz.data import Table, arrow_table, ddl, write_files
from tests.fuzz.options import BASE, Conf
from tests.fuzz.verdict import CANCELLED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]

#: A query that takes longer is stopped.
TIMEOUT_S = 60.0
#: A query that runs on although it was stopped loops where nothing can stop it: the JVM is ended.
LOST_S = 3 * TIMEOUT_S
#: What is raised where the JVM has ended, or was ended.
LOST_ERRORS = (Py4JError, ConnectionError)


def is_lost(error: Exception) -> bool:
    """Tell whether an error is none of the JVM's own, but that of a connection to it."""
    return isinstance(error, LOST_ERRORS) and not isinstance(error, Py4JJavaError)


@dataclass
class Outcome:
    """What a query answered: rows, or an error.

    Attributes
    ----------
    rows : list of tuples or None
        The rows in the order in which they came; None after an error.
    error : str
        The condition of the error, or its class; several with "and" between them where several
        stages have failed; empty if there was none.
    message : str
        What the error says.
    plan : str
        The plans, before and after adaptive changes, without numbers that change every time.
    executed : JavaObject or None
        The plan as the JVM has it.
    timed_out : bool
        Whether it was stopped because it took too long.
    skipped : bool
        Whether it is another run's answer: the same plan need not run again.
    """

    rows: list[Row] | None
    error: str = ""
    message: str = ""
    plan: str = ""
    executed: Any = None
    timed_out: bool = False
    skipped: bool = False


#: Short files of Hadoop's settings: see `core-default.xml`.
HADOOP = Path(__file__).resolve().parents[1] / "hadoop"


def open_spark(
    memory: str = "2g", extra: Mapping[str, str] | None = None, *, is_long: bool = False
) -> SparkSession:
    """Open a session with Selinger for many small queries.

    In a short campaign almost nothing runs often enough to repay the second compiler, which took
    a quarter of all time.
    """
    import selinger
    from pyspark.sql import SparkSession

    compiler = "" if is_long else " -XX:TieredStopAtLevel=1"
    conf = {
        **BASE,
        "spark.driver.memory": memory,
        # A heap and a metaspace that grow by full collections took time.
        "spark.driver.extraJavaOptions": f"-XX:ReservedCodeCacheSize=512m -Xss4m -Xms{memory} "
        f"-XX:MetaspaceSize=512m -XX:NewRatio=1{compiler}",
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
        # Each scan broadcasts Hadoop's settings, of which few are needed; and the data is small.
        "spark.driver.extraClassPath": str(HADOOP),
        "spark.broadcast.compress": "false",
        "spark.shuffle.compress": "false",
        "spark.sql.maxPlanStringLength": "1000000",
        "spark.sql.debug.maxToStringFields": "1000",
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
        self._runs = 0
        # Explain reads the settings of the thread's session.
        jvm: Any = self.session.sparkContext._jvm
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self.session._jsparkSession)
        for key, value in BASE.items():
            self.session.conf.set(key, value)

    def close(self) -> None:
        """Remove the views and the files."""
        with suppress(Exception):  # the JVM may be gone
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
        # Which of Spark's two readers of files it gets is decided here, not when it is queried.
        self._apply({"spark.sql.sources.useV1SourceList": ""} if table.v2 else {})
        reader = self.session.read.schema(ddl(table)).format(table.source)
        reader.load(str(path)).createOrReplaceTempView(table.name)
        self._views.add(table.name)

    def run(self, text: str, conf: Conf, known: Outcome | None = None) -> Outcome:
        """Run a query under some settings.

        Parameters
        ----------
        text : str
            The query.
        conf : dict
            All settings that differ from those of the session.
        known : Outcome, optional
            Another run's answer, which stands if its plan comes out again. Only for plans that
            do not change while they run.
        """
        self._apply(conf)
        if self._rewrite is not None and conf.get("spark.selinger.mode") != "off":
            text = self._rewrite(text)
        context = self.session.sparkContext
        # Jobs that start after a group was cancelled are refused too, so each run has its own.
        self._runs += 1
        group = f"fuzz-{id(self)}-{self._runs}"
        context.setJobGroup(group, "fuzz", interruptOnCancel=True)
        stopped = Event()

        def stop() -> None:
            stopped.set()
            context._jsc.sc().cancelJobGroupAndFutureJobs(group)

        timers = [Timer(TIMEOUT_S, stop), Timer(LOST_S, context._gateway.proc.kill)]
        for timer in timers:
            timer.daemon = True
            timer.start()
        try:
            return self._answer(text, known)
        except Exception as error:
            if is_lost(error):
                raise
            return Outcome(None, *condition_of(error), timed_out=stopped.is_set())
        finally:
            for timer in timers:
                timer.cancel()

    def _answer(self, text: str, known: Outcome | None) -> Outcome:
        frame = self.session.sql(text)
        # The plan alone: the whole explain text would be made, sent and parsed for every run.
        executed = frame._jdf.queryExecution().executedPlan()
        if known is not None and _is_plan_of(known, executed):
            return replace(known, skipped=True)
        rows = [tuple(row) for row in frame.collect()]
        return Outcome(rows, plan=_plan(executed.toString()), executed=executed)

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


def _is_plan_of(known: Outcome, executed: Any) -> bool:
    # The text leaves out which of two columns of one name is meant; Spark compares them.
    same_text = _plan(executed.toString()) == known.plan
    return same_text and bool(executed.sameResult(known.executed))


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
    if _SEVERAL in (condition, *_NAMED.findall(text)):
        thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        if thrown is not None:
            return " and ".join(sorted(failures_of(thrown))), text[:2000]
    if condition:
        return str(condition), text
    causes = _CAUSE.findall(str(error))
    # A thread that builds a broadcast side wraps the error, which PySpark does not look into.
    named = [condition for _, condition in causes if condition]
    if named:
        return named[-1], text[:2000]
    return (causes[-1][0] if causes else type(error).__name__), text[:2000]


def failures_of(thrown: Any) -> set[str]:
    """Name a JVM's error; one that stands for several failures by the names of all of them."""
    named = _NAMED.search(str(thrown.toString()))
    cause = thrown.getCause()
    if named and named.group(1) == _SEVERAL:
        # The first failure is the cause, and Spark adds the others as suppressed errors.
        several = [each for each in (cause, *thrown.getSuppressed()) if each is not None]
        names = {name for each in several for name in failures_of(each)}
        return names - CANCELLED or names or {_SEVERAL}
    if named:
        return {named.group(1)}
    return failures_of(cause) if cause is not None else {str(thrown.getClass().getName())}


#: Several stages failed before the first error was seen.
_SEVERAL = "STAGE_MATERIALIZATION_MULTIPLE_FAILURES"
_NAMED = re.compile(r"(?:^|: )\[([A-Z_][\w.]+)\]")

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
