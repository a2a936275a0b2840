"""
The cost model of joins as equations: what each measured step says about the model's constants.

A step (a shuffle, a sort, a join by one operator …) costs a sum of constants of ``JoinCost``, each
times a number that follows from rows and bytes. So measured times are linear equations in the
constants, and least squares finds the constants that fit them best. The numbers here are those of
``src/main/scala/io/selinger/cost/JoinCost.scala`` for one machine; `benchmarks.operators` compares
them with the costs that explain shows, so that the two cannot drift apart unseen.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.paths import ROOT

JOIN_COST = ROOT / "src" / "main" / "scala" / "io" / "selinger" / "cost" / "JoinCost.scala"
UNKNOWN = frozenset(("networkByteNs", "evaluateNs", "copyNs", "copyByteNs", "textNs"))
"""Constants that no case tells from others: nothing is sent, computed or copied here."""

SWEEPS = 20_000

Array = NDArray[np.float64]
Terms = Counter[str]
"""How often each constant is paid for: in nanoseconds' worth, so `Seconds` count a million."""


@dataclass(frozen=True)
class Side:
    """One input: its rows, their width in Spark's format, whether its key is one whole number."""

    rows: int
    columns: int
    single_key: bool = True

    @property
    def bytes(self) -> float:
        """Rows times width: eight bytes a column, the key included, and eight for nulls."""
        return self.rows * 8.0 * (self.columns + 2)


def constants() -> dict[str, float]:
    """
    Read the constants of ``JoinCost`` from its source.

    Those named ``…Ns`` are in nanoseconds; those named ``…Seconds`` are given in milliseconds, so
    that all are of a similar size.
    """
    source = JOIN_COST.read_text(encoding="utf-8")
    found = re.findall(r"val (\w+(?:Ns|Seconds))(?:: Double)? = ([\d.]+)", source)
    return {name: float(text) * _unit(name) for name, text in found}


def _unit(name: str) -> int:
    return 1000 if name.endswith("Seconds") else 1


def paid(**amounts: float) -> Terms:
    """Write terms: ``paid(shuffleNs=rows)``."""
    return Terms(amounts)


def shared(terms: Terms, slots: int) -> Terms:
    """Divide what all slots do together."""
    return Terms({name: amount / slots for name, amount in terms.items()})


def step(name: str, side: Side) -> Terms:
    """
    Scan, shuffle, read again or build a hash table of a side: so much a row, so much a byte.

    The model has no scan, so its constants are ours.
    """
    return paid(**{f"{name}Ns": side.rows, f"{name}ByteNs": side.bytes})


def sort(side: Side, slots: int) -> Terms:
    comparisons = math.log2(max(2.0, side.rows / slots))
    terms = paid(mergeNs=side.rows, sortByteNs=side.bytes)
    key = paid(radixSortNs=side.rows) if side.single_key else paid(sortNs=side.rows * comparisons)
    return terms + key


def join(operator: str, built: Side, streamed: Side, slots: int) -> Terms:
    if operator.startswith("BroadcastHashJoin"):
        once = step("build", built) + step("collect", built)
        once += paid(networkByteNs=built.bytes, broadcastSeconds=1e6)
        return once + shared(paid(probeNs=streamed.rows), slots)
    both = step("shuffle", built) + step("shuffle", streamed)
    if operator.startswith("ShuffledHashJoin"):
        both += step("build", built) + paid(probeNs=streamed.rows)
    else:
        both += sort(built, slots) + sort(streamed, slots)
    return shared(both, slots) + paid(stageSeconds=1e6)


@dataclass(frozen=True)
class Measured:
    """A step, what it pays for, and the time it took."""

    name: str
    terms: Mapping[str, float]
    seconds: float

    def predicted(self, known: Mapping[str, float]) -> float:
        """Give its seconds by these constants."""
        return sum(known.get(name, 0.0) * amount for name, amount in self.terms.items()) * 1e-9


def costs(operators: Iterable[str], built: Side, streamed: Side, slots: int) -> dict[str, float]:
    """Give what these equations make of the model's constants: it must be what explain says."""
    known = constants()
    return {
        operator: Measured(operator, join(operator, built, streamed, slots), 1.0).predicted(known)
        for operator in operators
    }


def calibrate(cases: Sequence[Measured]) -> dict[str, Any]:
    """Fit the constants to all measured times; give them beside those in the code, and errors."""
    code = constants()
    fixed = {name: code[name] for name in UNKNOWN if name in code}
    fitted = fit(cases, fixed)
    errors = [abs(case.predicted({**fitted, **fixed}) / case.seconds - 1) for case in cases]
    return {
        "constants": {
            name: {"code": value, "fitted": fitted.get(name)} for name, value in code.items()
        },
        "fit": {
            "cases": len(cases),
            "median_error": median(errors),
            "worst_error": max(errors),
            "not_in_the_model": {n: value for n, value in fitted.items() if n not in code},
        },
    }


def scala_lines(constants: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    """Write fitted constants as lines of ``JoinCost``, but for those that came out as 0."""
    return [
        f"  private val {name} = {float(f'{value / _unit(name):.3g}')}"
        for name, known in constants.items()
        if (value := known["fitted"])
    ]


def fit(cases: Sequence[Measured], fixed: Mapping[str, float]) -> dict[str, float]:
    """
    Find the constants, none below zero, with the least squared relative errors.

    Those in `fixed` keep their value.
    """
    names = sorted({name for case in cases for name in case.terms} - set(fixed))
    matrix = np.array([[case.terms.get(name, 0.0) * 1e-9 for name in names] for case in cases])
    target = np.array([case.seconds - case.predicted(fixed) for case in cases])
    weights = 1.0 / np.array([case.seconds for case in cases])
    found = nonnegative_least_squares(matrix * weights[:, None], target * weights)
    return dict(zip(names, map(float, found), strict=True))


def nonnegative_least_squares(matrix: Array, target: Array) -> Array:
    """Minimise ``|matrix x - target|`` over ``x >= 0``, one coordinate after the other."""
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    scaled = matrix / scale
    gram, aim = scaled.T @ scaled, scaled.T @ target
    x = np.zeros(len(aim))
    for _ in range(SWEEPS):
        before = x.copy()
        for at in range(len(x)):
            if gram[at, at] > 0:
                x[at] = max(0.0, x[at] + (aim[at] - gram[at] @ x) / gram[at, at])
        if np.abs(x - before).max() <= 1e-12 * max(1.0, np.abs(x).max()):
            break
    found: Array = x / scale
    return found
