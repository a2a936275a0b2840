"""
What Selinger adds to the planning time of each query, once files have been looked at.

Run it with ``python -m benchmarks.plancost --sf 1``, from the root of the repository. A stock
session and one with Selinger, each a process of its own, plan the same queries in turn; nothing
runs. The first round fills caches and warms both up, and is reported apart. In each other round
every query is also planned once with other numbers in its text, if it has any: its tables are
known, but most of its predicates have not been asked for before.

With ``--walks 113``, so many made-up queries of 4 to 17 joins take the place of the suite's, after
others like them have warmed both sides up: most of what they ask of a table is asked for the first
time. Their first round counts.

With ``--suite small``, queries over small tables only, from none to 63 joins, are told apart by how
many joins they have.

With ``--jvms 10``, ten more processes of each side plan one query each, the first of their JVM, as
soon as they have read the schemas of its tables.
"""

import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks import commands
from benchmarks.datasets.duck import SUITES
from benchmarks.datasets.generate import make, table_folders
from benchmarks.datasets.queries import Query, choose, load_queries, with_other_numbers
from benchmarks.datasets.walks import walks
from benchmarks.progress import progress, say
from benchmarks.reporting.figures import Row, percentile, ratio
from benchmarks.reporting.table import number, render
from benchmarks.sessions.client import Client
from benchmarks.sessions.profiles import Profile, make_profile

SIDES = ("stock", "selinger")
KNOWN, NEW = "ms", "new_ms"
TIMEOUT_SECONDS = 120.0
WARM_UP = 20
"""Made-up queries that are planned before those that count."""


def added(row: Row, of: str = KNOWN) -> float:
    """Tell what Selinger adds to the planning of one query, in milliseconds."""
    return float(median(row[f"selinger_{of}"]) - median(row[f"stock_{of}"]))


def summarise(rows: Sequence[Row]) -> Row:
    if not rows:
        return {"queries": 0}
    found = [added(row) for row in rows]
    first = [row["selinger_first_ms"] - row["stock_first_ms"] for row in rows]
    new = [added(row, NEW) for row in rows if row[f"selinger_{NEW}"]]
    return {
        "queries": len(rows),
        "added_ms_median": median(found),
        "added_ms_p95": percentile(found, 0.95),
        "added_ms_max": max(found),
        "total_ratio": sum(median(row["selinger_ms"]) for row in rows)
        / sum(median(row["stock_ms"]) for row in rows),
        "new_queries": len(new),
        "new_added_ms_median": median(new) if new else None,
        "new_added_ms_p95": percentile(new, 0.95) if new else None,
        "first_added_ms_median": median(first),
        "first_added_ms_p95": percentile(first, 0.95),
        "first_plans_stock_ms": sum(row["stock_first_ms"] for row in rows),
        "first_plans_selinger_ms": sum(row["selinger_first_ms"] for row in rows),
        "cpu_ratio": sum(row["selinger_cpu_ms"] for row in rows)
        / sum(row["stock_cpu_ms"] for row in rows),
    }


def by_joins(rows: Sequence[Row], queries: Sequence[Query]) -> Row:
    """Give ratios of processor times of planning: without joins, with one to three, with more."""
    classes: dict[str, list[Row]] = {}
    for row, query in zip(rows, queries, strict=True):
        joins = len(re.findall(r"\b(?:JOIN|EXISTS|IN \(SELECT)\b", query.spark))
        name = "no_join" if joins == 0 else "few_joins" if joins <= 3 else "more_joins"
        classes.setdefault(f"cpu_ratio_{name}", []).append(row)
    return {
        name: sum(row["selinger_cpu_ms"] for row in some) / sum(row["stock_cpu_ms"] for row in some)
        for name, some in classes.items()
    }


def plan_once(client: Client, name: str, sql: str, times: int) -> tuple[float, float]:
    """Tell the time of the quickest of so many plans, and the processor time of the quickest."""
    reply = client.ask({"cmd": "plan", "sql": sql, "times": times}, TIMEOUT_SECONDS)
    if not reply["ok"]:
        raise RuntimeError(f"{name} was not planned by {client.profile.name}: {reply}")
    return float(min(reply["planning_ms"])), float(min(reply["cpu_ms"]))


def measure(
    clients: Mapping[str, Client], queries: Sequence[Query], rounds: int, times: int
) -> list[Row]:
    """Plan all queries on both sides, in turn."""
    rows: list[Row] = [
        {"name": q.name, **{f"{side}_{of}": [] for of in (KNOWN, NEW) for side in SIDES}}
        for q in queries
    ]
    with progress(len(queries) * (rounds + 1)) as done:
        for turn in range(rounds + 1):
            for row, query in zip(rows, queries, strict=True):

                def plan(side: str, sql: str, times: int, name: str = query.name) -> float:
                    return plan_once(clients[side], name, sql, times)[0]

                # Who comes first changes from round to round.
                for side in SIDES if turn % 2 == 0 else reversed(SIDES):
                    if turn == 0:
                        row[f"{side}_first_ms"] = plan(side, query.spark, 1)
                    else:
                        if new := with_other_numbers(query.spark, turn):
                            row[f"{side}_{NEW}"].append(plan(side, new, 1))
                        taken, cpu = plan_once(clients[side], query.name, query.spark, times)
                        row[f"{side}_{KNOWN}"].append(taken)
                        row[f"{side}_cpu_ms"] = min(cpu, row.get(f"{side}_cpu_ms", cpu))
                done(query.name)
    return rows


