"""Selinger's decisions, read from the text of `df.explain()`."""

from __future__ import annotations

import json
from typing import Any

TITLE = "== Extended Information (Selinger) =="


def read_decisions(explained: str) -> tuple[str, list[dict[str, Any]]]:
    r"""
    Part an explain text into the plan and the decisions.

    Parameters
    ----------
    explained : str
        What ``df.explain()`` prints, with ``spark.selinger.explain.format`` set to ``json``.

    Returns
    -------
    plan : str
        The text without Selinger's section.
    decisions : list of dict
        One a decision; empty if there is no section.

    Examples
    --------
    >>> text = 'Range\n== Extended Information (Selinger) ==\n{"decisions": [{"rule": "a"}]}'
    >>> read_decisions(text)
    ('Range', [{'rule': 'a'}])
    """
    before, found, after = explained.partition(TITLE)
    if not found:
        return explained.strip(), []
    for line in after.splitlines():
        if line.lstrip().startswith("{"):
            body = json.loads(line)
            return before.strip(), list(body.get("decisions", []))
    return before.strip(), []


def describe(decision: dict[str, Any]) -> str:
    """
    Say a decision in a few words.

    Parameters
    ----------
    decision : dict
        One of `read_decisions`.

    Returns
    -------
    str
        Such as ``SortMergeJoin → BroadcastHashJoin(right), BROADCAST_FITS``.

    Examples
    --------
    >>> describe({"stock": "SortMergeJoin", "chosen": "ShuffledHashJoin", "reason": "HASH_FITS"})
    'SortMergeJoin → ShuffledHashJoin, HASH_FITS'
    """
    stock, chosen = decision.get("stock"), decision.get("chosen")
    reason = decision.get("reason", "")
    if chosen and stock and stock != chosen:
        return f"{stock} → {chosen}, {reason}"
    return f"{chosen or stock or decision.get('rule', '')}, {reason}"
