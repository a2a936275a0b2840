"""What measured runs prove: which side was faster, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from selinger._render import seconds

#: How the two sides of a comparison are called.
SIDES = ("stock Spark", "Selinger")
#: A difference is claimed from this confidence on, and from this part of the slower side's time on.
LEAST_SURE = 0.95
_LEAST_PART = 0.03
#: With fewer runs of each side nothing is clear, whether they overlap or not.
_FEWEST = 3
#: Sides as far apart as that need no more runs.
_FAR_APART = 1.1


@dataclass(frozen=True)
class Verdict:
    """What is claimed of the times of one query.

    Attributes
    ----------
    text : str
        One sentence.
    kind : str
        ``faster`` or ``slower`` (the second side, proven), ``even`` (no difference shown),
        ``same`` (the same plan), ``few`` (too few runs to tell), or ``none`` (no times that count).
    short : str
        The sentence in a few words.
    sure : float or None
        How sure it is which side is faster; None where the runs do not tell.
    faster : str or None
        Its name; None where that is not sure enough to be claimed.
    """

    text: str
    kind: str
    short: str
    sure: float | None = None
    faster: str | None = None


def judge(
    stock: Sequence[float],
    selinger: Sequence[float],
    *,
    same_plan: bool | None,
    same_answer: bool | None,
    names: tuple[str, str] = SIDES,
) -> Verdict:
    """Say which side is faster and how sure that is, or why nothing is claimed.

    Parameters
    ----------
    stock, selinger : sequence of float
        Seconds of each run, made in turn.
    same_plan : bool or None
        Whether both sides ran the same plan, if that is known.
    same_answer : bool or None
        Whether the answers are the same, if that can be told.
    names : tuple of str
        How the sides are called.

    Examples
    --------
    >>> judge([2.0], [1.0], same_plan=False, same_answer=True).text[:35]
    'Too few runs to prove a difference '
    >>> judge([2.0] * 4, [1.0] * 4, same_plan=False, same_answer=True).faster
    'Selinger'
    >>> judge([2.0] * 4, [1.0] * 4, same_plan=True, same_answer=True).text
    'Same plan: the difference is noise.'
    """
    if same_answer is False:
        text = "The answers are DIFFERENT, so the times do not count."
        return Verdict(text, "none", "different answers")
    if same_plan:
        return Verdict("Same plan: the difference is noise.", "same", "same plan")
    if not selinger or not stock:
        return Verdict("No times were measured.", "none", "not measured")
    ranges = f"{names[0]} {_range(stock)}, {names[1]} {_range(selinger)}"
    even = "no difference shown"
    if apart(selinger, stock) is None:
        return Verdict(f"No difference shown: the runs overlap ({ranges}).", "even", even)
    how_sure = sure(min(len(selinger), len(stock))) if is_large(selinger, stock) else None
    if sure(min(len(selinger), len(stock))) < LEAST_SURE:
        text = f"Too few runs to prove a difference ({ranges}): at least 4 are needed."
        return Verdict(text, "few", "too few runs", how_sure)
    if how_sure is None:
        return Verdict(f"No difference that matters: less than 3 % ({ranges}).", "even", even)
    return _claim(names, median(selinger), median(stock), how_sure, same_answer=bool(same_answer))


def _claim(
    names: tuple[str, str], ours: float, theirs: float, how_sure: float, *, same_answer: bool
) -> Verdict:
    if ours < theirs:
        kind, short = "faster", f"{theirs / ours:.{_places(theirs / ours)}f} times as fast"
        what = f"{names[1]} is {short}"
    else:
        kind, long = "slower", f"{ours / theirs:.{_places(ours / theirs)}f} times as long"
        what, short = f"{names[1]} is slower: it takes {long}", f"slower: {long}"
    same = ", with the same answer" if same_answer else ""
    # Rounded down: a little less sure than it is.
    percent = int(1000 * how_sure) / 10
    return Verdict(
        f"{what} ({seconds(ours)} instead of {seconds(theirs)}){same}: {percent:g} % sure, as the "
        "runs of the two do not overlap.",
        kind,
        short,
        how_sure,
        names[1] if kind == "faster" else names[0],
    )


def _range(times: Sequence[float]) -> str:
    low, high = seconds(min(times)), seconds(max(times))
    return low if low == high else f"{low} to {high}"


def _places(factor: float) -> int:
    """Give the decimal places of a factor: none that the runs could not tell apart."""
    return 2 if factor < 1.95 else 1


def sure(runs: int) -> float:
    """Tell how sure a difference is that all runs agree on.

    If both sides took equally long, any order of all runs would be as likely as any other. Every
    run of one side would then be faster than every run of the other in 2 of ``C(2 * runs, runs)``
    cases. This is the exact test of Mann and Whitney.

    Examples
    --------
    >>> [round(sure(runs), 3) for runs in (1, 3, 4, 5)]
    [0.0, 0.9, 0.971, 0.992]
    """
    return 1.0 - 2.0 / math.comb(2 * runs, runs) if runs else 0.0


def apart(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Divide the fastest run of the slower side by the slowest of the faster one.

    Returns
    -------
    float or None
        Above 1; None if the runs overlap or there are none.

    Examples
    --------
    >>> apart([3.0, 2.0], [0.5, 1.0]), apart([1.0, 3.0], [2.0, 2.5])
    (2.0, None)
    """
    if not one or not other:
        return None
    slower, faster = (one, other) if median(one) > median(other) else (other, one)
    slowest = max(faster)
    return min(slower) / slowest if min(slower) > slowest > 0 else None


def is_clear(one: Sequence[float], other: Sequence[float]) -> bool:
    """Tell whether more runs would not change what can be said.

    Runs that overlap do so however many follow. Sides that are far apart are told from each other
    as soon as luck is improbable.

    Examples
    --------
    >>> is_clear([1.0, 2.0, 3.0], [1.5, 2.5, 3.5]), is_clear([2.0] * 3, [1.0] * 3)
    (True, False)
    >>> is_clear([2.0] * 4, [1.0] * 4)
    True
    """
    runs = min(len(one), len(other))
    if runs < _FEWEST:
        return False
    distance = apart(one, other)
    return distance is None or (sure(runs) >= LEAST_SURE and distance >= _FAR_APART)


def is_large(one: Sequence[float], other: Sequence[float]) -> bool:
    """Tell whether the medians differ by a part that anybody would notice.

    Examples
    --------
    >>> is_large([1.0], [0.9]), is_large([1.0], [0.99])
    (True, False)
    """
    ends = sorted((median(one), median(other)))
    return ends[1] - ends[0] >= _LEAST_PART * ends[1]
