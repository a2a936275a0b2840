"""``python -m tests.fuzz``: run random cases, and keep what fails."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: With more queries than these, code runs often enough to repay the second compiler.
LONG = 1000
if str(ROOT / "python") not in sys.path:
    sys.path.insert(0, str(ROOT / "python"))


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--queries", type=int, default=1000, help="how many cases to run")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random")
    parser.add_argument("--first", type=int, default=0, help="index of the first case")
    parser.add_argument("--case", type=int, help="run this case alone, and print it")
    parser.add_argument("--threads", type=int, default=2, help="sessions that run at a time")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds")
    parser.add_argument("--memory", default="2g", help="heap of the JVM")
    parser.add_argument(
        "--keep", type=Path, default=ROOT / "tests" / "sql" / "fuzz", help="folder of new tests"
    )
    parser.add_argument(
        "--others",
        type=Path,
        default=ROOT / "target" / "fuzz",
        help="folder of findings that make no test",
    )
    parser.add_argument("--no-shrink", action="store_true", help="do not make failures smaller")
    parser.add_argument("--most-findings", type=int, default=20, help="stop after so many")
    args = parser.parse_args(arguments)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:+UseParallelGC")

    from tests.fuzz import campaign, kept
    from tests.fuzz.engines import LOST_ERRORS, open_spark

    root = open_spark(args.memory, is_long=args.queries > LONG and args.case is None)
    try:
        cases = range(args.first, args.first + args.queries)
        if args.case is not None:
            cases = range(args.case, args.case + 1)
            kept.show(root, args.seed, args.case)
        report = campaign.run(
            root,
            args.seed,
            cases,
            threads=1 if args.case is not None else args.threads,
            seconds=args.seconds,
            after=None if args.no_shrink else lambda w, f: kept.keep(w, f, args.keep, args.others),
            most_findings=args.most_findings,
            progress=True,
        )
        print(report)
        print(report.as_json(), flush=True)
    finally:
        with suppress(*LOST_ERRORS):  # then there is nothing to stop
            root.stop()
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
