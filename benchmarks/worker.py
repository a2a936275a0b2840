"""
One Spark session in a process of its own, driven by JSON lines.

The parent writes one request a line to standard input and reads one reply a line from standard
output. A process has one profile, so a stock session has no trace of Selinger. `cancel` is obeyed
while a query runs; the end of standard input ends the process.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks import catalog, jvm
from benchmarks.decisions import read_decisions
from benchmarks.profiles import public_text

Request = dict[str, Any]
Reply = dict[str, Any]


class Worker:
    """
    The session and what can be asked of it.

    Parameters
    ----------
    say : callable
        Sends one reply to the parent.
    """

    def __init__(self, say: Callable[[Reply], None]) -> None:
        self.say = say
        self.session: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        """The session; `open` makes it."""
        if self.session is None:
            raise RuntimeError("no session yet: send an open request first")
        return self.session

    def open(self, request: Request) -> Reply:
        """
        Start the session and register the tables.

        Parameters
        ----------
        request : dict
            ``conf``, ``tables`` (path by name), ``analyzed`` (path of the statistics, or None).

        Returns
        -------
        dict
            ``spark`` version and ``startup_s``.
        """
        start = time.perf_counter()
        builder = SparkSession.builder.appName("benchmark")
        for key, value in request["conf"].items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        if request["analyzed"]:
            catalog.register(self.session, request["tables"], Path(request["analyzed"]))
        else:
            for name, path in request["tables"].items():
                self.session.read.parquet(path).createOrReplaceTempView(name)
        settle(self.session)
        return {"spark": self.session.version, "startup_s": time.perf_counter() - start}

    def run(self, request: Request) -> Reply:
        """
        Plan and run one query, and collect all its rows: that is the measured time.

        Parameters
        ----------
        request : dict
            ``sql``; ``rows_to``, a file for the pickled rows, or None; ``details``, whether to
            report plan, metrics and decisions.

        Returns
        -------
        dict
            ``seconds`` in all, ``planning_ms`` of it until the plan was ready, ``rows``,
            ``phases_ms``, ``order_columns``, and the details.
        """
        jvm.collect_garbage(self.spark)
        start = time.perf_counter()
        frame = self.spark.sql(request["sql"])
        jvm.force_planning(frame)
        planned = time.perf_counter()
        rows = frame.collect()
        end = time.perf_counter()
        reply: Reply = {
            "seconds": end - start,
            "planning_ms": (planned - start) * 1000,
            "phases_ms": jvm.phase_times(frame),
            "rows": len(rows),
        }
        if request["rows_to"]:
            with Path(request["rows_to"]).open("wb") as file:
                pickle.dump([tuple(row) for row in rows], file)
            reply["order_columns"] = jvm.order_columns(frame)
        if request["details"]:
            tree = jvm.plan_tree(self.spark, frame)
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                frame.explain()
            plan, decisions = read_decisions(public_text(text.getvalue()))
            reply["plan"] = plan
            reply["decisions"] = decisions
            reply["metrics"] = jvm.metric_sums(self.spark, tree)
            reply["operators"] = jvm.operator_counts(tree)
        return reply

    def plan(self, request: Request) -> Reply:
        """
        Plan one query several times, without running it.

        Parameters
        ----------
        request : dict
            ``sql`` and ``times``.

        Returns
        -------
        dict
            ``planning_ms`` of every time.
        """
        jvm.collect_garbage(self.spark)
        taken = []
        for _ in range(request["times"]):
            start = time.perf_counter()
            jvm.force_planning(self.spark.sql(request["sql"]))
            taken.append((time.perf_counter() - start) * 1000)
        return {"planning_ms": taken}

    def write(self, request: Request) -> Reply:
        """
        Run a query and write its whole result as Parquet, columns named ``c0``, ``c1``, ….

        Parameters
        ----------
        request : dict
            ``sql`` and ``to``, a folder that does not exist.

        Returns
        -------
        dict
            Empty.
        """
        frame = self.spark.sql(request["sql"])
        names = [f"c{number}" for number in range(len(frame.columns))]
        frame.toDF(*names).write.parquet(request["to"])
        return {}

    def answer(self, request: Request) -> None:
        """
        Do what a request asks, and reply with the result or with the error.

        Parameters
        ----------
        request : dict
            ``cmd`` and its arguments.
        """
        commands = {
            "open": self.open,
            "run": self.run,
            "plan": self.plan,
            "write": self.write,
        }
        try:
            reply = commands[request["cmd"]](request)
        except Exception as error:  # noqa: BLE001  # the parent records every failure
            self.say({"ok": False, **describe_error(error)})
        else:
            self.say({"ok": True, **reply})

    def cancel(self) -> None:
        """Cancel whatever runs."""
        if self.session is not None:
            self.session.sparkContext.cancelAllJobs()


def settle(spark: SparkSession) -> None:
    """
    Run a join, an aggregate and a sort over made-up numbers, to load what any first query would.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        The session.

    Examples
    --------
    >>> settle(spark)  # doctest: +SKIP
    """
    sql = """
        SELECT a.id % 1000 AS k, count(*), max(b.s)
        FROM range(1000000) a JOIN (SELECT id, cast(id AS string) AS s FROM range(300000)) b
        ON a.id = b.id GROUP BY 1 ORDER BY 1
    """
    for _ in range(3):
        spark.sql(sql).collect()


def describe_error(error: Exception) -> Reply:
    """
    Sum an error up for the parent.

    Parameters
    ----------
    error : Exception
        What was raised.

    Returns
    -------
    dict
        ``kind`` (Spark's error condition where there is one) and ``error``, the start of its
        message.

    Examples
    --------
    >>> describe_error(ValueError("no"))
    {'kind': 'ValueError', 'error': 'no'}
    """
    condition = getattr(error, "getCondition", lambda: None)()
    return {"kind": condition or type(error).__name__, "error": public_text(str(error))[:2000]}


def main() -> None:
    """Serve requests until standard input ends, which ends the process and its JVM."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the JVM or a library prints must not mix with the replies

    def say(reply: Reply) -> None:
        out.write(json.dumps(reply) + "\n")
        out.flush()

    worker = Worker(say)
    requests: queue.Queue[Request] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            request = json.loads(line)
            if request["cmd"] == "cancel":
                worker.cancel()
            else:
                requests.put(request)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        worker.answer(requests.get())


if __name__ == "__main__":
    main()
