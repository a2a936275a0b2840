"""What the runs prove, query by query and in all: by the same rules as ``selinger.compare``."""

from collections import Counter
from collections.abc import Sequence

from selinger._render import seconds
from selinger._verdict import Verdict, judge

from benchmarks.reporting.figures import Row

CALLED = {"stock": "stock Spark", "selinger": "Selinger"}
ANSWERS = {
    True: "All answers are the same.",
    "ties": "All answers are the same, but for rows that are equal where a LIMIT cuts.",
}


def called(profiles: Sequence[str]) -> tuple[str, str]:
    """Name the first and the last profile."""
    first, last = (CALLED.get(name, name) for name in (profiles[0], profiles[-1]))
    return first, last


def verdict_of(row: Row, profiles: Sequence[str]) -> Verdict:
    """Judge the times of a query on the first and the last profile."""
    failures = row.get("failures")
    if failures:
        texts = [f"{side} failed: {text}" for side, text in failures.items()]
        return Verdict("\n".join(texts), "none", "failed")
    times = row[f"{profiles[0]}_s"], row[f"{profiles[-1]}_s"]
    # Which of equal rows a LIMIT keeps says nothing against either side.
    same = None if row.get("equal") == "ties" else bool(row.get("equal"))
    names = called(profiles)
    return judge(*times, same_plan=row.get("same_plan"), same_answer=same, names=names)


def of_all(rows: Sequence[Row], summary: Row, profiles: Sequence[str]) -> str:
    """Say in some sentences what came out, and what is not proven."""
    base, candidate = called(profiles)
    kinds = Counter(verdict_of(row, profiles).kind for row in rows)
    totals = [summary.get(f"{name}_total_s", 0.0) for name in profiles]
    said = [f"{candidate} is faster in {kinds['faster']} of {len(rows)} queries"]
    said += [
        f"{kinds[kind]} {words}"
        for kind, words in (
            ("slower", "are slower"),
            ("even", "show no difference beyond noise"),
            ("same", "have the same plan"),
            ("few", "ran too few times to tell (4 runs of each side are needed)"),
            ("none", "have no time that counts: failed, or answers differ"),
        )
        if kinds[kind]
    ]
    times = f"Median times add up to {seconds(totals[-1])}; with {base}, {seconds(totals[0])}."
    answers = ANSWERS.get(summary["equal"], "NOT ALL ANSWERS ARE THE SAME.")
    if base == candidate:
        return answers
    several = kinds["faster"] + kinds["slower"] > 1
    luck = "Each difference is at least 97 % sure by itself: of many, one may be luck. "
    return f"{', '.join(said)}. {luck if several else ''}{answers} {times}"
