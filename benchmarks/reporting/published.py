"""
Published figures: ``benchmarks/published/<benchmark>.json``, one file a benchmark, committed.

Each says with which command, when, of which commit and on what machine it was measured. Each of its
``rows`` has a ``name`` and a ``ratio``, and ``summary.total_ratio`` is the same of all; what is
divided by what is said in ``ratio``. Files are made from results only, never by hand.
"""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.paths import PUBLISHED, RESULTS, public_text
from benchmarks.reporting.figures import Row, geometric_mean, percentile, q_error
from benchmarks.reporting.results import of_run
from benchmarks.reporting.state import read_state, state_path

FEW_RUNS = 3
DIGITS = 5


class NotPublishable(ValueError):
    """The results are not of a full run, or not of one to be proud of; the message says why."""


@dataclass
class Figures:
    """What is published of a result: rows, their summary, what ``ratio`` means, remarks."""

    ratio: str
    rows: list[Row]
    summary: Row
    notes: list[str] = field(default_factory=list)
    config: Sequence[str] = ("suite", "scale", "runs", "memory")


def find_results(name: str) -> dict[str, Any]:
    """Read kept results by name, such as ``tpcds-sf10``; of `benchmarks.run`, all that is kept."""
    state = read_state(state_path(RESULTS / f"{name}.json"))
    if state.entries and "record" in state.head:
        return of_run(state)
    found = load(name, RESULTS)
    if found is None:
        raise NotPublishable(f"there are no results of {name} in benchmarks/results")
    return found


def load(name: str, folder: Path = PUBLISHED) -> dict[str, Any] | None:
    """Read figures that are kept in a folder; None if there are none."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def publish(results: Mapping[str, Any], folder: Path = PUBLISHED) -> Path:
    """Write the figures of complete results, or say why these are none."""
    name = str(results["benchmark"])
    if "command" not in results:
        raise NotPublishable(f"{name} does not say how it was made: measure it again")
    if results["partial"]:
        raise NotPublishable(f"{name} is not complete: {results['partial']}")
    kind = KINDS.get(name.partition("-")[0])
    if kind is None:
        raise NotPublishable(f"{name} is not among what is published: {', '.join(KINDS)}")
    found = kind(results)
    if str(results["commit"]).endswith("-dirty"):
        found.notes.append("The sources had changes that are not in the commit.")
    config = {key: results["config"][key] for key in found.config if key in results["config"]}
    config |= {"profiles": list(config["profiles"])} if "profiles" in config else {}
    document = {
        **{key: results[key] for key in ("benchmark", "command", "date", "commit", "spark")},
        "machine": {key: results["machine"].get(key) for key in ("cores", "memory_gib")},
        "config": config,
        "ratio": found.ratio,
        "notes": found.notes,
        "rows": found.rows,
        "summary": found.summary,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    text = json.dumps(_rounded(document), indent=1, ensure_ascii=False)
    path.write_text(public_text(text) + "\n", encoding="utf-8")
    return path


def _rounded(value: Any) -> Any:
    """Cut numbers down to the digits that a measurement has."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list | tuple) else value


def of_queries(results: Mapping[str, Any]) -> Figures:
    """Take the figures of `benchmarks.run`: stock first, Selinger last, all answers equal."""
    profiles = list(results["config"]["profiles"])
    if (profiles[0], profiles[-1]) != ("stock", "selinger"):
        raise NotPublishable(f"{results['benchmark']} does not compare Selinger with stock")
    summary = results["summary"]
    if not summary["equal"] or summary.get("failures"):
        raise NotPublishable(f"{results['benchmark']}: answers differ, or queries failed")
    kept = ["name", "ratio", "ratio_spread", *(f"{profile}_s" for profile in profiles)]
    kept += [*(f"planning_{profile}_ms" for profile in profiles), "duckdb_s", "equal"]
    rows = []
    for row in results["rows"]:
        figures = {key: row[key] for key in kept if key in row}
        for figure in ("rows_out_of_joins", "shuffled_bytes"):
            figures[figure] = {
                side: found[figure] for side, found in row["metrics"].items() if figure in found
            }
        rows.append(figures)
    runs = results["config"]["runs"]
    again = sum("first" in row for row in results["rows"])
    notes = []
    if runs < FEW_RUNS:
        notes.append(f"Few runs: {runs} of each query and side. Single runs vary.")
    failed = [row["name"] for row in results["rows"] if "failed_before" in row]
    if failed:
        notes.append(f"Failed at first, and were measured again: {', '.join(failed)}.")
    if again:
        notes.append(f"{again} queries that looked slower were measured again (see the rules).")
    heap = next(iter(results["config"]["profiles"].values()))["conf"]["spark.driver.memory"]
    return Figures(
        "time with Selinger / time with stock Spark, medians of the runs",
        rows,
        {**summary, "heap_of_each_session": heap},
        notes,
        ("suite", "scale", "runs", "profiles"),
    )


