"""
Measure the queries of a suite on several kinds of session in turn, and compare their answers.

    python -m benchmarks.run --suite tpcds --sf 10 --queries all --runs 3 --profiles stock,selinger

Every query is kept as soon as it is measured. The same command goes on with a run that was killed,
and measures queries again that failed, which the published figures tell;
`python -m benchmarks.publish tpcds-sf10` publishes one that is complete.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import commands
from benchmarks.datasets.duck import SUITES
from benchmarks.datasets.generate import make, read_marker, table_folders
from benchmarks.datasets.layouts import LAYOUTS
from benchmarks.datasets.own import OWN
from benchmarks.datasets.queries import Query, choose, load_queries
from benchmarks.paths import GENERATED, RESULTS, data_name, public_text
from benchmarks.progress import progress, say
from benchmarks.reporting.page import write_report
from benchmarks.reporting.results import of_run, save
from benchmarks.reporting.state import State, configuration_key, open_state, state_path
from benchmarks.reporting.table import progress_line, results_table
from benchmarks.runner.measure import Bench
from benchmarks.runner.yardstick import Yardstick
from benchmarks.sessions.client import Client
from benchmarks.sessions.profiles import NAMES, Profile, make_profile


def parser(
    name: str = "run", description: str | None = __doc__, *, publishes: bool = True
) -> argparse.ArgumentParser:
    made = commands.parser(name, description, publishes=publishes)
    commands.add_data(made, *SUITES, *OWN)
    add = made.add_argument
    add("--layout", choices=LAYOUTS, default=GENERATED, help="how rows lie in files")
    add("--queries", default="all", help="all, q01,q05,q20-q29, or every:3")
    add("--runs", type=int, default=3, help="measured runs of every query and profile")
    add("--until-clear", action="store_true", help="warm up, and stop when the verdict is clear")
    add("--settle", type=int, default=0, help="queries run once, unmeasured, before the first")
    add("--planning-runs", type=int, default=5, help="plannings alone, for the planning time")
    add("--profiles", default="stock,selinger", help=f"of {','.join(NAMES)}; the first is the base")
    add("--memory", default="8g", help="heap of every session")
    add("--cores", type=int, default=2, help="threads of every session and of DuckDB")
    add("--partitions", default="16", help="shuffle partitions of every session, or default")
    add("--duckdb-memory", default="3GB")
    add("--timeout", type=float, default=600.0, help="seconds a query may take")
    add("--remeasure", type=float, help="measure again what has a ratio above this, such as 1.1")
    add("--remeasure-runs", type=int, default=3)
    add("--out", type=Path, help="default: benchmarks/results/<suite>-sf<SF>.json")
    add("--fresh", action="store_true", help="measure all again, even what a killed run has left")
    return made


def configuration(
    options: argparse.Namespace, profiles: Sequence[Profile], data: dict[str, Any]
) -> dict[str, Any]:
    """State everything that makes measurements comparable."""
    return {
        "suite": options.suite,
        "scale": options.sf,
        "layout": options.layout,
        "suite_queries": len(load_queries(options.suite)),
        "runs": options.runs,
        "until_clear": options.until_clear,
        "settle": options.settle,
        "planning_runs": options.planning_runs,
        "timeout_s": options.timeout,
        "data": data,
        "profiles": {
            profile.name: {"conf": profile.public_conf(), "jar_sha256": profile.jar_hash()}
            for profile in profiles
        },
    }


def measure_all(bench: Bench, queries: Sequence[Query], state: State, settle: int) -> None:
    """Measure the queries that the state does not have yet, and again those that failed."""
    rows = {name: entry["row"] for name, entry in state.entries.items()}
    left = [query for query in queries if rows.get(query.name, {"failures": 1}).get("failures")]
    settle_in(bench, left, settle)
    if len(left) < len(queries):
        say(f"going on: {len(queries) - len(left)} of {len(queries)} queries are measured already")
    with progress(len(left)) as done:
        for query in left:
            entry = bench.measure(query, queries.index(query))
            if query.name in rows:
                entry["row"]["failed_before"] = rows[query.name]["failures"]
            state.put(query.name, entry)
            done(progress_line(entry["row"], list(bench.clients)))


def settle_in(bench: Bench, queries: Sequence[Query], number: int) -> None:
    """Run some queries, evenly spread over all, on every side without measuring them."""
    step = max(1, len(queries) // number) if number else 0
    chosen = queries[::step][:number] if step else []
    if not chosen:
        return
    say(f"settling in: {len(chosen)} queries, unmeasured")
    with progress(len(chosen)) as done:
        for turn, query in enumerate(chosen):
            bench.run_in_turn(query, turn, 1, details=False)
            done(query.name)


def measure_again(
    bench: Bench, queries: Sequence[Query], state: State, above: float, runs: int
) -> None:
    """Measure the queries with a bad ratio again, once."""
    bad = [
        query
        for query in queries
        if "first" not in (row := state.entries[query.name]["row"])
        and (row.get("ratio") or 0.0) > above
    ]
    if not bad:
        return
    say(f"measuring {len(bad)} queries with a ratio above {above} again")
    with progress(len(bad)) as done:
        for turn, query in enumerate(bad):
            entry = state.entries[query.name]
            row = bench.remeasure(query, entry["row"], turn, runs)
            state.put(query.name, {**entry, "row": row})
            done(progress_line(row, list(bench.clients)))


def run(options: argparse.Namespace) -> dict[str, Any]:
    folder = make(options.suite, options.sf, layout=options.layout)
    queries = choose(load_queries(options.suite), options.queries)
    profiles = [
        make_profile(name, options.memory, options.cores, options.partitions)
        for name in options.profiles.split(",")
    ]
    name = data_name(options.suite, options.sf, options.layout)
    out = (options.out or RESULTS / f"{name}.json").resolve()
    config = configuration(options, profiles, read_marker(folder))
    about = {"benchmark": out.stem, **options.about, "config": config}
    # The jar says what is measured, not the commit: a commit of documentation changes nothing.
    compared = (config, about["spark"], about["duckdb"], about["machine"])
    head = {"key": configuration_key({"compared": compared}), "record": about}
    state = open_state(state_path(out), head, fresh=options.fresh)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as temp:
        work = Path(temp)
        yardstick = Yardstick(folder, options.cores, options.duckdb_memory, work / "duckdb")
        tables = table_folders(folder)
        clients = {
            profile.name: Client(profile.with_copied_jar(work), tables, folder / "_analyzed", work)
            for profile in profiles
        }
        bench = Bench(
            clients,
            yardstick,
            work,
            options.runs,
            options.planning_runs,
            options.timeout,
            options.until_clear,
        )
        try:
            measure_all(bench, queries, state, options.settle)
            if options.remeasure and len(profiles) > 1:
                measure_again(bench, queries, state, options.remeasure, options.remeasure_runs)
        finally:
            for client in clients.values():
                client.kill()
            yardstick.close()
    results = of_run(state, [query.name for query in queries])
    page = write_report(save(results, out))
    say(f"written to {public_text(str(out))}, plans and decisions to {public_text(str(page))}")
    return results


def main(arguments: list[str] | None = None) -> int:
    options = commands.parse(parser(), arguments)
    results = run(options)
    print(results_table(results["rows"], results["summary"], options.profiles.split(",")))
    if options.publish:
        commands.publish_all([lambda: results])
    return 0 if results["summary"]["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
