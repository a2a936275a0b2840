"""Whether all sides of a query gave the same answer."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.compare import (
    OTHER_ENGINE,
    SAME_ENGINE,
    Difference,
    Row,
    compare_rows,
    same_keys,
)
from benchmarks.ties import compare_files

DUCKDB = "duckdb"
Writer = Callable[[Path], bool]
"""Writes the whole result, without the final limit, to a path; tells whether that worked."""


@dataclass
class Answer:
    """
    One side's answer.

    Attributes
    ----------
    rows : list of tuple
        The result.
    write_whole : callable
        Writes the result without the query's final limit.
    order : list of int
        Positions of the sort keys, as far as they are known.
    """

    rows: list[Row]
    write_whole: Writer | None
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """
    How one side's answer relates to the reference's.

    Attributes
    ----------
    outcome : str
        ``equal``, ``ties`` or ``different``.
    note : str
        What differs.
    """

    outcome: str
    note: str = ""


def read_rows(path: Path) -> list[Row]:
    """
    Read rows that a worker of ours wrote.

    Parameters
    ----------
    path : pathlib.Path
        The pickled list.

    Returns
    -------
    list of tuple

    Examples
    --------
    >>> read_rows(Path("rows"))  # doctest: +SKIP
    [(1,)]
    """
    with path.open("rb") as file:
        rows: list[Row] = pickle.load(file)
    return rows


def judge(answers: Mapping[str, Answer], work: Path) -> dict[str, Verdict]:
    """
    Compare every answer with the first.

    Parameters
    ----------
    answers : mapping of str to Answer
        By side; the one named ``duckdb`` is compared as another engine's.
    work : pathlib.Path
        Folder for whole results, emptied afterwards.

    Returns
    -------
    dict of str to Verdict
        For every side but the first.

    Examples
    --------
    >>> one = Answer([(1,)], None)
    >>> judge({"stock": one, "selinger": one}, Path("/tmp"))["selinger"].outcome
    'equal'
    """
    reference = next(iter(answers), None)
    wholes = Wholes(answers, work)
    verdicts = {}
    try:
        for side in answers:
            if side != reference and reference is not None:
                verdicts[side] = _verdict(reference, side, answers, wholes)
    finally:
        wholes.clear()
    return verdicts


def sum_up_answers(
    answers: Mapping[str, Answer], verdicts: Mapping[str, Verdict], failures: Mapping[str, str]
) -> dict[str, Any]:
    """
    State for a row whether its answers agree.

    Parameters
    ----------
    answers : mapping of str to Answer
        Of the sides that finished; all verdicts are against the first.
    verdicts : mapping of str to Verdict
        Of the other sides.
    failures : mapping of str to str
        Sides that did not finish, and why.

    Returns
    -------
    dict
        ``equal``: True, ``ties``, False, or None if some side has no answer; ``verdicts``,
        ``result_rows``, and ``notes`` and ``failures`` if there are any.

    Examples
    --------
    >>> one = Answer([(1,)], None)
    >>> sum_up_answers({"stock": one, "duckdb": one}, {"duckdb": Verdict("equal")}, {})["equal"]
    True
    """
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


class Wholes:
    """
    Whole results, each written at most once.

    Parameters
    ----------
    answers : mapping of str to Answer
        By side.
    work : pathlib.Path
        Folder to write to.
    """

    def __init__(self, answers: Mapping[str, Answer], work: Path) -> None:
        self.answers = answers
        self.folder = work / "whole"
        self.found: dict[str, Path | None] = {}

    def get(self, side: str) -> Path | None:
        """
        Write a side's whole result, unless that has been done.

        Parameters
        ----------
        side : str
            Its name.

        Returns
        -------
        pathlib.Path or None
            Where it is; None if there is no limit to leave out, or it failed.
        """
        if side not in self.found:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{side}.parquet"
            write = self.answers[side].write_whole
            self.found[side] = path if write is not None and write(path) else None
        return self.found[side]

    def clear(self) -> None:
        """Delete all that was written."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _verdict(reference: str, side: str, answers: Mapping[str, Answer], wholes: Wholes) -> Verdict:
    ours, theirs = answers[reference], answers[side]
    relative = OTHER_ENGINE if DUCKDB in (reference, side) else SAME_ENGINE
    difference = compare_rows(ours.rows, theirs.rows, relative)
    if difference.equal:
        return Verdict("equal")
    if len(ours.rows) != len(theirs.rows) or not (ours.write_whole and theirs.write_whole):
        return Verdict("different", str(difference))
    if not same_keys(ours.rows, theirs.rows, ours.order, relative):
        return Verdict("different", f"other sort keys: {difference}")
    whole = _whole_difference(wholes.get(reference), wholes.get(side), relative)
    if whole is None:
        return Verdict("different", f"could not compare without limit: {difference}")
    if whole.equal:
        return Verdict("ties", f"all {whole.left_rows} rows without the limit agree")
    return Verdict("different", f"without limit: {whole}")


def _whole_difference(ours: Path | None, theirs: Path | None, relative: float) -> Difference | None:
    if ours is None or theirs is None:
        return None
    return compare_files(ours, theirs, relative)
