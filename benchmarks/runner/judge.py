"""Whether all sides of a query gave the same answer."""

import pickle
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.runner.compare import (
    OTHER_ENGINE,
    SAME_ENGINE,
    Row,
    compare_files,
    compare_rows,
    same_keys,
)

DUCKDB = "duckdb"
Writer = Callable[[Path], bool]
"""Writes the whole result, without the final limit, to a path; tells whether that worked."""


@dataclass
class Answer:
    rows: list[Row]
    write_whole: Writer | None
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """How one side's answer relates to the reference's."""

    outcome: str
    note: str = ""


def read_rows(path: Path) -> list[Row]:
    """Read rows that a worker of ours wrote."""
    with path.open("rb") as file:
        rows: list[Row] = pickle.load(file)
    return rows


def judge(answers: Mapping[str, Answer], work: Path) -> dict[str, Verdict]:
    """Compare every answer with the first."""
    folder = work / "whole"

    @cache
    def whole(side: str) -> Path | None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{side}.parquet"
        write = answers[side].write_whole
        return path if write is not None and write(path) else None

    reference, *others = answers or [""]
    try:
        return {side: _verdict(reference, side, answers, whole) for side in others}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sum_up_answers(
    answers: Mapping[str, Answer], verdicts: Mapping[str, Verdict], failures: Mapping[str, str]
) -> dict[str, Any]:
    """State for a row whether its answers agree."""
    outcomes = {side: verdict.outcome for side, verdict in verdicts.items()}
    equal: bool | str | None = True
    if "different" in outcomes.values():
        equal = False
    elif failures:
        equal = None
    elif "ties" in outcomes.values():
        equal = "ties"
    summed: dict[str, Any] = {
        "equal": equal,
        "verdicts": outcomes,
        "result_rows": {side: len(answer.rows) for side, answer in answers.items()},
    }
    notes = {side: verdict.note for side, verdict in verdicts.items() if verdict.note}
    if notes:
        summed["notes"] = notes
    if failures:
        summed["failures"] = dict(failures)
    return summed


def _verdict(
    reference: str, side: str, answers: Mapping[str, Answer], whole: Callable[[str], Path | None]
) -> Verdict:
    ours, theirs = answers[reference], answers[side]
    relative = OTHER_ENGINE if DUCKDB in (reference, side) else SAME_ENGINE
    difference = compare_rows(ours.rows, theirs.rows, relative)
    if difference.equal:
        return Verdict("equal")
    if len(ours.rows) != len(theirs.rows) or not (ours.write_whole and theirs.write_whole):
        return Verdict("different", str(difference))
    if not same_keys(ours.rows, theirs.rows, ours.order, relative):
        return Verdict("different", f"other sort keys: {difference}")
    left, right = whole(reference), whole(side)
    if left is None or right is None:
        return Verdict("different", f"could not compare without limit: {difference}")
    found = compare_files(left, right, relative)
    if found.equal:
        return Verdict("ties", f"all {found.left_rows} rows without the limit agree")
    return Verdict("different", f"without limit: {found}")
