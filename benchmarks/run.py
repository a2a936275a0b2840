"""
Measure the queries of a suite on several kinds of session in turn, and compare their answers.

    python -m benchmarks.run --suite tpcds --sf 10 --queries all --runs 3 --profiles stock,selinger
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.client import Client
from benchmarks.data import make
from benchmarks.duck import SUITES
from benchmarks.kept import read_marker
from benchmarks.measure import Bench
from benchmarks.profiles import NAMES, Profile, make_profile
from benchmarks.progress import Progress, end_cleanly, say
from benchmarks.queries import Query, choose, load_queries
from benchmarks.results import line, output_path, state_path, write_results
from benchmarks.setting import commit, machine, versions
from benchmarks.state import State, configuration_key
from benchmarks.table import results_table
from benchmarks.yardstick import Yardstick


def parser() -> argparse.ArgumentParser:
    """
    Make the parser of the command line.

    Returns
    -------
    argparse.ArgumentParser

    Examples
    --------
    >>> parser().parse_args([]).runs
    3
    """
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("--suite", choices=SUITES, default="tpcds")
    add("--sf", type=float, default=1.0, help="scale factor; data is made if it is not there")
    add("--queries", default="all", help="all, or q01,q05,q20-q29")
    add("--runs", type=int, default=3, help="measured runs of every query and profile")
    add("--warmup", type=int, default=0, help="discarded runs before them")
    add("--settle", type=int, default=0, help="queries run once, unmeasured, before the first")
    add("--planning-runs", type=int, default=5, help="plannings alone, for the planning time")
    add("--profiles", default="stock,selinger", help=f"of {','.join(NAMES)}; the first is the base")
    add("--memory", default="8g", help="heap of every session")
    add("--cores", type=int, default=2, help="threads of every session and of DuckDB")
    add("--duckdb-memory", default="3GB")
    add("--timeout", type=float, default=600.0, help="seconds a query may take")
    add("--remeasure", type=float, help="measure again what has a ratio above this, such as 1.1")
    add("--remeasure-runs", type=int, default=3)
    add("--out", type=Path, help="default: benchmarks/results/<suite>-sf<SF>.json")
    add("--fresh", action="store_true", help="measure all again, even what a killed run has left")
    return made


def configuration(options: argparse.Namespace, profiles: Sequence[Profile]) -> dict[str, Any]:
    """
    State everything that makes measurements comparable.

    Parameters
    ----------
    options : argparse.Namespace
        The command line.
    profiles : sequence of Profile
        What is measured.

    Returns
    -------
    dict

    Examples
    --------
    >>> configuration(parser().parse_args([]), [make_profile("stock")])["runs"]
    3
    """
    return {
        "commit": commit(),
        **versions(),
        "suite": options.suite,
        "scale": options.sf,
        "runs": options.runs,
        "warmup": options.warmup,
        "settle": options.settle,
        "planning_runs": options.planning_runs,
        "timeout_s": options.timeout,
        "machine": machine(),
        "profiles": {
            profile.name: {"conf": profile.public_conf(), "jar_sha256": profile.jar_hash()}
            for profile in profiles
        },
    }


def measure_all(bench: Bench, queries: Sequence[Query], state: State, settle: int) -> None:
    """
    Measure the queries that the state does not have yet.

    Parameters
    ----------
    bench : Bench
        What measures.
    queries : sequence of Query
        All that are wanted.
    state : State
        What is known; every query is added when it is done.
    settle : int
        Queries that are run before, unmeasured.
    """
    left = [query for query in queries if query.name not in state.entries]
    settle_in(bench, left, settle)
    if len(left) < len(queries):
        say(f"going on: {len(queries) - len(left)} of {len(queries)} queries are measured already")
    with Progress(len(left)) as progress:
        for query in left:
            entry = bench.measure(query, queries.index(query))
            state.put(query.name, entry)
            progress.step(line(entry["row"], list(bench.clients)))


def settle_in(bench: Bench, queries: Sequence[Query], number: int) -> None:
    """
    Run some queries, evenly spread over all, on every side without measuring them.

    Parameters
    ----------
    bench : Bench
        What measures.
    queries : sequence of Query
        What is left to measure.
    number : int
        How many to run at most.
    """
    step = max(1, len(queries) // number) if number else 0
    chosen = queries[::step][:number] if step else []
    if not chosen:
        return
    say(f"settling in: {len(chosen)} queries, unmeasured")
    with Progress(len(chosen)) as progress:
        for turn, query in enumerate(chosen):
            bench.run_in_turn(query, turn, 1, 0, details=False)
            progress.step(query.name)


def measure_again(
    bench: Bench, queries: Sequence[Query], state: State, above: float, runs: int
) -> None:
    """
    Measure the queries with a bad ratio again, once.

    Parameters
    ----------
    bench : Bench
        What measures.
    queries : sequence of Query
        All that are wanted.
    state : State
        What is known.
    above : float
        Ratio from which on a query is measured again.
    runs : int
        Runs of it.
    """
    bad = [
        query
        for query in queries
        if "first" not in (row := state.entries[query.name]["row"])
        and (row.get("ratio") or 0.0) > above
    ]
    if not bad:
        return
    say(f"measuring {len(bad)} queries with a ratio above {above} again")
    with Progress(len(bad)) as progress:
        for number_, query in enumerate(bad):
            entry = state.entries[query.name]
            row = bench.remeasure(query, entry["row"], number_, runs)
            state.put(query.name, {**entry, "row": row})
            progress.step(line(row, list(bench.clients)))


def run(options: argparse.Namespace) -> dict[str, Any]:
    """
    Run a benchmark and write its results.

    Parameters
    ----------
    options : argparse.Namespace
        As `parser` gives them.

    Returns
    -------
    dict
        What is written to ``options.out``; the plans and decisions are in the state file beside it.

    Examples
    --------
    >>> run(parser().parse_args(["--sf", "0.01", "--queries", "q03"]))["summary"]  # doctest: +SKIP
    """
    folder = make(options.suite, options.sf)
    queries = choose(load_queries(options.suite), options.queries)
    names = options.profiles.split(",")
    profiles = [make_profile(name, options.memory, options.cores) for name in names]
    out = output_path(options.suite, options.sf, options.out)
    settings = configuration(options, profiles)
    settings["data"] = read_marker(folder)
    state = State(state_path(out), configuration_key(settings), fresh=options.fresh)
    tables = {path.name.removesuffix(".parquet"): str(path) for path in folder.glob("*.parquet")}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as temp:
        work = Path(temp)
        yardstick = Yardstick(folder, options.cores, options.duckdb_memory, work / "duckdb")
        clients = {
            profile.name: Client(profile.with_copied_jars(work), tables, folder / "_analyzed", work)
            for profile in profiles
        }
        bench = Bench(
            clients,
            yardstick,
            work,
            options.runs,
            options.warmup,
            options.planning_runs,
            options.timeout,
        )
        try:
            measure_all(bench, queries, state, options.settle)
            if options.remeasure and len(names) > 1:
                measure_again(bench, queries, state, options.remeasure, options.remeasure_runs)
        finally:
            for client in clients.values():
                client.kill()
            yardstick.close()
    return write_results(out, settings, [state.entries[query.name]["row"] for query in queries])


def main(arguments: list[str] | None = None) -> int:
    """
    Command line.

    Parameters
    ----------
    arguments : list of str or None
        Arguments, by default the process's.

    Returns
    -------
    int
        0 if every query ran everywhere and all answers agree, else 1.

    Examples
    --------
    >>> main(["--sf", "0.01", "--profiles", "stock", "--queries", "q03"])  # doctest: +SKIP
    0
    """
    options = parser().parse_args(arguments)
    end_cleanly()
    results = run(options)
    print(results_table(results["rows"], results["summary"], options.profiles.split(",")))
    print(f"\nwritten to {output_path(options.suite, options.sf, options.out)}")
    return 0 if results["summary"]["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
