"""Queries as trees of dataclasses, so that they can be printed twice and made smaller.

A node prints itself in the dialect of Spark or of DuckDB. Where no portable text exists, the
node says so, and the whole query is compared with stock Spark alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from tests.fuzz.sqltypes import BOOLEAN, DOUBLE, SqlType, Value, literal

SPARK, DUCK = "spark", "duck"


@dataclass
class Node(ABC):
    """Any part of a query."""

    @abstractmethod
    def sql(self, dialect: str) -> str:
        """Print the node."""

    def children(self) -> Iterator[Node]:
        """Give the nodes right below this one."""
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, list):
                yield from (item for item in value if isinstance(item, Node))

    def walk(self) -> Iterator[Node]:
        """Give this node and all below it."""
        yield self
        for child in self.children():
            yield from child.walk()


# ---- expressions ---------------------------------------------------------------------------


@dataclass
class Expr(Node):
    """An expression; `type` is what Spark makes of it."""

    type: SqlType


@dataclass
class Col(Expr):
    """A column of a relation."""

    alias: str
    name: str

    def sql(self, dialect: str) -> str:
        return f"{self.alias}.{self.name}" if self.alias else self.name


@dataclass
class Lit(Expr):
    """A constant."""

    value: Value

    def sql(self, dialect: str) -> str:
        return literal(self.value, self.type)


@dataclass
class Op(Expr):
    """An operator or a function: a template with a place for each argument."""

    template: str
    args: list[Expr]
    portable: bool = True
    duck: str = ""

    def sql(self, dialect: str) -> str:
        template = self.duck if dialect == DUCK and self.duck else self.template
        return template.format(*(arg.sql(dialect) for arg in self.args))


@dataclass
class Logic(Expr):
    """Conditions joined by AND or OR; without any, it is true."""

    word: str
    args: list[Expr]

    def sql(self, dialect: str) -> str:
        if not self.args:
            return "true"
        return "(" + f" {self.word} ".join(arg.sql(dialect) for arg in self.args) + ")"


@dataclass
class Agg(Expr):
    """An aggregate function; without an argument it counts rows."""

    function: str
    arg: Expr | None
    distinct: bool = False
    filter: Expr | None = None
    portable: bool = True

    def sql(self, dialect: str) -> str:
        arg = "*" if self.arg is None else self.arg.sql(dialect)
        text = f"{self.function}({'DISTINCT ' if self.distinct else ''}{arg})"
        return f"{text} FILTER (WHERE {self.filter.sql(dialect)})" if self.filter else text


@dataclass
class Over(Expr):
    """A window function."""

    function: str
    args: list[Expr]
    partition: list[Expr]
    order: list[OrderKey]
    frame: str = ""
    total: bool = False
    portable: bool = True

    def sql(self, dialect: str) -> str:
        args = ", ".join(arg.sql(dialect) for arg in self.args)
        if self.function == "count" and not args:
            args = "*"
        parts = []
        if self.partition:
            parts.append("PARTITION BY " + ", ".join(e.sql(dialect) for e in self.partition))
        if self.order:
            parts.append("ORDER BY " + ", ".join(e.sql(dialect) for e in self.order))
            if self.frame:
                parts.append(self.frame)
        return f"{self.function}({args}) OVER ({' '.join(parts)})"


@dataclass
class InQuery(Expr):
    """`value` [NOT] IN (`query`)."""

    value: Expr
    query: Query
    negated: bool

    def sql(self, dialect: str) -> str:
        word = "NOT IN" if self.negated else "IN"
        return f"({self.value.sql(dialect)} {word} ({self.query.sql(dialect)}))"


@dataclass
class Exists(Expr):
    """[NOT] EXISTS (`query`)."""

    query: Query
    negated: bool

    def sql(self, dialect: str) -> str:
        return f"({'NOT ' if self.negated else ''}EXISTS ({self.query.sql(dialect)}))"


@dataclass
class Scalar(Expr):
    """A query of one value."""

    query: Query

    def sql(self, dialect: str) -> str:
        return f"({self.query.sql(dialect)})"


@dataclass
class OrderKey(Node):
    """One key of an ORDER BY; where NULL goes is always said, as the defaults differ."""

    expr: Expr
    descending: bool
    nulls_first: bool

    def sql(self, dialect: str) -> str:
        direction = "DESC" if self.descending else "ASC"
        nulls = "FIRST" if self.nulls_first else "LAST"
        return f"{self.expr.sql(dialect)} {direction} NULLS {nulls}"


# ---- relations -----------------------------------------------------------------------------


@dataclass
class Relation(Node):
    """What stands in FROM."""


@dataclass
class Named(Relation):
    """A table, a view or a common table expression."""

    name: str
    alias: str

    def sql(self, dialect: str) -> str:
        return f"{self.name} {self.alias}"


@dataclass
class Derived(Relation):
    """A query in FROM."""

    query: Query
    alias: str

    def sql(self, dialect: str) -> str:
        return f"({self.query.sql(dialect)}) {self.alias}"


@dataclass
class Join(Relation):
    """A join of two relations; `using` replaces the condition."""

    kind: str
    left: Relation
    right: Relation
    on: Expr | None
    using: str = ""

    def sql(self, dialect: str) -> str:
        kind = self.kind
        if dialect == DUCK:
            kind = kind.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
        right = self.right.sql(dialect)
        if isinstance(self.right, Join):
            right = f"({right})"
        text = f"{self.left.sql(dialect)} {kind} JOIN {right}"
        if self.using:
            return f"{text} USING ({self.using})"
        return f"{text} ON {self.on.sql(dialect)}" if self.on else text

    @property
    def keeps_right(self) -> bool:
        """Whether the columns of the right side can be read above."""
        return self.kind not in ("LEFT SEMI", "LEFT ANTI")


# ---- queries -------------------------------------------------------------------------------


@dataclass
class Query(Node):
    """Anything that gives rows."""


@dataclass
class Item(Node):
    """One column of a SELECT."""

    expr: Expr
    name: str

    def sql(self, dialect: str) -> str:
        return f"{self.expr.sql(dialect)} AS {self.name}"


@dataclass
class KeySet(Node):
    """One set of GROUPING SETS."""

    keys: list[Expr]

    def sql(self, dialect: str) -> str:
        return "(" + ", ".join(key.sql(dialect) for key in self.keys) + ")"


@dataclass
class Select(Query):
    """SELECT; `grouping` is empty, ROLLUP, CUBE or GROUPING SETS."""

    items: list[Item]
    source: Relation
    where: list[Expr] = field(default_factory=list)
    distinct: bool = False
    group: list[Expr] = field(default_factory=list)
    grouping: str = ""
    sets: list[KeySet] = field(default_factory=list)
    having: list[Expr] = field(default_factory=list)
    hint: str = ""
    portable_rows: bool = True

    @property
    def portable(self) -> bool:
        """Whether DuckDB means the same: it gives a total of no rows, and Spark gives no row."""
        totals = self.grouping in ("ROLLUP", "CUBE") or any(not each.keys for each in self.sets)
        return self.portable_rows and not totals

    def sql(self, dialect: str) -> str:
        hint = f"/*+ {self.hint} */ " if self.hint and dialect == SPARK else ""
        text = f"SELECT {hint}{'DISTINCT ' if self.distinct else ''}"
        text += ", ".join(item.sql(dialect) for item in self.items) or "1 AS one"
        text += f" FROM {self.source.sql(dialect)}"
        if self.where:
            text += " WHERE " + " AND ".join(e.sql(dialect) for e in self.where)
        text += self._grouped(dialect)
        if self.having:
            text += " HAVING " + " AND ".join(e.sql(dialect) for e in self.having)
        return text

    def _grouped(self, dialect: str) -> str:
        if self.grouping == "GROUPING SETS" and self.sets:
            sets = ", ".join(each.sql(dialect) for each in self.sets)
            return f" GROUP BY GROUPING SETS ({sets})"
        keys = ", ".join(e.sql(dialect) for e in self.group)
        if not keys:
            return ""
        rolled = self.grouping in ("ROLLUP", "CUBE")
        return f" GROUP BY {self.grouping}({keys})" if rolled else f" GROUP BY {keys}"


@dataclass
class SetOp(Query):
    """UNION, INTERSECT or EXCEPT, with ALL or without."""

    kind: str
    left: Query
    right: Query

    def sql(self, dialect: str) -> str:
        return f"({self.left.sql(dialect)}) {self.kind} ({self.right.sql(dialect)})"


@dataclass
class Top(Query):
    """The first rows of a query by an order."""

    query: Query
    order: list[OrderKey]
    limit: int | None = None
    offset: int | None = None

    def sql(self, dialect: str) -> str:
        text = f"SELECT * FROM ({self.query.sql(dialect)}) o"
        if self.order:
            text += " ORDER BY " + ", ".join(key.sql(dialect) for key in self.order)
        text += "" if self.limit is None else f" LIMIT {self.limit}"
        return text if self.offset is None else f"{text} OFFSET {self.offset}"


@dataclass
class Cte(Node):
    """One common table expression."""

    name: str
    query: Query

    def sql(self, dialect: str) -> str:
        return f"{self.name} AS ({self.query.sql(dialect)})"


@dataclass
class With(Query):
    """A query with common table expressions."""

    ctes: list[Cte]
    body: Query

    def sql(self, dialect: str) -> str:
        ctes = ",\n  ".join(cte.sql(dialect) for cte in self.ctes)
        return f"WITH {ctes}\n{self.body.sql(dialect)}" if ctes else self.body.sql(dialect)


# ---- what a tree says of itself ------------------------------------------------------------


def is_portable(tree: Node) -> bool:
    """Tell whether DuckDB means the same by this query."""
    return all(getattr(node, "portable", True) for node in tree.walk())


def is_ordered(tree: Query) -> bool:
    """Tell whether the order of the rows is part of the answer."""
    body = tree.body if isinstance(tree, With) else tree
    return isinstance(body, Top) and bool(body.order)


def leaves_sign_of_zero_open(tree: Node) -> bool:
    """Tell whether -0.0 and 0.0 may both be right somewhere in the answer.

    They are equal, so which of them is the smallest, or comes first in an order, is open. All
    else keeps a value as it is, or makes one of it that does not depend on the order of rows.
    """
    return any(map(_picks_a_zero, tree.walk()))


def _picks_a_zero(node: Node) -> bool:
    if isinstance(node, Agg):
        return node.function in ("min", "max") and node.type == DOUBLE
    if isinstance(node, Over):
        return node.total or (node.function in ("min", "max") and node.type == DOUBLE)
    return isinstance(node, Top)


def used_names(tree: Node) -> set[str]:
    """Give the names of tables that a query reads."""
    return {node.name for node in tree.walk() if isinstance(node, Named)}


def true() -> Lit:
    """Give the condition that always holds."""
    return Lit(BOOLEAN, value=True)