def of_estimates(results: Mapping[str, Any]) -> Figures:
    """Take the figures of `benchmarks.estimates`: median q-errors, query by query."""
    estimators = list(results["summary"]["tables"])
    base = "stock_analyzed" if "stock_analyzed" in estimators else "stock"
    if base not in estimators:
        raise NotPublishable(f"{results['benchmark']}: stock Spark was not asked")
    by_query: dict[str, list[Row]] = defaultdict(list)
    for row in results["rows"]:
        if row.get("rows") is not None:
            by_query[f"{row['suite']} {row['name']}"].append(row)
    rows = []
    for name, found in by_query.items():
        errors = {one: _median_q_error(found, one) for one in estimators}
        ours, theirs = errors["selinger"], errors[base]
        figures: Row = {"name": name, "ratio": ours / theirs if ours and theirs else None}
        figures |= {"sub_plans": len(found), "median_q_error": errors}
        rows.append(figures)
    ours, theirs = (results["summary"][f"median_q_error{end}"] for end in ("", f"_{base}"))
    total = {"total_ratio": ours / theirs if ours and theirs else None}
    return Figures(
        f"median q-error of Selinger / median q-error of {base}", rows, total | results["summary"]
    )


def _median_q_error(rows: Sequence[Row], estimator: str) -> float | None:
    found = percentile([q_error(row.get(estimator), row["rows"]) for row in rows], 0.5)
    return found if found is not None and math.isfinite(found) else None


def of_planning(results: Mapping[str, Any]) -> Figures:
    """Take the figures of `benchmarks.planning`: costs and times of each form and size."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in results["rows"]:
        groups[f"{row['shape']} of {row['relations']}"].append(row)
    rows = []
    compared: list[tuple[float, float]] = []
    for name, found in groups.items():
        pairs = [(row["cost"], row["optimum"]) for row in found if row.get("optimum")]
        compared += pairs
        times = [row["ms"] for row in found]
        rows.append(
            {
                "name": name,
                "ratio": max(ours / best for ours, best in pairs) if pairs else None,
                "queries": len(found),
                "median_ms": median(times),
                "p95_ms": percentile(times, 0.95),
                "max_ms": max(times),
            }
        )
    mean = geometric_mean([ours / best for ours, best in compared])
    return Figures(
        "cost of the order found / cost of the best order, at most; none where the best order "
        "is not known (summary.total_ratio: geometric mean of all queries with a known best order)",
        rows,
        {"total_ratio": mean, **results["summary"]},
        config=("shapes", "sizes", "seeds", "memory"),
    )


def as_it_is(results: Mapping[str, Any]) -> Figures:
    """Take rows and summary of a benchmark that gives ratios itself, and says what they are."""
    ratio = RATIOS[results["benchmark"].partition("-")[0]]
    return Figures(ratio, results["rows"], results["summary"])


def of_ablation(results: Mapping[str, Any]) -> Figures:
    """Take what each mechanism of the join ordering brings, without the single queries."""
    rows = [
        {key: value for key, value in row.items() if key not in ("queries", "free")}
        for row in results["rows"]
    ]
    return Figures(
        "cost of the orders found without a mechanism / with all of them, geometric mean over all "
        "queries (summary.total_ratio: mean of the mechanisms)",
        rows,
        {"total_ratio": geometric_mean([row["ratio"] for row in rows]), **results["summary"]},
        config=("shapes", "sizes", "seeds", "scales", "memory"),
    )


RATIOS = {
    "operators": "time of the operator that the cost model picks / time of the fastest operator",
    "plancost": "planning time with Selinger / planning time of stock Spark, medians of the rounds",
    "walks": "time to plan a query again with Selinger / with stock Spark, medians of the rounds",
    "analyze": "time of selinger.analyze / time of Spark's ANALYZE",
}
KINDS: dict[str, Callable[[Mapping[str, Any]], Figures]] = {
    "tpcds": of_queries,
    "tpch": of_queries,
    "aggregates": of_queries,
    "estimates": of_estimates,
    "planning": of_planning,
    "ablation": of_ablation,
    **dict.fromkeys(RATIOS, as_it_is),
}
