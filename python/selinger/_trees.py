"""Orders of joins, drawn as trees."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

#: What stands for a join in the text of an order, by what it joins.
SYMBOLS = {
    "⋈": "join",
    "⟕": "left outer join",
    "⟗": "full outer join",
    "⋉": "semi join",
    "▷": "anti join",
    "∃": "existence join",
}
_GAP = 4


@dataclass(frozen=True)
class Join:
    """Two inputs joined.

    Attributes
    ----------
    symbol : str
        One of `SYMBOLS`.
    left, right : Join or str
        The inputs: joins, or names of relations.
    """

    symbol: str
    left: Join | str
    right: Join | str


def parsed(order: str) -> Join | str | None:
    """Read the text of an order; None if it is none.

    Parameters
    ----------
    order : str
        Such as ``((sales ⋈ dates) ⟕ items)``.

    Returns
    -------
    Join or str or None
        The tree, or the name of the only relation.

    Examples
    --------
    >>> parsed("((sales ⋈ dates) ⟕ items)")
    Join(symbol='⟕', left=Join(symbol='⋈', left='sales', right='dates'), right='items')
    """
    if not order.startswith("("):
        return order or None
    depth = 0
    for i, letter in enumerate(order):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        splits = letter in SYMBOLS and depth == 1 and order[i - 1] == order[i + 1 : i + 2] == " "
        if splits and order.endswith(")"):
            left, right = parsed(order[1 : i - 1]), parsed(order[i + 2 : -1])
            return Join(letter, left, right) if left and right else None
    # A name that begins with a bracket.
    return order


def drawn(tree: Join | str) -> list[str]:
    r"""Draw a tree, a line a node, its root first.

    Examples
    --------
    >>> print("\n".join(drawn(Join("⟕", Join("⋈", "sales", "dates"), "items"))))
    ⟕
    ├─ ⋈
    │  ├─ sales
    │  └─ dates
    └─ items
    """
    if isinstance(tree, str):
        return [tree]
    left, right = drawn(tree.left), drawn(tree.right)
    return [
        tree.symbol,
        *(mark + line for mark, line in zip(_marks("├─ ", "│  "), left, strict=False)),
        *(mark + line for mark, line in zip(_marks("└─ ", "   "), right, strict=False)),
    ]


def side_by_side(titles: tuple[str, str], orders: tuple[str, str]) -> str:
    """Draw two orders next to each other.

    Parameters
    ----------
    titles : tuple of str
        What stands above each.
    orders : tuple of str
        Their texts.

    Returns
    -------
    str
        The drawing; empty if either text is no order of joins.

    Examples
    --------
    >>> print(side_by_side(("written", "chosen"), ("(a ⋈ b)", "(b ⋈ a)")))
    written    chosen
    ⋈          ⋈
    ├─ a       ├─ b
    └─ b       └─ a
    """
    trees = [parsed(order) for order in orders]
    if not all(isinstance(tree, Join) for tree in trees):
        return ""
    left, right = ([title, *drawn(tree)] for title, tree in zip(titles, trees, strict=True) if tree)
    width = max(map(len, left)) + _GAP
    pairs = itertools.zip_longest(left, right, fillvalue="")
    return "\n".join(f"{one:<{width}}{other}".rstrip() for one, other in pairs)


def _marks(first: str, others: str) -> itertools.chain[str]:
    return itertools.chain([first], itertools.repeat(others))
