"""
Publish results that are kept, and write docs/benchmarks.md from all published figures.

    python -m benchmarks.publish tpcds-sf10 planning

Results are those in benchmarks/results; of a run of queries all that are kept count, so it can be
published after it was killed and resumed. Without names, only the page is written.
"""

import sys
from functools import partial

from benchmarks import commands
from benchmarks.reporting.published import find_results


def main(arguments: list[str] | None = None) -> int:
    made = commands.parser("publish", __doc__, publishes=False)
    made.add_argument("names", nargs="*", help="such as tpcds-sf10, estimates-tpcds-sf1, planning")
    names = made.parse_args(arguments).names
    commands.publish_all([partial(find_results, name) for name in names])
    return 0


if __name__ == "__main__":
    sys.exit(main())
