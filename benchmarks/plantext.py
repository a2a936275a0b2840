"""Executed plans as text: cleaned, cut down to what ran, and compared line by line."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

TITLE = "== Physical Plan ==\n"
FINAL = "== Final Plan =="
INITIAL = "== Initial Plan =="

_BRANCH = re.compile(r"^(?:   |:  )*(?:[:+]- )?(?P<text>[^ ].*)$")
_NOISE = (
    (re.compile(r"\*\(\d+\) "), ""),  # whole-stage code generation
    (re.compile(r"#\d+L?"), ""),  # expression ids
    (re.compile(r",? ?\[plan_id=\d+\]"), ""),
    (re.compile(r"\[id=#\d*\]"), ""),
    (re.compile(r", ENSURE_REQUIREMENTS"), ""),
    (re.compile(r"Batched: true, |Format: Parquet, |PartitionFilters: \[\], "), ""),
    (re.compile(r"DataFilters: \[.*?\], (?=Location|PushedFilters|ReadSchema)"), ""),
    (re.compile(r"Location: InMemoryFileIndex\(1 paths\)\[\S*?(\w+)\.par\S*\]?, "), r"\1 "),
    (re.compile(r",? ?ReadSchema: \S*"), ""),
)
_WRAPPERS = re.compile(
    r"(AdaptiveSparkPlan|ResultQueryStage|BroadcastQueryStage|ShuffleQueryStage|ColumnarToRow"
    r"|InputAdapter|TableCacheQueryStage)\b"
)


@dataclass(frozen=True)
class Line:
    """
    An operator of a plan.

    Attributes
    ----------
    depth : int
        Operators above it.
    text : str
        What it does.
    """

    depth: int
    text: str

    def __str__(self) -> str:
        """Indented by its depth."""
        return "  " * self.depth + self.text


def read_plan(explained: str) -> list[Line]:
    r"""
    Read the operators of the plan that ran.

    Stages, wrappers of generated code, expression ids and what says the same in every scan are
    left out, so that two plans differ only where they do something else.

    Parameters
    ----------
    explained : str
        What ``df.explain()`` prints.

    Returns
    -------
    list of Line
        In the order of the text.

    Examples
    --------
    >>> plan = "*(1) Sort [a#1 ASC]\n+- ColumnarToRow\n   +- Scan"
    >>> [str(line) for line in read_plan(plan)]
    ['Sort [a ASC]', '  Scan']
    """
    lines: list[Line] = []
    above: list[tuple[int, int]] = []  # column and depth of every operator above the next line
    unused: int | None = None  # column of the plan before adaptive execution, while inside it
    for raw in (explained.partition(TITLE)[2] or explained).split("\n"):
        found = _BRANCH.match(raw)
        if found is None:
            continue
        column, text = found.start("text"), clean(found["text"])
        if unused is not None and column >= unused:
            continue
        unused = column if text == INITIAL else None
        if text in (INITIAL, FINAL):
            continue
        while above and above[-1][0] >= column:
            above.pop()
        depth = above[-1][1] + 1 if above else 0
        if _WRAPPERS.match(text):
            above.append((column, depth - 1))
            continue
        above.append((column, depth))
        lines.append(Line(depth, text))
    return lines


def clean(text: str) -> str:
    """
    Take out of an operator's text what changes from run to run.

    Parameters
    ----------
    text : str
        A line of a plan.

    Returns
    -------
    str

    Examples
    --------
    >>> clean("*(2) Filter isnotnull(k#12L)")
    'Filter isnotnull(k)'
    """
    for pattern, replacement in _NOISE:
        text = pattern.sub(replacement, text)
    return text.strip()


def side_by_side(
    left: list[Line], right: list[Line]
) -> list[tuple[Line | None, Line | None, bool]]:
    """
    Align two plans.

    Parameters
    ----------
    left, right : list of Line
        The plans.

    Returns
    -------
    list of (Line or None, Line or None, bool)
        What stands beside what; the last tells whether they are the same.

    Examples
    --------
    >>> sort, scan = Line(0, "Sort"), Line(1, "Scan")
    >>> [same for _, _, same in side_by_side([sort, scan], [Line(0, "Scan")])]
    [False, True]
    """
    matcher = difflib.SequenceMatcher(
        None, [line.text for line in left], [line.text for line in right], autojunk=False
    )
    aligned: list[tuple[Line | None, Line | None, bool]] = []
    for kind, left_from, left_to, right_from, right_to in matcher.get_opcodes():
        for step in range(max(left_to - left_from, right_to - right_from)):
            ours = left[left_from + step] if left_from + step < left_to else None
            theirs = right[right_from + step] if right_from + step < right_to else None
            aligned.append((ours, theirs, kind == "equal"))
    return aligned


def operator_change(before: dict[str, int], after: dict[str, int]) -> str:
    """
    Say which operators a plan has more or fewer of.

    Parameters
    ----------
    before, after : dict of str to int
        Operators by name.

    Returns
    -------
    str
        Fewer first, such as ``SortMergeJoin 2→0, Sort 4→0``; empty if the counts agree.

    Examples
    --------
    >>> operator_change({"Sort": 4, "Scan": 2}, {"Sort": 1, "Scan": 2, "ShuffledHashJoin": 1})
    'Sort 4→1, ShuffledHashJoin 0→1'
    """
    changed = [
        (after.get(name, 0) - before.get(name, 0), name)
        for name in before.keys() | after.keys()
        if name in SHOWN and before.get(name, 0) != after.get(name, 0)
    ]
    return ", ".join(
        f"{name} {before.get(name, 0)}→{after.get(name, 0)}" for _, name in sorted(changed)
    )


SHOWN = frozenset(
    (
        "BroadcastHashJoin",
        "BroadcastNestedLoopJoin",
        "CartesianProduct",
        "Exchange",
        "Expand",
        "HashAggregate",
        "ObjectHashAggregate",
        "ShuffledHashJoin",
        "Sort",
        "SortAggregate",
        "SortMergeJoin",
        "Window",
    )
)
"""Operators whose number is worth a word."""
