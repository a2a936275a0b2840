"""What measured runs prove: which side was faster, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

#: A difference is claimed from this confidence on, and from this part of the slower side's time on.
LEAST_SURE = 0.95
_LEAST_PART = 0.03
#: With fewer runs of each side nothing is clear, whether they overlap or not.
_FEWEST = 3
#: Sides as far apart as that need no more runs.
_FAR_APART = 1.1


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