def first_of_jvms(
    profiles: Sequence[Profile], queries: Sequence[Query], tables: Mapping[str, str], times: int
) -> Row:
    """Plan the first query of so many JVMs of each side, in turn; each time another query."""
    taken: dict[str, list[float]] = {side: [] for side in SIDES}
    for turn in range(times):
        query = queries[len(queries) * turn // times]
        named = {t: path for t, path in tables.items() if re.search(rf"\b{t}\b", query.spark)}
        for profile in profiles if turn % 2 == 0 else reversed(profiles):
            with tempfile.TemporaryDirectory(prefix="selinger-jvm-") as work:
                client = Client(profile, named, None, Path(work), settles=False)
                try:
                    taken[profile.name].append(plan_once(client, query.name, query.spark, 1)[0])
                finally:
                    client.kill()
    more = [ours - stock for stock, ours in zip(*(taken[side] for side in SIDES), strict=True)]
    return {
        "jvms": times,
        **{f"jvm_{side}_ms_median": median(taken[side]) for side in SIDES},
        "jvm_added_ms_median": median(more),
        "jvm_added_ms_max": max(more),
    }


def main(arguments: list[str] | None = None) -> int:
    made = commands.parser("plancost", __doc__)
    commands.add_data(made, *SUITES, "small")
    made.add_argument("--queries", default="all")
    made.add_argument("--walks", type=int, default=0, help="plan so many made-up queries instead")
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--times", type=int, default=3)
    made.add_argument("--jvms", type=int, default=0, help="time the first plans of so many JVMs")
    made.add_argument("--memory", default="4g")
    options = commands.parse(made, arguments)
    if options.rounds < 1:
        made.error("at least one round is needed")
    tables = table_folders(make(options.suite, options.sf))
    if options.walks:
        queries, before = walks(tables, options.walks, seed=1), walks(tables, WARM_UP, seed=2)
    else:
        queries, before = choose(load_queries(options.suite), options.queries), []
    with tempfile.TemporaryDirectory(prefix="selinger-plancost-") as work:
        profiles = [
            make_profile(side, options.memory).with_copied_jar(Path(work)) for side in SIDES
        ]
        clients = {p.name: Client(p, tables, None, Path(work)) for p in profiles}
        try:
            for query in before:
                for client in clients.values():
                    plan_once(client, query.name, query.spark, 1)
            rows = measure(clients, queries, options.rounds, options.times)
        finally:
            for client in clients.values():
                client.kill()
        first = first_of_jvms(profiles, queries, tables, options.jvms) if options.jvms else {}
    for row in rows:
        row["ratio"] = ratio(row["stock_ms"], row["selinger_ms"])
    classes = by_joins(rows, queries) if options.suite == "small" else {}
    summary = {**summarise(rows), **classes, **first}
    cells = [
        [
            row["name"],
            *(number(median(row[f"{side}_ms"]), 1) for side in SIDES),
            f"{added(row):+.1f}",
            f"{added(row, NEW):+.1f}" if row[f"selinger_{NEW}"] else "",
        ]
        for row in sorted(rows, key=added, reverse=True)[:10]
    ]
    print(render(["query", "stock, ms", "Selinger, ms", "added, ms", "new numbers"], cells))
    say(
        f"{summary['queries']} queries, files known: {summary['added_ms_median']:+.1f} ms added in "
        f"the median, {summary['added_ms_p95']:+.1f} at the 95th percentile, "
        f"{summary['added_ms_max']:+.1f} at most; planning takes {summary['total_ratio']:.2f} "
        f"times as long, and {summary['cpu_ratio']:.2f} times the processor time"
    )
    say(
        f"planned for the first time: {summary['first_added_ms_median']:+.1f} ms added in the "
        f"median, {summary['first_added_ms_p95']:+.1f} at the 95th percentile; "
        f"{summary['first_plans_stock_ms'] / 1000:.1f} s -> "
        f"{summary['first_plans_selinger_ms'] / 1000:.1f} s in all"
    )
    if summary["new_queries"]:
        say(
            f"{summary['new_queries']} queries with other numbers: "
            f"{summary['new_added_ms_median']:+.1f} ms in the median, "
            f"{summary['new_added_ms_p95']:+.1f} at the 95th percentile"
        )
    if classes:
        say(
            "processor time of planning, as many times stock Spark's: "
            f"{classes['cpu_ratio_no_join']:.2f} without joins, "
            f"{classes['cpu_ratio_few_joins']:.2f} with one to three, "
            f"{classes['cpu_ratio_more_joins']:.2f} with more"
        )
    if first:
        say(
            f"first plans of {first['jvms']} JVMs: {first['jvm_added_ms_median']:+.0f} ms in "
            f"the median, {first['jvm_added_ms_max']:+.0f} at most; stock Spark takes "
            f"{first['jvm_stock_ms_median']:.0f}"
        )
    commands.finish("walks" if options.walks else "plancost", options, rows, summary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
