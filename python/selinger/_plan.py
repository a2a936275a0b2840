"""Two physical plans compared, without the numbers that change from planning to planning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff

from selinger._render import escape

_CHANGING = (
    (re.compile(r"#\d+L?"), ""),  # expression ids
    (re.compile(r"\b(plan_id|id)=\d+"), r"\1="),
    (re.compile(r"\*\(\d+\)"), "*"),  # whole-stage code generation
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


def diff_html(diff: str) -> str:
    """Colour a plan difference; signs stay, so that colour is not all that tells."""
    return "<pre>" + "\n".join(_coloured(diff)) + "</pre>"


def _coloured(diff: str) -> Iterator[str]:
    colours = {"-": "rgba(213, 94, 0, .22)", "+": "rgba(0, 114, 178, .22)"}
    for line in diff.splitlines():
        colour = colours.get(line[:1])
        text = escape(line)
        yield f'<span style="background:{colour}">{text}</span>' if colour else text
