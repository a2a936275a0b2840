"""What all commands share: how they read their arguments, and how they end."""

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.datasets.duck import SUITES
from benchmarks.paths import public_text
from benchmarks.progress import end_cleanly
from benchmarks.reporting.docs import write_docs
from benchmarks.reporting.published import NotPublishable, publish
from benchmarks.reporting.results import save


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Make the parser of ``python -m benchmarks.<name>``."""
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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
    """Read the arguments, and keep the command as others would type it."""
    given = sys.argv[1:] if arguments is None else arguments
    options = made.parse_args(given)
    words = [*made.prog.split(), *(word for word in given if word != "--publish")]
    options.command = shlex.join(words)
    end_cleanly()
    return options


def finish(results: Mapping[str, Any], options: argparse.Namespace) -> None:
    """Write the results, and publish them if that was asked for."""
    path = save(results)
    print(f"\nwritten to {public_text(str(path))}")
    if options.publish:
        publish_all([results])


def publish_all(found: Sequence[Mapping[str, Any]]) -> None:
    """Publish results, and write the page of all published figures."""
    try:
        for results in found:
            print(f"published in {public_text(str(publish(results)))}")
    except NotPublishable as refusal:
        raise SystemExit(f"not published: {refusal}") from refusal
    print(f"written to {public_text(str(write_docs()))}")
