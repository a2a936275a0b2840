"""Orders of joins and plans as pictures: SVG without scripts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from selinger._render import escape, short_count

#: What an operator does to rows on their way to the next; it is said there, not drawn by itself.
_MOVES = {"Exchange": "shuffled", "BroadcastExchange": "broadcast", "Sort": "sorted"}
#: Operators that are drawn though they have one input; all others only pass rows on.
_SHOWN = re.compile(
    "Join|Aggregate|Window|Expand|Generate|Limit|TakeOrdered|^Subquery$|Cascade|Python|Pandas|"
    "^Map|FlatMap|CoGroup|Script|TransformWith|^ReusedExchange$"
)
#: Operators that may return more or fewer rows than they read, and have no counter of their own.
_UNCOUNTED = re.compile("Map|CoGroup|Script|Python|Pandas|TransformWith")
_LIMITS = re.compile("Limit|TakeOrdered")
#: Subqueries that stand elsewhere in the plan as well.
_AGAIN = ("ReusedSubquery", "SubqueryBroadcast", "SubqueryAdaptiveBroadcast")
#: A picture with more can neither be read nor be drawn soon.
_MOST_NODES = 300

TOO_LARGE = "<p>Too large to be drawn.</p>"
#: Tables that the name of a repeated part lists.
_MOST_NAMES = 3

_LINE, _INDENT, _EDGE = 26, 24, 12
_BOLD, _PLAIN = 7.8, 6.9  # pixels of a letter, of wide fonts
_THINNEST, _THICKEST = 1.0, 11.0


@dataclass(frozen=True)
class Node:
    """An operator of a plan, or a table or join in an order of joins.

    Attributes
    ----------
    name : str
        The operator; of a leaf, the table that it reads.
    symbol : str
        What kind of join it is, such as ``⋈``; empty for all else.
    rows : float or None
        Rows that it returned; None before the query has run.
    estimated : float or None
        Rows that were expected, where anybody asked.
    reduced : bool
        Whether a filter made at run time removed rows that the estimate counts.
    moves : tuple of str
        What is done to its rows before the next operator reads them, such as ``shuffled``.
    tables : tuple of str
        All tables below, in alphabetical order.
    inputs : tuple of Node
        What it reads.
    """

    name: str
    symbol: str = ""
    rows: float | None = None
    estimated: float | None = None
    reduced: bool = False
    moves: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    inputs: tuple[Node, ...] = ()

    def nodes(self) -> Iterator[Node]:
        """Walk this node and all below it."""
        left = [self]
        while left:
            node = left.pop()
            yield node
            left += reversed(node.inputs)


def tree_of(entries: Sequence[Mapping[str, Any]]) -> Node | None:
    """Read a plan or an order, of which operators that only pass rows on are left out.

    Parameters
    ----------
    entries : sequence of mapping
        Each node with its ``depth``, before its inputs: ``docs/explain.md`` defines the fields.

    Returns
    -------
    Node or None
        The root; None if there are no entries.

    Examples
    --------
    >>> plan = tree_of([{"depth": 0, "name": "Project"},
    ...                 {"depth": 1, "name": "Scan parquet", "table": "sales", "rows": 9}])
    >>> plan.name, plan.rows
    ('sales', 9.0)
    """
    waiting: list[tuple[int, Node]] = []  # roots of what was read, the last one first in the plan
    for entry in reversed(entries):
        depth, inputs = int(entry["depth"]), []
        while waiting and waiting[-1][0] > depth:
            inputs.append(waiting.pop()[1])
        waiting.append((depth, _node(entry, inputs)))
    return waiting[-1][1] if waiting else None


def _node(entry: Mapping[str, Any], inputs: list[Node]) -> Node:
    name, symbol = str(entry["name"]), str(entry.get("symbol") or "")
    rows, estimated = _number(entry.get("rows")), _number(entry.get("estimated"))
    reduced = bool(entry.get("reduced"))
    read = [node for node in inputs if node.name not in _AGAIN]
    if name == "WaitForBuildSide":
        read = read[:1]  # the other input is only waited for
    # Rows of a subquery are no rows of the operator that compares with its result.
    inputs_of = [node for node in read if node.name != "Subquery"]
    if len(read) == len(inputs_of) == 1 and not symbol and not _SHOWN.search(name):
        (only,) = read
        return replace(
            only,
            rows=only.rows if rows is None else rows,
            estimated=only.estimated if estimated is None else estimated,
            reduced=only.reduced or reduced,
            moves=(*only.moves, *filter(None, [_MOVES.get(name)])),
        )
    if rows is None and not _LIMITS.search(name) and not _UNCOUNTED.search(name):
        rows = _passed_on(name, inputs_of)
    below = [table for node in inputs_of for table in node.tables]
    if name == "ReusedExchange":
        read = []  # drawn where it is first
    leaf = str(entry.get("table") or name)
    return Node(
        name if below else leaf,
        symbol,
        rows,
        estimated,
        reduced,
        tables=tuple(sorted(below)) if below else (re.sub(r"#\d+$", "", leaf),),
        inputs=tuple(read),
    )


def _passed_on(name: str, inputs: Sequence[Node]) -> float | None:
    """Give the rows of an operator without a counter that returns the rows that it reads."""
    rows = [node.rows for node in inputs]
    known = [count for count in rows if count is not None]
    if len(rows) == 1 or (name == "Union" and len(known) == len(rows) > 0):
        return sum(known) if known else None
    return None


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def with_rows(order: Node, plan: Node | None) -> Node:
    """Add to an order of joins the rows that came, by the plan that joined in this order.

    A part of the order is found in the plan by its tables; where several parts of the plan join
    the same tables, it is not known which of them is meant.
    """
    if plan is None:
        return order
    joins = [node for node in plan.nodes() if node.symbol]
    parts = {id(node): node for join in joins for node in (join, *join.inputs)}
    times = Counter(node.tables for node in parts.values())
    known = {node.tables: node for node in parts.values() if times[node.tables] == 1}
    wanted = Counter(node.tables for node in order.nodes())

    def filled(node: Node) -> Node:
        found = known.get(node.tables) if wanted[node.tables] == 1 else None
        return replace(
            node,
            rows=found.rows if found else None,
            reduced=found.reduced if found else False,
            inputs=tuple(filled(one) for one in node.inputs),
        )

    return filled(order) if is_drawable(order) else order


def is_drawable(tree: Node) -> bool:
    """Tell whether a picture of it can be read."""
    return sum(1 for _ in tree.nodes()) <= _MOST_NODES


def changes(one: Node, other: Node) -> tuple[frozenset[int], frozenset[int]]:
    """Find the nodes of two trees that have no counterpart in the other: their ids, of each tree.

    A counterpart does the same to the same tables.
    """
    return _without(one, other), _without(other, one)


def _without(tree: Node, other: Node) -> frozenset[int]:
    left = Counter(map(_what, other.nodes()))
    found = set()
    for node in tree.nodes():
        if left[_what(node)]:
            left[_what(node)] -= 1
        else:
            found.add(id(node))
    return frozenset(found)


def _what(node: Node) -> tuple[object, ...]:
    return node.name, node.symbol, node.moves, node.tables


def pair(titles: tuple[str, str], trees: tuple[Node | None, Node | None]) -> str:
    """Draw two trees beside each other, or below each other where there is no room.

    Parameters
    ----------
    titles : tuple of str
        What stands above each; screen readers read it as well.
    trees : tuple of Node or None
        That of stock Spark and that of Selinger.

    Returns
    -------
    str
        HTML; empty if one of them is not known.
    """
    one, other = trees
    if one is None or other is None:
        return ""
    if not (is_drawable(one) and is_drawable(other)):
        return TOO_LARGE
    gone, come = changes(one, other)
    pictures = figure(titles[0], one, gone, "gone") + figure(titles[1], other, come, "come")
    return f'<div class="pair">{pictures}</div>{key(changed=bool(gone or come))}'


def figure(title: str, tree: Node, marked: frozenset[int] = frozenset(), kind: str = "") -> str:
    """Draw one tree below its title, if it can be read."""
    if not is_drawable(tree):
        return TOO_LARGE
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<div class="scroll">{svg(title, tree, marked, kind)}</div></figure>'
    )


def key(*, changed: bool) -> str:
    """Say how to read a picture."""
    rows = "Rows flow to the left. The thicker a line, the more rows, by powers of ten."
    mark = " ◆ in colour: only in this one of the two." if changed else ""
    return f'<p class="quiet">{rows}{mark}</p>'


def svg(title: str, tree: Node, marked: frozenset[int] = frozenset(), kind: str = "") -> str:
    """Draw a tree: its root at the left, the first input of a join above it, the others below.

    Parameters
    ----------
    title : str
        What screen readers read, with the number of marked nodes.
    tree : Node
        The root.
    marked : frozenset of int
        Ids of the nodes that are marked.
    kind : str
        What the marks mean: ``gone``, ``come``, or nothing.
    """
    lines: list[tuple[Node, int]] = []
    edges: list[tuple[int, int]] = []
    _place(tree, 0, lines, edges)
    width = max(_width(node, depth) for node, depth in lines)
    height = len(lines) * _LINE
    said = f"{title}: {len(lines)} parts" + (f", {len(marked)} of them changed" if marked else "")
    drawn = [_edge(lines[child], child, lines[parent], parent) for child, parent in edges]
    drawn += [
        _label(node, depth, number, kind if id(node) in marked else "")
        for number, (node, depth) in enumerate(lines)
    ]
    return (
        f'<svg role="img" aria-label="{escape(said)}" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}"><title>{escape(said)}</title>{"".join(drawn)}</svg>'
    )


def _place(
    node: Node, depth: int, lines: list[tuple[Node, int]], edges: list[tuple[int, int]]
) -> int:
    """Give each node a line, so that no line crosses another; return that of this node."""
    above = 1 if len(node.inputs) > 1 else 0
    inputs = [_place(one, depth + 1, lines, edges) for one in node.inputs[:above]]
    mine = len(lines)
    lines.append((node, depth))
    inputs += [_place(one, depth + 1, lines, edges) for one in node.inputs[above:]]
    edges += [(one, mine) for one in inputs]
    return mine


def thickness(rows: float | None) -> float:
    """Say how thick the line of so many rows is.

    Examples
    --------
    >>> [thickness(rows) for rows in (None, 0, 99, 99_999, 1e30)]
    [1.0, 1.0, 3.0, 6.0, 11.0]
    """
    return min(_THICKEST, _THINNEST + math.log10(1 + (rows or 0.0)))


def _edge(child: tuple[Node, int], line: int, parent: tuple[Node, int], to: int) -> str:
    node, depth = child
    rows = node.estimated if node.rows is None else node.rows
    x, y, left, end = _x(depth), _y(line), _x(parent[1]), _y(to)
    bend = -8 if end < y else 8
    unknown = ' class="unknown"' if rows is None else ""
    return (
        f'<path{unknown} d="M{x} {y}H{left + 8}Q{left} {y} {left} {y + bend}V{end}" '
        f'stroke-width="{thickness(rows):.1f}"/>'
    )


def _label(node: Node, depth: int, line: int, kind: str) -> str:
    x, y = _x(depth), _y(line)
    shape = (
        f'<path class="mark" d="M{x - 7} {y}l7 -7l7 7l-7 7z"/>'
        if kind
        else f'<circle cx="{x}" cy="{y}" r="4.5"/>'
    )
    name, rest = _name(node), _rest(node)
    exact = f"{node.rows:,.0f} rows came" if node.rows is not None else ""
    group = f'<g class="{kind}">' if kind else "<g>"
    tip = f"<title>{escape(f'{name}: {exact}')}</title>" if exact else ""
    return (
        f'{group}{tip}{shape}<text x="{x + _EDGE}" y="{y}" dy="4">'
        f'<tspan class="name">{escape(name)}</tspan> {escape(rest)}</text></g>'
    )


def _name(node: Node) -> str:
    if node.name == "ReusedExchange":
        more = len(node.tables) - _MOST_NAMES
        named = ", ".join(node.tables[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
        return f"the same rows of {named} again"
    return node.name if node.symbol in ("", node.name) else f"{node.symbol} {node.name}"


def _rest(node: Node) -> str:
    """Write rows, estimated and true, and what is done to them next."""
    parts = [] if node.rows is None else [_rows(node.rows)]
    if node.estimated is not None:
        after = " without the runtime filter" if node.reduced and parts else ""
        expected = short_count(node.estimated) if parts else _rows(node.estimated)
        parts.append(f"{expected} estimated{after}")
    return ", ".join([*parts, *node.moves])


def _rows(count: float) -> str:
    """Write a number of rows.

    Examples
    --------
    >>> _rows(1.2), _rows(2.4e6)
    ('1 row', '2.4 M rows')
    """
    text = short_count(count)
    return f"{text} row" if text == "1" else f"{text} rows"


def _width(node: Node, depth: int) -> float:
    return _x(depth) + _EDGE + len(_name(node)) * _BOLD + (len(_rest(node)) + 2) * _PLAIN


def _x(depth: int) -> int:
    return 10 + depth * _INDENT


def _y(line: int) -> int:
    return _LINE // 2 + line * _LINE
