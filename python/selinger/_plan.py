"""Two physical plans compared, without the numbers that change from planning to planning."""

from __future__ import annotations

import re
from difflib import unified_diff

_CHANGING = (
    (re.compile(r"#\d+L?"), ""),  # expression ids
    (re.compile(r"\b(plan_id|id)=\d+"), r"\1="),
    (re.compile(r"\*\(\d+\)"), "*"),  # whole-stage code generation
    (re.compile(r"(QueryStage) \d+"), r"\1"),  # stages, in the order in which they began
    (re.compile(r"\bselinger_compare\."), ""),
)


def normalised(plan: str) -> str:
    """Take out expression ids, plan ids and stage numbers.

    Examples
    --------
    >>> normalised("*(2) Sort [k#1L ASC], [plan_id=28]")
    '* Sort [k ASC], [plan_id=]'
    """
    for pattern, to in _CHANGING:
        plan = pattern.sub(to, plan)
    return plan


def executed(plan: str) -> str:
    """Keep the final part of an adaptive plan that has run; any other plan is given whole.

    Examples
    --------
    >>> print(executed('''AdaptiveSparkPlan isFinalPlan=true
    ... +- == Final Plan ==
    ...    Scan a
    ... +- == Initial Plan ==
    ...    Scan b'''))
    Scan a
    """
    match = re.search(r"^\+- == Final Plan ==\n(.*?)^\+- == Initial Plan ==", plan, re.M | re.S)
    if match is None:
        return plan
    lines = match.group(1).rstrip().splitlines()
    return "\n".join(line.removeprefix("   ") for line in lines)


def is_final(plan: str) -> bool:
    r"""Tell whether this is the plan that ran, or will run: nothing in it is planned again.

    Examples
    --------
    >>> is_final("Range (0, 3)")
    True
    >>> is_final("AdaptiveSparkPlan isFinalPlan=false\n+- Range (0, 3)")
    False
    """
    return "isFinalPlan=false" not in executed(plan)


def plan_diff(stock: str, selinger: str) -> str:
    """Compare two plans line by line; empty if they are the same.

    Examples
    --------
    >>> plan_diff("Sort [a#1]", "Sort [a#7]")
    ''
    """
    lines = unified_diff(
        normalised(stock).splitlines(),
        normalised(selinger).splitlines(),
        "stock Spark",
        "Selinger",
        lineterm="",
        n=2,
    )
    return "\n".join(lines)


def same_plan(stock: str, selinger: str, *, changed: bool) -> bool | None:
    """Tell whether both sides ran the same plan, by what was printed of it.

    Parameters
    ----------
    stock, selinger : str
        Both plans, as Spark prints them.
    changed : bool
        Whether a decision changed the plan: that may not show in its text.

    Returns
    -------
    bool or None
        None if the plans before the run are the same, and what ran cannot be seen.

    Examples
    --------
    >>> same_plan("Sort [a#1]", "Sort [a#7]", changed=False)
    True
    """
    if changed or plan_diff(executed(stock), executed(selinger)):
        return False
    return True if is_final(stock) and is_final(selinger) else None
