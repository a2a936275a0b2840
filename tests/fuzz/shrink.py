"""Make a failure small: settings, query, tables, columns and rows, as long as it still fails.

What is tried need not be a valid query: then stock Spark refuses it, which is another failure.
References to what has been taken out are taken out with it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from tests.fuzz.options import MODE, Conf
from tests.fuzz.sqltypes import BOOLEAN
from tests.fuzz.tree import (
    Agg,
    Col,
    Cte,
    Derived,
    Expr,
    Item,
    Join,
    Lit,
    Named,
    Node,
    Op,
    Over,
    Query,
    Relation,
    Select,
    SetOp,
    Top,
    With,
    true,
    used_names,
)

if TYPE_CHECKING:
    from tests.fuzz.data import Table

_A = TypeVar("_A")

#: Changes a node where it stands.
Edit = Callable[[Any], None]


@dataclass(frozen=True)
class Failure:
    """What fails: a query over tables, the settings of both sides, and Selinger's own."""

    tables: list[Table]
    query: Query
    common: Conf
    conf: Conf


def shrink(failure: Failure, fails: Callable[[Failure], bool], seconds: float = 90.0) -> Failure:
    """Make a failure as small as the time allows.

    Parameters
    ----------
    failure : Failure
        One for which `fails` holds.
    fails : callable
        Whether what it is given fails in the same way.
    seconds : float
        When to stop at the latest.
    """
    end = perf_counter() + seconds

    def attempt(candidate: Failure) -> bool:
        return perf_counter() < end and fails(candidate)

    size = None
    while size != _size(failure) and perf_counter() < end:
        size = _size(failure)
        failure = _fewer_settings(failure, attempt)
        failure = _smaller_query(failure, attempt)
        failure = _fewer_data(failure, attempt)
    return failure


def _size(failure: Failure) -> tuple[int, int, int]:
    cells = sum(len(t.columns) * (len(t.rows) + 1) + t.files for t in failure.tables)
    return len(failure.query.sql("spark")), cells, len(failure.conf) + len(failure.common)


# ---- lists ---------------------------------------------------------------------------------


