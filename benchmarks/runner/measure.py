"""Measuring one query: all profiles in turn, their plans, their answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
from selinger._plan import same_plan
from selinger._verdict import is_clear
from selinger.explain import parse, physical_plan

from benchmarks.datasets.queries import Query, without_limit
from benchmarks.reporting.figures import rate
from benchmarks.runner.judge import DUCKDB, Answer, Writer, judge, read_rows, sum_up_answers
from benchmarks.runner.yardstick import Yardstick
from benchmarks.sessions.client import Client


@dataclass
class Runs:
    """What one profile did with one query."""

    seconds: list[float] = field(default_factory=list)
    planning_ms: list[float] = field(default_factory=list)
    first: dict[str, Any] = field(default_factory=dict)
    failure: str = ""


@dataclass
class Bench:
    """Everything that measures: the workers, DuckDB, and how often."""

    clients: Mapping[str, Client]
    yardstick: Yardstick
    work: Path
    runs: int = 3
    planning_runs: int = 5
    timeout: float = 600.0
    until_clear: bool = False

    def measure(self, query: Query, turn: int) -> dict[str, Any]:
        found = self.run_in_turn(query, turn, self.runs, details=True)
        self.plan(query, found)
        row: dict[str, Any] = {"name": query.name}
        failures = {name: runs.failure for name, runs in found.items() if runs.failure}
        for name, runs in found.items():
            row[f"{name}_s"] = runs.seconds
            if runs.planning_ms:
                row[f"planning_{name}_ms"] = median(runs.planning_ms[-self.planning_runs :])
        answers = {
            name: Answer(
                read_rows(self._rows_file(name)),
                _writer(query.spark, partial(self._write_spark, name)),
                tuple(runs.first["order_columns"]),
            )
            for name, runs in found.items()
            if not runs.failure
        }
        joined = {}
        try:
            row["duckdb_s"], rows = self.yardstick.run(query.duckdb, self.timeout)
            answers[DUCKDB] = Answer(rows, _writer(query.duckdb, self._write_duckdb))
            joined = {"rows_out_of_joins": self.yardstick.join_rows(query.duckdb, self.timeout)}
        except duckdb.Error as error:
            failures[DUCKDB] = str(error)[:500]
        row |= rate(row, list(self.clients))
        row |= sum_up_answers(answers, judge(answers, self.work), failures)
        row["same_plan"] = ran_same_plan(found)
        row["metrics"] = {name: runs.first.get("metrics", {}) for name, runs in found.items()}
        row["metrics"][DUCKDB] = joined
        details = {
            name: {"explained": runs.first["explained"], "tree": runs.first["tree"]}
            for name, runs in found.items()
            if runs.first
        }
        return {"row": row, "details": details}

    def run_in_turn(self, query: Query, turn: int, runs: int, *, details: bool) -> dict[str, Runs]:
        """
        Run a query on every profile, one after the other, again and again.

        Until it is clear what can be said of the times: after a run that is not measured, and with
        so many runs at most.
        """
        found = {name: Runs() for name in self.clients}
        warms_up = self.until_clear and details
        for number in range(runs + warms_up):
            names = list(self.clients)
            if (number + turn) % 2:
                names.reverse()
            for name in names:
                if not found[name].failure:
                    self._run_once(query, name, found[name], details and number == 0)
            if warms_up and number == 0:
                for one in found.values():
                    one.seconds, one.planning_ms = [], []
            elif (
                self.until_clear
                and len(found) > 1
                and (ran_same_plan(found) or is_clear(*_ends(found)))
            ):
                break
        return found

    def plan(self, query: Query, found: Mapping[str, Runs]) -> None:
        """Plan a query alone, several times on every profile that finished it."""
        for name, runs in found.items():
            if runs.failure or self.planning_runs == 0:
                continue
            request = {"cmd": "plan", "sql": query.spark, "times": self.planning_runs}
            reply = self.clients[name].ask(request, self.timeout)
            if reply["ok"]:
                runs.planning_ms += reply["planning_ms"]

    def remeasure(self, query: Query, row: dict[str, Any], turn: int, runs: int) -> dict[str, Any]:
        """Measure a query's times again; the old ones are kept under ``first``."""
        names = list(self.clients)
        found = self.run_in_turn(query, turn, runs, details=False)
        if any(found[name].failure for name in names):
            return {**row, "remeasuring_failed": {n: found[n].failure for n in names}}
        kept = [f"{name}_s" for name in names] + ["ratio", "ratio_spread"]
        again = {**row, "first": {key: row[key] for key in kept if key in row}}
        for name in names:
            again[f"{name}_s"] = found[name].seconds
        return again | rate(again, names)

    def _run_once(self, query: Query, name: str, runs: Runs, details: bool) -> None:
        request = {
            "cmd": "run",
            "sql": query.spark,
            "details": details,
            "rows_to": str(self._rows_file(name)) if details else None,
        }
        reply = self.clients[name].ask(request, self.timeout)
        if not reply["ok"]:
            runs.failure = f"{reply['kind']}: {reply['error']}"[:500]
        else:
            runs.seconds.append(reply["seconds"])
            runs.planning_ms.append(reply["planning_ms"])
            if details:
                runs.first = reply

    def _rows_file(self, name: str) -> Path:
        return self.work / f"{name}.rows"

    def _write_spark(self, name: str, sql: str, to: Path) -> bool:
        request = {"cmd": "write", "sql": sql, "to": str(to)}
        return bool(self.clients[name].ask(request, 3 * self.timeout)["ok"])

    def _write_duckdb(self, sql: str, to: Path) -> bool:
        try:
            self.yardstick.write(sql, to, 3 * self.timeout)
        except duckdb.Error:
            return False
        return True


def ran_same_plan(found: Mapping[str, Runs]) -> bool | None:
    """Tell whether the first and the last profile ran the same plan; None if that is not known."""
    texts = [runs.first.get("explained", "") for runs in found.values()]
    if not (texts[0] and texts[-1]):
        return None
    explained = parse(texts[-1])
    decisions = explained.decisions if explained else ()
    changed = any(one.outcome == "changed" for one in decisions)
    return same_plan(physical_plan(texts[0]), physical_plan(texts[-1]), changed=changed)


def _is_told(found: Mapping[str, Runs]) -> bool:
    """Tell whether more runs would say no more; of a single side, they do."""
    return len(found) > 1 and (ran_same_plan(found) or is_clear(*_ends(found)))


def _ends(found: Mapping[str, Runs]) -> tuple[list[float], list[float]]:
    times = [runs.seconds for runs in found.values()]
    return times[0], times[-1]


def _writer(sql: str, write: Callable[[str, Path], bool]) -> Writer | None:
    whole = without_limit(sql)
    return None if whole is None else partial(write, whole)
