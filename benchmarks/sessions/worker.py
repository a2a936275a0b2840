"""
One Spark session in a process of its own, driven by JSON lines.

The parent writes one request a line to standard input and reads one reply a line from standard
output. A process has one profile, so a stock session has no trace of Selinger. `cancel` is obeyed
while a query runs; the end of standard input ends the process.
"""

import json
import os
import pickle
import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from selinger.explain import printed_plan

from benchmarks.paths import public_text
from benchmarks.sessions import jvm

Request = dict[str, Any]
Reply = dict[str, Any]


class Worker:
    """The session and what can be asked of it."""

    session: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        if self.session is None:
            raise RuntimeError("no session yet: send an open request first")
        return self.session

    def open(self, request: Request) -> Reply:
        builder = SparkSession.builder.appName("benchmark").config(map=request["conf"])
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        if request["analyzed"]:
            jvm.register(self.session, request["tables"], Path(request["analyzed"]))
        else:
            for name, path in request["tables"].items():
                self.session.read.parquet(path).createOrReplaceTempView(name)
        if request["settle"]:
            settle(self.session)
        return {}

    def run(self, request: Request) -> Reply:
        """Plan and run one query, and collect all its rows: that is the measured time."""
        jvm.collect_garbage(self.spark)
        start = time.perf_counter()
        frame = self.spark.sql(request["sql"])
        jvm.force_planning(frame)
        planned = time.perf_counter()
        rows = frame.collect()
        end = time.perf_counter()
        reply: Reply = {"seconds": end - start, "planning_ms": (planned - start) * 1000}
        if request["rows_to"]:
            with Path(request["rows_to"]).open("wb") as file:
                pickle.dump([tuple(row) for row in rows], file)
            reply["order_columns"] = jvm.order_columns(frame)
        if request["details"]:
            tree = jvm.plan_tree(self.spark, frame)
            reply["explained"] = public_text(printed_plan(frame))
            reply["metrics"] = jvm.metric_sums(self.spark, tree)
            reply["tree"] = jvm.drawn(self.spark, tree)
        return reply

    def plan(self, request: Request) -> Reply:
        """Plan one query several times, without running it."""
        jvm.collect_garbage(self.spark)
        taken, worked = [], []
        for _ in range(request["times"]):
            start, work = time.perf_counter(), jvm.thread_ms(self.spark)
            jvm.force_planning(self.spark.sql(request["sql"]))
            taken.append((time.perf_counter() - start) * 1000)
            worked.append(jvm.thread_ms(self.spark) - work)
        return {"planning_ms": taken, "cpu_ms": worked}

    def write(self, request: Request) -> Reply:
        """Run a query and write its whole result as Parquet, columns named ``c0``, ``c1``, …."""
        frame = self.spark.sql(request["sql"])
        names = [f"c{number}" for number in range(len(frame.columns))]
        frame.toDF(*names).write.parquet(request["to"])
        return {}

    def answer(self, request: Request) -> Reply:
        """Do what a request asks, and reply with the result or with the error."""
        commands = {"open": self.open, "run": self.run, "plan": self.plan, "write": self.write}
        try:
            return {"ok": True, **commands[request["cmd"]](request)}
        except Exception as error:  # noqa: BLE001  # the parent records every failure
            condition = getattr(error, "getCondition", lambda: None)()
            text = public_text(str(error))[:2000]
            return {"ok": False, "kind": condition or type(error).__name__, "error": text}

    def cancel(self) -> None:
        if self.session is not None:
            self.session.sparkContext.cancelAllJobs()


def settle(spark: SparkSession) -> None:
    """Run a join, an aggregate and a sort over made-up numbers, which loads many classes."""
    sql = """
        SELECT a.id % 1000 AS k, count(*), max(b.s)
        FROM range(1000000) a JOIN (SELECT id, cast(id AS string) AS s FROM range(300000)) b
        ON a.id = b.id GROUP BY 1 ORDER BY 1
    """
    for _ in range(3):
        spark.sql(sql).collect()


def main() -> None:
    """Serve requests until standard input ends, which ends the process and its JVM."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the JVM or a library prints must not mix with the replies
    worker = Worker()
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
        out.write(json.dumps(worker.answer(requests.get())) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
