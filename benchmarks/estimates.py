"""
How far estimated rows are from true rows, for every filter, join and aggregation of a suite.

    python -m benchmarks.estimates --suite tpcds --sf 1 --analyzed

Rows are counted once and kept beside the data; a second run only estimates again. Estimators:
stock Spark with its cost-based optimizer on and nothing collected, the same after ANALYZE of all
columns with histograms (``--analyzed``), Selinger with nothing collected, and Selinger after
``selinger_analyze`` of all columns, whose store is kept beside the data, in ``_sketches``. Our own
skewed data (`benchmarks.skewed`) goes through the same, in a table of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark

from benchmarks import skewed
from benchmarks.client import Client
from benchmarks.data import make
from benchmarks.duck import SUITES
from benchmarks.kept import read_marker
from benchmarks.paths import RESULTS, ROOT, data_folder, scale_text
from benchmarks.profiles import COMMON, make_profile, public_text
from benchmarks.progress import end_cleanly, say
from benchmarks.qerror import estimates_table, q_error, summarise
from benchmarks.queries import Query, choose, load_queries
from benchmarks.setting import commit, machine, versions

MAIN = "io.selinger.bench.EstimateBench"
COUNTING = {
    # Sorting large sides of joins is what would take most of the time.
    "spark.sql.join.preferSortMergeJoin": "false",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "128MB",
}
ESTIMATORS = ("stock", "stock_analyzed", "selinger", "selinger_analyzed")

Row = dict[str, Any]


def parser() -> argparse.ArgumentParser:
    """
    Make the parser of the command line.

    Returns
    -------
    argparse.ArgumentParser

    Examples
    --------
    >>> parser().parse_args([]).sf
    1.0
    """
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.estimates",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("--suite", choices=(*SUITES, "skewed"), default="tpcds")
    add("--sf", type=float, default=1.0, help="scale factor; data is made if it is not there")
    add("--queries", default="all", help="all, or q01,q05,q20-q29; of the suite")
    add("--analyzed", action="store_true", help="collect ANALYZE statistics; takes minutes")
    add("--seconds", type=int, default=120, help="that a count may take; 0 counts nothing")
    add("--memory", default="4g", help="heap of the session that counts and estimates")
    add("--jar", type=Path, default=test_jar(), help="the jar with the benchmarks' classes")
    return made


def test_jar() -> Path:
    """
    Find the jar that ``make bench-estimates`` builds.

    Returns
    -------
    pathlib.Path
        Of the line of the installed PySpark.

    Examples
    --------
    >>> test_jar().name
    'selinger-tests.jar'
    """
    line = ".".join(versions()["spark"].split(".")[:2])
    return ROOT / "target" / f"spark-{line}" / "selinger-tests.jar"


def statistics_folder(folder: Path, tables: Mapping[str, str], collect: bool) -> Path | None:
    """
    Find ANALYZE's statistics of a data set, or collect them.

    Parameters
    ----------
    folder : pathlib.Path
        The data set.
    tables : mapping of str to str
        Folder of Parquet files by table name.
    collect : bool
        Whether to run ANALYZE if they are not there.

    Returns
    -------
    pathlib.Path or None
        The folder that has a file for each table; None if there are none.

    Examples
    --------
    >>> statistics_folder(Path("no/such/folder"), {"item": "item.parquet"}, collect=False)
    """
    kept = folder / "_analyzed" / f"spark-{versions()['spark']}"
    complete = all((kept / f"{name}.ser").is_file() for name in tables)
    if complete or not collect:
        return kept if complete else None
    say(f"{folder.name}: ANALYZE of all columns, with histograms")
    with tempfile.TemporaryDirectory(prefix="analyze-") as work:
        client = Client(make_profile("tuned", "4g"), tables, folder / "_analyzed", Path(work))
        try:
            client.start()
        finally:
            client.kill()
    return kept


def ask_spark(request: Row, jar: Path, memory: str) -> list[Row]:
    """
    Count and estimate in a session of stock Spark.

    Parameters
    ----------
    request : dict
        ``tables``, ``queries``, ``rows`` (the file of counted rows), ``seconds``, ``analyzed``,
        ``sketches`` (where `selinger_analyze` keeps what it collects).
    jar : pathlib.Path
        The jar with the class that does it.
    memory : str
        Heap of the session.

    Returns
    -------
    list of dict
        One a sub-plan.

    Raises
    ------
    subprocess.CalledProcessError
        The session failed; its messages are on standard error.

    Examples
    --------
    >>> ask_spark({"tables": {}, "queries": {}}, Path("tests.jar"), "2g")  # doctest: +SKIP
    []
    """
    from selinger.install import jar_path

    conf = {"spark.master": "local[2]", "spark.log.level": "ERROR", **COMMON, **COUNTING}
    settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    with tempfile.TemporaryDirectory(prefix="estimates-") as temp:
        asked, answered = Path(temp, "request.json"), Path(temp, "answer.jsonl")
        asked.write_text(json.dumps({**request, "out": str(answered)}), encoding="utf-8")
        command = [str(submit), "--class", MAIN, "--driver-memory", memory, *settings]
        subprocess.run(
            [*command, "--jars", jar_path(), str(jar), str(asked)],
            check=True,
            cwd=temp,
            env={**os.environ, "SPARK_LOCAL_DIRS": temp, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        return [json.loads(line) for line in answered.read_text(encoding="utf-8").splitlines()]


def measure(suite: str, queries: Sequence[Query], options: argparse.Namespace) -> list[Row]:
    """
    Measure one suite.

    Parameters
    ----------
    suite : str
        ``tpcds``, ``tpch`` or ``skewed``.
    queries : sequence of Query
        Of the suite.
    options : argparse.Namespace
        The command line.

    Returns
    -------
    list of dict
        One a sub-plan.

    Examples
    --------
    >>> measure("tpch", [], parser().parse_args([]))  # doctest: +SKIP
    []
    """
    folder = make(suite, options.sf)
    tables = {path.name.removesuffix(".parquet"): str(path) for path in folder.glob("*.parquet")}
    analyzed = statistics_folder(folder, tables, options.analyzed)
    say(f"{folder.name}: {len(queries)} queries")
    rows = ask_spark(
        {
            "tables": tables,
            "queries": {query.name: query.spark for query in queries},
            "rows": str(folder / "_rows.jsonl"),
            "seconds": options.seconds,
            "analyzed": None if analyzed is None else str(analyzed),
            "sketches": str(folder / "_sketches"),
        },
        options.jar.resolve(),
        options.memory,
    )
    return [{"suite": suite, **row} for row in rows]


def write_plans(path: Path, rows: Sequence[Row]) -> None:
    """
    Write the plans that Selinger misjudges, the worst first.

    Parameters
    ----------
    path : pathlib.Path
        A file that is not for the repository: plans show query texts.
    rows : sequence of dict
        One a sub-plan, with its plan.

    Examples
    --------
    >>> write_plans(Path("estimates.log"), [])  # doctest: +SKIP
    """
    counted = [row for row in rows if "rows" in row]
    error = {id(row): q_error(row.get("selinger"), row["rows"]) for row in counted}
    with path.open("w", encoding="utf-8") as file:
        for row in sorted(counted, key=lambda row: -error[id(row)]):
            numbers = {key: row[key] for key in ("rows", *ESTIMATORS) if key in row}
            file.write(f"== {row['suite']} {row['name']} {row['kind']} joins={row['joins']} ")
            file.write(f"off by {error[id(row)]:.1f}: {numbers}\n{public_text(row['plan'])}\n")


def estimators(rows: Sequence[Row]) -> list[str]:
    """
    List the estimators that were asked.

    Parameters
    ----------
    rows : sequence of dict
        One a sub-plan.

    Returns
    -------
    list of str
        In the order of the table; Selinger is always among them.

    Examples
    --------
    >>> estimators([{"stock": 5.0}])
    ['stock', 'selinger']
    """
    return [name for name in ESTIMATORS if name == "selinger" or any(name in row for row in rows)]


def result(options: argparse.Namespace, rows: Sequence[Row]) -> Row:
    """
    Put the results together.

    Parameters
    ----------
    options : argparse.Namespace
        The command line.
    rows : sequence of dict
        One a sub-plan.

    Returns
    -------
    dict
        ``summary`` is of the suite; that of our own data is in ``summary.skewed``.

    Examples
    --------
    >>> made = result(parser().parse_args([]), [])
    >>> made["benchmark"], made["summary"]["median_q_error"]
    ('estimates-tpcds-sf1', None)
    """
    suites = {
        suite: [row for row in rows if row["suite"] == suite]
        for suite in dict.fromkeys((options.suite, "skewed"))
    }
    summaries = {suite: summarise(found, estimators(found)) for suite, found in suites.items()}
    summary = summaries.pop(options.suite)
    return {
        "benchmark": f"estimates-{options.suite}-sf{scale_text(options.sf)}",
        "commit": commit(),
        "spark": versions()["spark"],
        "data": {suite: read_marker(data_folder(suite, options.sf)) for suite in suites},
        "config": {"seconds": options.seconds, "machine": machine(), "conf": dict(COMMON)},
        "rows": [{key: value for key, value in row.items() if key != "plan"} for row in rows],
        "summary": {**summary, **summaries},
    }


def main(arguments: list[str] | None = None) -> int:
    """
    Command line: print the tables and write ``benchmarks/results/estimates-<suite>-sf<SF>.json``.

    Parameters
    ----------
    arguments : list of str or None
        Arguments, by default the process's.

    Returns
    -------
    int
        0, or 1 if a plan has more rows than Selinger thought possible.

    Examples
    --------
    >>> main(["--sf", "0.01", "--queries", "q03"])  # doctest: +SKIP
    0
    """
    options = parser().parse_args(arguments)
    end_cleanly()
    rows: list[Row] = []
    if options.suite != "skewed":
        wanted = choose(load_queries(options.suite), options.queries)
        rows += measure(options.suite, wanted, options)
    rows += measure("skewed", list(skewed.load_queries().values()), options)
    results = result(options, rows)
    RESULTS.mkdir(parents=True, exist_ok=True)
    out = RESULTS / f"{results['benchmark']}.json"
    out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    write_plans(out.with_suffix(".log"), rows)
    summary = results["summary"]
    if options.suite != "skewed":
        print(f"{options.suite}, scale factor {scale_text(options.sf)}\n")
        print(f"{estimates_table(summary)}\n")
    print("skewed and correlated data\n")
    print(f"{estimates_table(summary.get('skewed', summary))}\n")
    print(f"written to {public_text(str(out))}; plans beside it, in {out.stem}.log")
    beyond = sum(part["above_bound"] for part in (summary, summary.get("skewed", summary)))
    if beyond:
        say(f"{beyond} sub-plans have more rows than Selinger thought possible")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
