"""
What Selinger adds to the planning time of each query, once files have been looked at.

Run it with ``python -m benchmarks.plancost --sf 1``, from the root of the repository. A stock
session and one with Selinger, each a process of its own, plan the same queries in turn; nothing
runs. The first round fills caches and warms both up, and is reported apart.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks import micro
from benchmarks.client import Client
from benchmarks.data import make
from benchmarks.duck import SUITES
from benchmarks.paths import scale_text
from benchmarks.profiles import make_profile
from benchmarks.progress import Progress, say
from benchmarks.queries import choose, load_queries
from benchmarks.table import render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.queries import Query

SIDES = ("stock", "selinger")
TIMEOUT_SECONDS = 120.0


def added(row: Mapping[str, Any]) -> float:
    """
    Tell what Selinger adds to the planning of one query.

    Parameters
    ----------
    row : mapping
        ``stock_ms`` and ``selinger_ms``, one time a round.

    Returns
    -------
    float
        Milliseconds, the difference of the medians.

    Examples
    --------
    >>> added({"stock_ms": [20.0, 22.0, 30.0], "selinger_ms": [30.0, 29.0, 25.0]})
    7.0
    """
    return float(median(row["selinger_ms"]) - median(row["stock_ms"]))


def quantile(values: Sequence[float], share: float) -> float:
    """
    Give the value that a share of all does not exceed (nearest rank).

    Parameters
    ----------
    values : sequence of float
        In any order, at least one.
    share : float
        Above 0, at most 1.

    Returns
    -------
    float

    Examples
    --------
    >>> quantile([5.0, 1.0, 3.0, 2.0], 0.5), quantile([5.0, 1.0], 0.95)
    (2.0, 5.0)
    """
    ranked = sorted(values)
    return ranked[max(0, -int(-share * len(ranked) // 1) - 1)]


def summarise(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """
    Sum all queries up.

    Parameters
    ----------
    rows : sequence of mapping
        ``stock_ms`` and ``selinger_ms``, one time a round; ``stock_first_ms`` and
        ``selinger_first_ms``.

    Returns
    -------
    dict
        Added milliseconds of a query: ``added_ms_median``, ``added_ms_p95``, ``added_ms_max``;
        ``ratio_median`` of planning times, and the ``ratio_spread`` of its rounds; what the first
        plannings of all queries took on either side.

    Examples
    --------
    >>> row = {"stock_ms": [10.0], "selinger_ms": [15.0]}
    >>> first = {"stock_first_ms": 40.0, "selinger_first_ms": 90.0}
    >>> summarise([{**row, **first}])["added_ms_median"]
    5.0
    """
    if not rows:
        return {"queries": 0}
    found = [added(row) for row in rows]
    rounds = range(min(len(row["stock_ms"]) for row in rows))
    ratios = [median(row["selinger_ms"][i] / row["stock_ms"][i] for row in rows) for i in rounds]
    return {
        "queries": len(rows),
        "added_ms_median": median(found),
        "added_ms_p95": quantile(found, 0.95),
        "added_ms_max": max(found),
        "ratio_median": median(ratios),
        "ratio_spread": [min(ratios), max(ratios)],
        "first_plans_stock_ms": sum(row["stock_first_ms"] for row in rows),
        "first_plans_selinger_ms": sum(row["selinger_first_ms"] for row in rows),
    }


def plan_once(client: Client, query: Query, times: int) -> float:
    """
    Have one side plan a query.

    Parameters
    ----------
    client : Client
        The side.
    query : Query
        The query.
    times : int
        How often; the fastest counts, since whatever disturbs only ever adds.

    Returns
    -------
    float
        Milliseconds.

    Raises
    ------
    RuntimeError
        If it cannot be planned.

    Examples
    --------
    >>> plan_once(client, query, 3)  # doctest: +SKIP
    """
    reply = client.ask({"cmd": "plan", "sql": query.spark, "times": times}, TIMEOUT_SECONDS)
    if not reply["ok"]:
        raise RuntimeError(f"{query.name} was not planned by {client.profile.name}: {reply}")
    return float(min(reply["planning_ms"]))


def measure(
    clients: Mapping[str, Client], queries: Sequence[Query], rounds: int, times: int
) -> list[dict[str, Any]]:
    """
    Plan all queries on both sides, in turn.

    Parameters
    ----------
    clients : mapping of str to Client
        By side.
    queries : sequence of Query
        What to plan.
    rounds : int
        After the first one.
    times : int
        Plannings of a query in each of them.

    Returns
    -------
    list of dict
        One row a query.

    Examples
    --------
    >>> measure(clients, queries, 3, 3)  # doctest: +SKIP
    """
    rows: list[dict[str, Any]] = [
        {"name": query.name, "stock_ms": [], "selinger_ms": []} for query in queries
    ]
    with Progress(len(queries) * (rounds + 1)) as progress:
        for turn in range(rounds + 1):
            for row, query in zip(rows, queries, strict=True):
                # Who comes first changes from round to round.
                for side in SIDES if turn % 2 == 0 else reversed(SIDES):
                    if turn == 0:
                        row[f"{side}_first_ms"] = plan_once(clients[side], query, 1)
                    else:
                        row[f"{side}_ms"].append(plan_once(clients[side], query, times))
                progress.step(query.name)
    return rows


def main() -> None:
    """Measure, print a table, and write ``benchmarks/results/plancost-<suite>-sf<SF>.json``."""
    parser = argparse.ArgumentParser(description="Planning time that Selinger adds.")
    parser.add_argument("--suite", choices=SUITES, default="tpcds")
    parser.add_argument("--sf", type=float, default=1)
    parser.add_argument("--queries", default="all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--memory", default="4g")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("at least one round is needed")
    folder = make(options.suite, options.sf)
    tables = {path.name.removesuffix(".parquet"): str(path) for path in folder.glob("*.parquet")}
    queries = choose(load_queries(options.suite), options.queries)
    with tempfile.TemporaryDirectory(prefix="selinger-plancost-") as work:
        profiles = [
            make_profile(side, options.memory).with_copied_jars(Path(work)) for side in SIDES
        ]
        clients = {p.name: Client(p, tables, None, Path(work)) for p in profiles}
        try:
            rows = measure(clients, queries, options.rounds, options.times)
            version = clients["selinger"].spark_version
        finally:
            for client in clients.values():
                client.kill()
    summary = summarise(rows)
    data = f"{options.suite} sf {scale_text(options.sf)}"
    micro.write(
        f"plancost-{options.suite}-sf{scale_text(options.sf)}", version, data, rows, summary
    )
    worst = sorted(rows, key=added, reverse=True)[:10]
    cells = [
        [
            row["name"],
            f"{median(row['stock_ms']):.1f}",
            f"{median(row['selinger_ms']):.1f}",
            f"{added(row):+.1f}",
        ]
        for row in worst
    ]
    print(render(["query", "stock, ms", "Selinger, ms", "added, ms"], cells))
    say(
        f"{summary['queries']} queries, files known: {summary['added_ms_median']:+.1f} ms added in "
        f"the median, {summary['added_ms_p95']:+.1f} at the 95th percentile, "
        f"{summary['added_ms_max']:+.1f} at most; planning takes {summary['ratio_median']:.2f} "
        f"times as long"
    )


if __name__ == "__main__":
    main()
