"""
Publish results that are kept, and write docs/benchmarks.md from all published figures.

    python -m benchmarks.publish tpcds-sf10 planning

Results are those in benchmarks/results; of a run of queries all that are kept count, so it can be
published after it was killed and resumed. Without names, only the page is written.
"""

import argparse
import sys

from benchmarks.commands import publish_all
from benchmarks.reporting.published import NotPublishable, find_results


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.publish",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", help="such as tpcds-sf10, estimates-tpcds-sf1, planning"
    )
    options = parser.parse_args(arguments)
    try:
        found = [find_results(name) for name in options.names]
    except NotPublishable as refusal:
        raise SystemExit(f"not published: {refusal}") from refusal
    publish_all(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
