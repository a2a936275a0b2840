"""
What Selinger adds to the planning time of each query, once files have been looked at.

Run it with ``python -m benchmarks.plancost --sf 1``, from the root of the repository. A stock
session and one with Selinger, each a process of its own, plan the same queries in turn; nothing
runs. The first round fills caches and warms both up, and is reported apart. In each other round
every query is also planned once with other numbers in its text: a query whose tables are known,
but whose predicates nobody has asked for before.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks import commands
from benchmarks.datasets.generate import make, table_folders
from benchmarks.datasets.queries import Query, choose, load_queries, with_other_numbers
from benchmarks.progress import progress, say
from benchmarks.reporting.figures import Row, percentile, ratio
from benchmarks.reporting.table import number, render
from benchmarks.sessions.client import Client
from benchmarks.sessions.profiles import make_profile

SIDES = ("stock", "selinger")
KNOWN, NEW = "ms", "new_ms"
TIMEOUT_SECONDS = 120.0


def added(row: Row, of: str = KNOWN) -> float:
    """Tell what Selinger adds to the planning of one query, in milliseconds."""
    return float(median(row[f"selinger_{of}"]) - median(row[f"stock_{of}"]))


def summarise(rows: Sequence[Row]) -> Row:
    if not rows:
        return {"queries": 0}
    found, new = ([added(row, of) for row in rows] for of in (KNOWN, NEW))
    return {
        "queries": len(rows),
        "added_ms_median": median(found),
        "added_ms_p95": percentile(found, 0.95),
        "added_ms_max": max(found),
        "total_ratio": sum(median(row["selinger_ms"]) for row in rows)
        / sum(median(row["stock_ms"]) for row in rows),
        "new_added_ms_median": median(new),
        "new_added_ms_p95": percentile(new, 0.95),
        "first_plans_stock_ms": sum(row["stock_first_ms"] for row in rows),
        "first_plans_selinger_ms": sum(row["selinger_first_ms"] for row in rows),
    }


def plan_once(client: Client, query: Query, times: int, more: int = 0) -> float:
    sql = with_other_numbers(query.spark, more) if more else query.spark
    reply = client.ask({"cmd": "plan", "sql": sql, "times": times}, TIMEOUT_SECONDS)
    if not reply["ok"]:
        raise RuntimeError(f"{query.name} was not planned by {client.profile.name}: {reply}")
    return float(min(reply["planning_ms"]))


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
                # Who comes first changes from round to round.
                for side in SIDES if turn % 2 == 0 else reversed(SIDES):
                    if turn == 0:
                        row[f"{side}_first_ms"] = plan_once(clients[side], query, 1)
                    else:
                        new = plan_once(clients[side], query, 1, more=turn)
                        row[f"{side}_{NEW}"].append(new)
                        row[f"{side}_{KNOWN}"].append(plan_once(clients[side], query, times))
                done(query.name)
    return rows


def main(arguments: list[str] | None = None) -> int:
    made = commands.parser("plancost", __doc__)
    commands.add_data(made)
    made.add_argument("--queries", default="all")
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--times", type=int, default=3)
    made.add_argument("--memory", default="4g")
    options = commands.parse(made, arguments)
    if options.rounds < 1:
        made.error("at least one round is needed")
    tables = table_folders(make(options.suite, options.sf))
    queries = choose(load_queries(options.suite), options.queries)
    with tempfile.TemporaryDirectory(prefix="selinger-plancost-") as work:
        profiles = [
            make_profile(side, options.memory).with_copied_jar(Path(work)) for side in SIDES
        ]
        clients = {p.name: Client(p, tables, None, Path(work)) for p in profiles}
        try:
            rows = measure(clients, queries, options.rounds, options.times)
        finally:
            for client in clients.values():
                client.kill()
    for row in rows:
        row["ratio"] = ratio(row["stock_ms"], row["selinger_ms"])
    summary = summarise(rows)
    cells = [
        [
            row["name"],
            *(number(median(row[f"{side}_ms"]), 1) for side in SIDES),
            f"{added(row):+.1f}",
            f"{added(row, NEW):+.1f}",
        ]
        for row in sorted(rows, key=added, reverse=True)[:10]
    ]
    print(render(["query", "stock, ms", "Selinger, ms", "added, ms", "new numbers"], cells))
    say(
        f"{summary['queries']} queries, files known: {summary['added_ms_median']:+.1f} ms added in "
        f"the median, {summary['added_ms_p95']:+.1f} at the 95th percentile, "
        f"{summary['added_ms_max']:+.1f} at most; planning takes {summary['total_ratio']:.2f} "
        f"times as long. With other numbers in the queries: {summary['new_added_ms_median']:+.1f} "
        f"and {summary['new_added_ms_p95']:+.1f} ms"
    )
    commands.finish("plancost", options, rows, summary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
