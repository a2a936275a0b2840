"""What all commands share: how they read their arguments, and how they end."""

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.datasets.duck import SUITES
from benchmarks.paths import public_text, scale_text
from benchmarks.progress import end_cleanly
from benchmarks.reporting.docs import write_docs
from benchmarks.reporting.published import NotPublishable, publish
from benchmarks.reporting.results import save, setting

CONFIG = {"suite": "suite", "sf": "scale", "runs": "runs", "memory": "memory"}
"""Arguments that results state, by the name that they have there."""


def parser(
    name: str, description: str | None, *, publishes: bool = True
) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.set_defaults(publish=False)
    if publishes:
        made.add_argument(
            "--publish",
            action="store_true",
            help="write the figures to benchmarks/published and to docs/benchmarks.md as well",
        )
    return made


def add_data(made: argparse.ArgumentParser, *suites: str) -> None:
    """Add the arguments that choose a data set; it is made if it is not there."""
    made.add_argument("--suite", choices=suites or SUITES, default="tpcds")
    made.add_argument("--sf", type=float, default=1.0, help="scale factor")


def parse(made: argparse.ArgumentParser, arguments: list[str] | None) -> argparse.Namespace:
    """Read the arguments; keep the command as others would type it, and what it starts from."""
    given = sys.argv[1:] if arguments is None else arguments
    options = made.parse_args(given)
    words = [*made.prog.split(), *(word for word in given if word != "--publish")]
    # Asked now: whoever commits while this measures does not change what is measured.
    options.about = {"command": shlex.join(words), **setting()}
    end_cleanly()
    return options


def finish(
    name: str,
    options: argparse.Namespace,
    rows: Sequence[Any],
    summary: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
    partial: str = "",
) -> None:
    """
    Write the results, and publish them if that was asked for; data sets add to the name.

    `partial` says what is missing from a full run, such as ``only the queries q01``: such results
    are not for publishing.
    """
    given = vars(options)
    stated = {said: given[key] for key, said in CONFIG.items() if key in given}
    if "suite" in given:
        name = f"{name}-{options.suite}-sf{scale_text(options.sf)}"
    if given.get("queries", "all") != "all":
        partial = f"only the queries {options.queries}"
    results = {
        "benchmark": name,
        **options.about,
        "config": {**stated, **(config or {})},
        "partial": partial,
        "rows": rows,
        "summary": summary,
    }
    print(f"\nwritten to {public_text(str(save(results)))}")
    if options.publish:
        publish_all([lambda: results])


def publish_all(found: Sequence[Callable[[], Mapping[str, Any]]]) -> None:
    """Publish what can be published, write the page, and say what was refused and why."""
    refused = list(filter(None, map(_publish_one, found)))
    print(f"written to {public_text(str(write_docs()))}")
    if refused:
        raise SystemExit("\n".join(refused))


def _publish_one(results: Callable[[], Mapping[str, Any]]) -> str:
    try:
        print(f"published in {public_text(str(publish(results())))}")
    except NotPublishable as refusal:
        return f"not published: {refusal}"
    return ""