def fewest(items: Sequence[_A], fails: Callable[[list[_A]], bool]) -> list[_A]:
    """Leave out as many items as can be: delta debugging by halves, quarters and so on.

    Examples
    --------
    >>> fewest(list(range(100)), lambda some: 17 in some and 71 in some)
    [17, 71]
    """
    kept = list(items)
    if kept and fails([]):
        return []
    parts = 2
    while len(kept) > 1:
        size = max(1, len(kept) // parts)
        for start in range(0, len(kept), size):
            rest = kept[:start] + kept[start + size :]
            if rest and fails(rest):
                kept, parts = rest, max(2, parts - 1)
                break
        else:
            if size == 1:
                break
            parts = min(len(kept), parts * 2)
    return kept


def _fewer_settings(failure: Failure, fails: Callable[[Failure], bool]) -> Failure:
    own = [key for key in failure.conf if key != MODE]

    def with_own(keys: list[str]) -> Failure:
        conf = {key: value for key, value in failure.conf.items() if key in (*keys, MODE)}
        return replace(failure, conf=conf)

    failure = with_own(fewest(own, lambda keys: fails(with_own(keys))))
    both = list(failure.common)

    def with_both(keys: list[str]) -> Failure:
        return replace(failure, common={key: failure.common[key] for key in keys})

    return with_both(fewest(both, lambda keys: fails(with_both(keys))))


# ---- data ----------------------------------------------------------------------------------


def _fewer_data(failure: Failure, fails: Callable[[Failure], bool]) -> Failure:
    used = used_names(failure.query)
    failure = replace(failure, tables=[t for t in failure.tables if t.name in used])
    for i in range(len(failure.tables)):
        failure = _smaller_table(failure, i, fails)
    return failure


def _smaller_table(failure: Failure, i: int, fails: Callable[[Failure], bool]) -> Failure:
    def having(table: Table) -> Failure:
        return replace(failure, tables=[*failure.tables[:i], table, *failure.tables[i + 1 :]])

    table = failure.tables[i]
    if table.files > 1 and fails(having(table.copy(files=1))):
        table = table.copy(files=1)
    whole = table
    rows = fewest(whole.rows, lambda rows: fails(having(whole.copy(rows=rows))))
    table = table.copy(rows=rows)
    text = failure.query.sql("spark")
    needed = [j for j, c in enumerate(table.columns) if f".{c.name}" in text or "USING" in text]
    narrow = table.copy(columns=needed or [0])
    return having(narrow if fails(having(narrow)) else table)


# ---- queries -------------------------------------------------------------------------------


def _smaller_query(failure: Failure, fails: Callable[[Failure], bool]) -> Failure:
    """Take the first edit that still fails, and go on from there until none does."""
    seen = {failure.query.sql("spark")}
    start = 0
    while True:
        edits = smaller(failure.query, failure.tables)
        # What failed to help before this place hardly helps now; it is tried again at the end.
        for number, make in enumerate([*edits[start:], *edits[:start]]):
            query = make()
            text = query.sql("spark")
            if text in seen:
                continue
            seen.add(text)
            candidate = replace(failure, query=query)
            if fails(candidate):
                failure, start = candidate, (start + number) % len(edits)
                break
        else:
            return failure


def smaller(query: Query, tables: Sequence[Table]) -> list[Callable[[], Query]]:
    """Give makers of queries that are one step smaller, those that lose most first."""
    nodes = list(query.walk())
    ctes = query.ctes if isinstance(query, With) else []
    makers: list[Callable[[], Query]] = [
        partial(_cleaned, With(ctes, node), tables) for node in nodes[1:] if isinstance(node, Query)
    ]
    for index, node in enumerate(nodes):
        makers += [partial(_edited, query, index, edit, tables) for edit in _edits(node)]
    return makers


def _edited(query: Query, index: int, edit: Edit, tables: Sequence[Table]) -> Query:
    changed = copy.deepcopy(query)
    edit(_at(changed, index))
    return _cleaned(changed, tables)


def _at(query: Query, index: int) -> Any:
    for i, node in enumerate(query.walk()):
        if i == index:
            return node
    raise IndexError(index)


def _edits(node: Node) -> Iterator[Edit]:
    for each in fields(node):
        value = getattr(node, each.name)
        if isinstance(value, list):
            yield from _list_edits(each.name, value, node)
        elif isinstance(value, Node):
            for i in range(len(list(_replacements(value)))):
                yield _replacing(each.name, None, i)
            if each.name == "filter":
                yield _setting("filter", None)
    yield from _flag_edits(node)


def _list_edits(name: str, value: list[Any], node: Node) -> Iterator[Edit]:
    if not (isinstance(node, Op) and name == "args"):
        if len(value) > 2:
            yield _keeping(name, range(len(value) // 2))
            yield _keeping(name, range(len(value) // 2, len(value)))
        for i in range(len(value)):
            yield _keeping(name, [j for j in range(len(value)) if j != i])
    for i, item in enumerate(value):
        if isinstance(item, Node):
            for j in range(len(list(_replacements(item)))):
                yield _replacing(name, i, j)


def _flag_edits(node: Node) -> Iterator[Edit]:
    if isinstance(node, (Select, Agg)) and node.distinct:
        yield _setting("distinct", False)
    if isinstance(node, Select) and node.hint:
        yield _setting("hint", "")
    if isinstance(node, Select) and node.grouping:
        yield _setting("grouping", "")
    if isinstance(node, Top) and node.limit is not None:
        yield _setting("limit", None)
    if isinstance(node, Top) and node.offset is not None:
        yield _setting("offset", None)
    if isinstance(node, Over) and node.frame:
        yield _setting("frame", "")
    if isinstance(node, Join) and node.kind not in ("INNER", "CROSS"):
        yield _setting("kind", "INNER")
    if isinstance(node, SetOp):
        for i in range(len(_outputs(node) or [])):
            yield partial(_drop_column, i=i)


def _setting(name: str, value: Any) -> Edit:
    return lambda node: setattr(node, name, value)


def _keeping(name: str, kept: Sequence[int]) -> Edit:
    return lambda node: setattr(node, name, [getattr(node, name)[i] for i in kept])


def _replacing(name: str, place: int | None, choice: int) -> Edit:
    def edit(node: Any) -> None:
        if place is None:
            setattr(node, name, list(_replacements(getattr(node, name)))[choice])
        else:
            items = getattr(node, name)
            items[place] = list(_replacements(items[place]))[choice]

    return edit


def _replacements(node: Node) -> Iterator[Node]:
    """Give what may stand in a node's place: a part of it of the same sort, or a constant."""
    sort = next((s for s in (Expr, Relation, Query) if isinstance(node, s)), None)
    if sort is None:
        return
    yield from (child for child in node.children() if isinstance(child, sort))
    if isinstance(node, Expr) and not isinstance(node, (Lit, Col)):
        yield true() if node.type == BOOLEAN else Lit(node.type, None)


def _drop_column(query: Query, i: int) -> None:
    if isinstance(query, SetOp):
        _drop_column(query.left, i)
        _drop_column(query.right, i)
    elif isinstance(query, Top):
        _drop_column(query.query, i)
    elif isinstance(query, With):
        _drop_column(query.body, i)
    elif isinstance(query, Select) and i < len(query.items):
        del query.items[i]


# ---- references to what is gone ------------------------------------------------------------


def _outputs(query: Node) -> list[str]:
    if isinstance(query, SetOp):
        return _outputs(query.left)
    if isinstance(query, Top):
        return _outputs(query.query)
    if isinstance(query, With):
        return _outputs(query.body)
    return [item.name for item in query.items] if isinstance(query, Select) else []


def _cleaned(query: Query, tables: Sequence[Table]) -> Query:
    """Take out what refers to a column that is not there any more, until nothing does."""
    query = copy.deepcopy(query)
    while True:
        known = _columns_by_alias(query, tables)
        if not _prune(query, known):
            return _without_unused_ctes(query)


def _columns_by_alias(query: Query, tables: Sequence[Table]) -> dict[str, set[str]]:
    ctes = {n.name: set(_outputs(n.query)) for n in query.walk() if isinstance(n, Cte)}
    known = {t.name: {column.name for column in t.columns} for t in tables} | ctes
    found: dict[str, set[str]] = {"o": set()}
    for node in query.walk():
        if isinstance(node, Named):
            found[node.alias] = known.get(node.name, set())
        elif isinstance(node, Derived):
            found[node.alias] = set(_outputs(node.query))
        elif isinstance(node, Top):
            found["o"] |= set(_outputs(node.query))
    return found


def _prune(query: Query, known: dict[str, set[str]]) -> bool:
    def dangling(node: Node) -> bool:
        return any(
            isinstance(n, Col) and n.alias and n.name not in known.get(n.alias, set())
            for n in node.walk()
            if not isinstance(n, Query)
        )

    pruned = False
    for node in list(query.walk()):
        for each in fields(node):
            value = getattr(node, each.name)
            if isinstance(value, list) and not isinstance(node, Op):
                kept = [v for v in value if not (_droppable(v) and dangling(v))]
                if len(kept) < len(value):
                    setattr(node, each.name, kept)
                    pruned = True
            elif isinstance(value, Expr) and dangling(value) and not isinstance(node, Item):
                instead = true() if value.type == BOOLEAN else Lit(value.type, None)
                setattr(node, each.name, instead)
                pruned = True
    return pruned


def _droppable(value: Any) -> bool:
    return isinstance(value, Node) and not isinstance(value, (Query, Relation, Cte))


def _without_unused_ctes(query: Query) -> Query:
    if not isinstance(query, With):
        return query
    names = used_names(query)
    ctes = [cte for cte in query.ctes if cte.name in names]
    body = query.body
    if not ctes and isinstance(body, With):
        return _without_unused_ctes(body)
    return With(ctes, body)


__all__ = ["Failure", "fewest", "shrink", "smaller"]
