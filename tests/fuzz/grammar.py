"""Random queries over given tables; their answers do not depend on the order of rows.

A share of the queries is risky: parts of them raise an error in ANSI mode for some rows.

What would depend on it is not generated: LIMIT and row numbers only by all columns, sums of
floating-point numbers only where they are exact, sums of decimals only where they have room.
An upper bound of rows is kept for each relation, and what may grow too large is not joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from tests.fuzz import data
from tests.fuzz.sqltypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    SqlType,
    Value,
    decimal,
)
from tests.fuzz.tree import (
    Agg,
    Col,
    Cte,
    Derived,
    Exists,
    Expr,
    InQuery,
    Item,
    Join,
    KeySet,
    Lit,
    Logic,
    Named,
    Op,
    OrderKey,
    Over,
    Query,
    Relation,
    Scalar,
    Select,
    SetOp,
    Top,
    With,
    true,
)

_A = TypeVar("_A")

#: Rows that a relation may have, and pairs that a join without a key may look at.
MOST_ROWS = 12_000
MOST_PAIRS = 150_000

_COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
_ROW_FRAMES = [
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
]
_PEER_FRAMES = ["", "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"]


@dataclass(frozen=True)
class ScopeColumn:
    """A column in sight: `most` bounds the rows that share a value of it."""

    alias: str
    name: str
    type: SqlType
    tame: bool
    most: float
    samples: tuple[Value, ...]

    @property
    def col(self) -> Col:
        """The column as an expression."""
        return Col(self.type, self.alias, self.name)


@dataclass
class Source:
    """A relation with the columns that can be read of it, and a bound of its rows."""

    relation: Relation
    columns: list[ScopeColumn]
    rows: float


@dataclass
class Result:
    """A query with its columns, whose alias is not known yet, and a bound of its rows."""

    query: Query
    columns: list[ScopeColumn]
    rows: float


class Grammar:
    """Makes random queries over some tables."""

    def __init__(self, rng: Random, tables: Sequence[data.Table]) -> None:
        self.rng = rng
        self.risky = rng.random() < 0.4
        self.aliases = 0
        self.names = 0
        self.tables = [self._known_table(table) for table in tables]
        self.ctes: list[tuple[str, list[ScopeColumn], float]] = []

    # ---- small choices ---------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        """Be true in this share of calls."""
        return self.rng.random() < share

    def one(self, choices: Sequence[_A]) -> _A:
        """Choose one."""
        return self.rng.choice(choices)

    def some(self, choices: Sequence[_A], least: int, most: int) -> list[_A]:
        """Choose several different ones."""
        count = min(len(choices), self.rng.randint(least, most))
        return self.rng.sample(list(choices), count)

    def _known_table(self, table: data.Table) -> tuple[str, list[ScopeColumn], float]:
        columns = [
            ScopeColumn(
                "",
                column.name,
                column.type,
                column.tame,
                table.most_alike[i],
                tuple(data.samples(table, i, self.rng)),
            )
            for i, column in enumerate(table.columns)
        ]
        return table.name, columns, len(table.rows)

    def _alias(self, prefix: str) -> str:
        self.aliases += 1
        return f"{prefix}{self.aliases}"

    def _name(self) -> str:
        self.names += 1
        return f"c{self.names}"

    # ---- whole queries ---------------------------------------------------------------------

    def query(self) -> Query:
        """Make a query."""
        ctes = []
        if self.chance(0.22):
            for _ in range(self.one([1, 1, 2])):
                result = self.rows_of(2, [], None)
                name = self._alias("q")
                ctes.append(Cte(name, result.query))
                self.ctes.append((name, result.columns, result.rows))
        result = self.rows_of(3, [], None, outermost=True)
        body = result.query
        if self.chance(0.25) and all(column.tame for column in result.columns):
            body = self._top(result, limited=self.chance(0.6)).query
        return With(ctes, body)

    def _top(self, result: Result, limited: bool) -> Result:
        """Order by all columns, so that rows which tie are the same."""
        keys = [
            OrderKey(Col(c.type, "o", c.name), self.chance(0.4), self.chance(0.5))
            for c in self.some(result.columns, len(result.columns), len(result.columns))
        ]
        limit = self.rng.randint(0, 15) if limited else None
        offset = self.rng.randint(1, 9) if self.chance(0.15) else None
        rows = result.rows if limit is None else min(limit, result.rows)
        return Result(Top(result.query, keys, limit, offset), result.columns, rows)

    def rows_of(
        self,
        depth: int,
        outer: Sequence[ScopeColumn],
        want: list[SqlType] | None,
        outermost: bool = False,
    ) -> Result:
        """Make a query that may read `outer`, of columns of the types wanted, if any are."""
        roll = self.rng.random()
        if depth > 1 and roll < 0.1:
            return self._set_operation(depth - 1, want)
        if depth > 1 and want is None:
            special = self._special(depth)
            if special is not None:
                return special
        source = self._source(depth, most=4 if depth > 2 else 1)
        where = self._conditions(source, depth)
        if want is None and roll < 0.48:
            return self._grouped(source, where, outermost)
        if want is None and roll < 0.60:
            result = self._windowed(source, where, outermost)
            return self._first_of_each(result) if self.chance(0.3) else result
        result = self._plain(source, where, want, depth)
        if depth > 1 and not outermost and self.chance(0.08):
            return self._top(result, limited=True)
        return result

    def _special(self, depth: int) -> Result | None:
        """Make a query of a form that some rule looks for, in some of the calls."""
        for make in (
            self._several_aggregations,
            self._similar_groups,
            self._groups_by_key,
            self._first_rows,
        ):
            made = make(depth) if self.chance(0.07) else None
            if made is not None:
                return made
        return None

    def _set_operation(self, depth: int, want: list[SqlType] | None) -> Result:
        left = self.rows_of(depth, [], want)
        types = [column.type for column in left.columns]
        right = self.rows_of(depth, [], types)
        kind = self.one(["UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT"])
        if kind in ("INTERSECT", "EXCEPT") and self.chance(0.4):
            kind += " ALL"
        rows = left.rows + right.rows if kind.startswith("UNION") else left.rows
        columns = [
            replace(a, tame=a.tame and b.tame, most=a.most + b.most)
            for a, b in zip(left.columns, right.columns, strict=True)
        ]
        return Result(SetOp(kind, left.query, right.query), columns, rows)

    def _plain(
        self, source: Source, where: list[Expr], want: list[SqlType] | None, depth: int
    ) -> Result:
        items, columns = [], []
        wanted: Sequence[SqlType | None] = want or [None] * self.rng.randint(1, 5)
        for kind in wanted:
            expr, tame, column = self._output(source.columns, kind, depth)
            name = self._name()
            items.append(Item(expr, name))
            most = column.most if column else source.rows
            known = column.samples if column else ()
            columns.append(ScopeColumn("", name, expr.type, tame, most, known))
        distinct = self.chance(0.2)
        if distinct and len(columns) == 1:
            columns = [replace(columns[0], most=1)]
        query = Select(items, source.relation, where, distinct, hint=self._hint(source))
        return Result(query, columns, source.rows)

    def _output(
        self, columns: Sequence[ScopeColumn], kind: SqlType | None, depth: int
    ) -> tuple[Expr, bool, ScopeColumn | None]:
        fitting = [c for c in columns if kind is None or c.type == kind]
        if fitting and self.chance(0.55 if self.risky else 0.75):
            column = self.one(fitting)
            return column.col, column.tame, column
        if kind is None and depth > 1 and self.chance(0.1):
            return self._scalar(columns), False, None
        if self.risky and self.chance(0.4):
            raising = self._raising(columns, kind)
            if raising is not None:
                return raising, False, None
        expr, tame = self.value(columns, kind or self.one(columns).type, 2)
        return expr, tame, None

    def _hint(self, source: Source) -> str:
        if not self.chance(0.1):
            return ""
        aliases = sorted({column.alias for column in source.columns})
        hints = ["BROADCAST", "MERGE", "SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL"]
        return ", ".join(f"{self.one(hints)}({alias})" for alias in self.some(aliases, 1, 2))

    # ---- FROM ------------------------------------------------------------------------------

    def _source(self, depth: int, most: int) -> Source:
        source = self._leaf(depth)
        for _ in range(self.one([0, 1, 1, 1, 2, 2, 3, 4][: 3 * most - 2])):
            right = self._leaf(depth)
            if depth > 2 and self.chance(0.12):
                # A join on the right side makes a bushy tree.
                right = self._joined(right, self._leaf(depth), depth) or right
            source = self._joined(source, right, depth) or source
        return source

    def _leaf(self, depth: int) -> Source:
        if self.ctes and self.chance(0.4):
            return self._named(*self.one(self.ctes))
        if depth > 1 and self.chance(0.1):
            result = self.rows_of(depth - 1, [], None)
            alias = self._alias("v")
            columns = [replace(column, alias=alias) for column in result.columns]
            return Source(Derived(result.query, alias), columns, result.rows)
        return self._named(*self.one(self.tables))

    def _named(self, name: str, columns: list[ScopeColumn], rows: float) -> Source:
        alias = self._alias("a")
        return Source(Named(name, alias), [replace(c, alias=alias) for c in columns], rows)

    def _joined(self, left: Source, right: Source, depth: int) -> Source | None:
        kind = self.one(
            ["INNER", "INNER", "INNER", "LEFT", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"]
        )
        for _ in range(4):
            roll = self.rng.random()
            if roll < 0.8:
                joined = self._by_keys(kind, left, right, depth)
            elif left.rows * right.rows > MOST_PAIRS:
                continue
            elif roll < 0.88 and kind == "INNER":
                joined = self._join("CROSS", left, right, None, right.rows, left.rows)
            else:
                condition = self._unkeyed(left, right)
                joined = self._join(kind, left, right, condition, right.rows, left.rows)
            if joined is not None and joined.rows <= MOST_ROWS:
                return joined
        return None

    def _by_keys(self, kind: str, left: Source, right: Source, depth: int) -> Source | None:
        pairs = [(a, b) for a in left.columns for b in right.columns if _comparable(a, b)]
        named = [(a, b) for a, b in pairs if a.name == b.name]
        if not pairs:
            return None
        a, b = self.one(named if named and self.chance(0.85) else pairs)
        if a.most * b.most * 4 > MOST_ROWS:
            return None
        null_safe = self.chance(0.08)
        conditions = [self._equal(a, b, null_safe)]
        if self.chance(0.12):
            conditions.append(self._equal(*self.one(pairs), self.chance(0.1)))
        if self.chance(0.25):
            conditions.append(self.condition([*left.columns, *right.columns], 1))
        # NULLs of both sides meet too when they count as equal.
        fan_right = right.rows if null_safe else b.most
        fan_left = left.rows if null_safe else a.most
        using = ""
        if a.name == b.name and a.type == b.type and len(conditions) == 1 and not null_safe:
            names = [c.name for c in left.columns]
            alone = names.count(a.name) == 1 and isinstance(left.relation, (Named, Derived))
            using = a.name if alone and kind != "FULL" and self.chance(0.1) else ""
        joined = self._join(
            kind, left, right, Logic(BOOLEAN, "AND", conditions), fan_right, fan_left
        )
        if using and isinstance(joined.relation, Join):
            joined.relation.using, joined.relation.on = using, None
        return joined

    def _join(
        self,
        kind: str,
        left: Source,
        right: Source,
        on: Expr | None,
        fan_right: float,
        fan_left: float,
    ) -> Source:
        """Join, where a row of the left meets at most `fan_right` rows, and the other way."""
        relation = Join(kind, left.relation, right.relation, on)
        if not relation.keeps_right:
            return Source(relation, left.columns, left.rows)
        matched = min(left.rows * fan_right, right.rows * fan_left)
        extra = (left.rows if kind in ("LEFT", "FULL") else 0) + (
            right.rows if kind in ("RIGHT", "FULL") else 0
        )
        columns = [replace(c, most=c.most * max(1, fan_right)) for c in left.columns]
        columns += [replace(c, most=c.most * max(1, fan_left)) for c in right.columns]
        return Source(relation, columns, matched + extra)

    def _equal(self, a: ScopeColumn, b: ScopeColumn, null_safe: bool) -> Expr:
        portable = a.type == b.type or (a.type.is_integer and b.type.is_integer)
        if null_safe:
            duck = "({0} IS NOT DISTINCT FROM {1})"
            return Op(BOOLEAN, "({0} <=> {1})", [a.col, b.col], portable, duck)
        return Op(BOOLEAN, "({0} = {1})", [a.col, b.col], portable)

    def _unkeyed(self, left: Source, right: Source) -> Expr:
        pairs = [(a, b) for a in left.columns for b in right.columns if a.type == b.type]
        if not pairs:
            return self.condition([*left.columns, *right.columns], 1)
        compared: list[Expr] = [
            Op(BOOLEAN, f"({{0}} {self.one(_COMPARISONS)} {{1}})", [a.col, b.col])
            for a, b in self.some(pairs, 1, 3)
        ]
        return Logic(BOOLEAN, self.one(["AND", "OR"]), compared)

    # ---- WHERE -----------------------------------------------------------------------------

    def _conditions(self, source: Source, depth: int) -> list[Expr]:
        conditions = [
            self.condition(source.columns, 2) for _ in range(self.one([0, 0, 0, 1, 1, 2]))
        ]
        if depth > 1 and self.chance(0.22):
            tested = self._subquery_test(source, depth)
            if self.chance(0.15):
                tested = Logic(BOOLEAN, "OR", [tested, self.condition(source.columns, 1)])
            conditions.append(tested)
        return conditions

    def condition(self, columns: Sequence[ScopeColumn], depth: int) -> Expr:
        """Make a condition on some columns."""
        if depth > 0 and self.chance(0.3):
            args = [self.condition(columns, depth - 1) for _ in range(2)]
            return Logic(BOOLEAN, self.one(["AND", "OR", "OR"]), args)
        if depth > 0 and self.chance(0.08):
            return Op(BOOLEAN, "(NOT {0})", [self.condition(columns, depth - 1)])
        column = self.one(columns)
        forms: list[Callable[[Sequence[ScopeColumn], ScopeColumn], Expr | None]] = [
            self._to_constant,
            self._to_constant,
            self._to_constant,
            self._to_column,
            self._null_test,
            self._in_list,
            self._computed,
        ]
        if self.risky:
            forms.append(self._raising_test)
        return self.one(forms)(columns, column) or self._to_constant(columns, column)

    def constant(self, column: ScopeColumn) -> Lit:
        """Give a value of a column, or one near its values."""
        if column.samples and self.chance(0.95):
            return Lit(column.type, self.one(column.samples))
        return Lit(column.type, None if self.chance(0.3) else _plain_value(column.type))

    def _to_constant(self, _: Sequence[ScopeColumn], column: ScopeColumn) -> Expr:
        if column.type == BOOLEAN:
            return Op(BOOLEAN, self.one(["{0}", "(NOT {0})", "({0} IS TRUE)"]), [column.col])
        sign = self.one(["=", "<>", "<>", "<", "<=", "<=", ">", ">=", ">="])
        return Op(BOOLEAN, f"({{0}} {sign} {{1}})", [column.col, self.constant(column)])

    def _to_column(self, columns: Sequence[ScopeColumn], column: ScopeColumn) -> Expr | None:
        others = [c for c in columns if c.type == column.type and c != column]
        if not others:
            return None
        template = f"({{0}} {self.one(_COMPARISONS)} {{1}})"
        return Op(BOOLEAN, template, [column.col, self.one(others).col])

    def _null_test(self, _: Sequence[ScopeColumn], column: ScopeColumn) -> Expr:
        return Op(BOOLEAN, f"({{0}} IS {self.one(['', 'NOT '])}NULL)", [column.col])

    def _in_list(self, _: Sequence[ScopeColumn], column: ScopeColumn) -> Expr:
        values = [self.constant(column) for _ in range(self.rng.randint(1, 4))]
        places = ", ".join(f"{{{i + 1}}}" for i in range(len(values)))
        word = self.one(["IN", "IN", "NOT IN"])
        return Op(BOOLEAN, f"({{0}} {word} ({places}))", [column.col, *values])

    def _computed(self, columns: Sequence[ScopeColumn], column: ScopeColumn) -> Expr | None:
        if column.type == STRING:
            pattern = self.one(["a%", "%b", "%a%", "_", "v1%", "%a%b%", "x%_%", "%v%1%"])
            return Op(BOOLEAN, f"({{0}} LIKE '{pattern}')", [column.col])
        if column.type == DOUBLE and self.chance(0.4):
            # Of a null, Spark says false and DuckDB null.
            duck = "coalesce(isnan({0}), false)"
            return Op(BOOLEAN, "isnan({0})", [column.col], duck=duck)
        if self.chance(0.3):
            low, high = self.constant(column), self.constant(column)
            return Op(BOOLEAN, "({0} BETWEEN {1} AND {2})", [column.col, low, high])
        value, _ = self.value(columns, column.type, 1)
        sign = self.one(_COMPARISONS)
        return Op(BOOLEAN, f"({{0}} {sign} {{1}})", [value, self.constant(column)])

    # ---- errors ----------------------------------------------------------------------------

    def _raising(self, columns: Sequence[ScopeColumn], kind: SqlType | None = None) -> Expr | None:
        """Make an expression that fails in ANSI mode for some values of its columns."""
        makers = [self._quotient, self._overflow, self._narrow, self._wide_decimal, self._number]
        for make in self.some(makers, len(makers), len(makers)):
            made = make(columns)
            if made is not None and kind in (None, made.type):
                return made
        return None

    def _raising_test(self, columns: Sequence[ScopeColumn], _: ScopeColumn) -> Expr | None:
        value = self._raising(columns)
        if value is None:
            return None
        limit = Lit(value.type, _plain_value(value.type))
        return Op(BOOLEAN, f"({{0}} {self.one(_COMPARISONS)} {{1}})", [value, limit])

    def _quotient(self, columns: Sequence[ScopeColumn]) -> Expr | None:
        whole = [c for c in columns if c.type.is_integer]
        if not whole:
            return None
        a, b = self.one(whole).col, self.one(whole).col
        if self.chance(0.3):
            return Op(BIGINT, "CAST(({0} % {1}) AS BIGINT)", [a, b], portable=False)
        if self.chance(0.4):
            return Op(BIGINT, "({0} DIV {1})", [a, b], portable=False)
        return Op(DOUBLE, "CAST(({0} / {1}) AS DOUBLE)", [a, b], portable=False)

    def _overflow(self, columns: Sequence[ScopeColumn]) -> Expr | None:
        far = [c for c in columns if c.type.is_integer and not c.tame]
        whole = [c for c in columns if c.type.is_integer]
        if not far:
            return None
        a, b = self.one(far), self.one(whole)
        kind = max(a.type, b.type, key=lambda t: t.largest)
        form = self.one(["({0} + {1})", "({0} - {1})", "({0} * {1})", "(-{0})", "abs({0})"])
        args: list[Expr] = [a.col, b.col] if "{1}" in form else [a.col]
        return Op(kind if "{1}" in form else a.type, form, args, portable=False)

    def _narrow(self, columns: Sequence[ScopeColumn]) -> Expr | None:
        numbers = [c for c in columns if c.type.is_numeric and c.type != SMALLINT]
        if not numbers:
            return None
        wild = [c for c in numbers if not c.tame] or numbers
        kind = self.one([SMALLINT, INT, decimal(5, 2)])
        return Op(kind, f"CAST({{0}} AS {str(kind).upper()})", [self.one(wild).col], portable=False)

    def _wide_decimal(self, columns: Sequence[ScopeColumn]) -> Expr | None:
        decimals = [c for c in columns if c.type.kind == "decimal"]
        if not decimals:
            return None
        column = self.one([c for c in decimals if not c.tame] or decimals)
        other = self.one(decimals)
        sign = self.one(["+", "-", "*", "/"])
        kind = self.one([column.type, decimal(38, 10), decimal(38, 37)])
        template = f"CAST(({{0}} {sign} {{1}}) AS {str(kind).upper()})"
        return Op(kind, template, [column.col, other.col], portable=False)

    def _number(self, columns: Sequence[ScopeColumn]) -> Expr | None:
        texts = [c for c in columns if c.type == STRING]
        if not texts:
            return None
        kind = self.one([INT, BIGINT, DOUBLE, DATE, decimal(9, 0)])
        return Op(
            kind, f"CAST({{0}} AS {str(kind).upper()})", [self.one(texts).col], portable=False
        )

    # ---- subqueries ------------------------------------------------------------------------

    def _subquery_test(self, source: Source, depth: int) -> Expr:
        roll = self.rng.random()
        outer = self.one(source.columns)
        if roll < 0.35:
            # Three-valued logic compares each row with each.
            negated = self.chance(0.4) and source.rows <= 2000
            tested: Expr = outer.col
            wanted = [outer.type]
            if self.chance(0.15):
                # DuckDB compares pairs as values, where Spark compares their columns.
                second = self.one(source.columns)
                tested = Op(outer.type, "({0}, {1})", [outer.col, second.col], portable=False)
                wanted.append(second.type)
            result = self._subquery(depth, wanted)
            if self.chance(0.35) and isinstance(result.query, Select):
                self._correlate(result.query, source.columns, equal=self.chance(0.7))
            return InQuery(BOOLEAN, tested, result.query, negated)
        if roll < 0.75:
            result = self._subquery(depth, [outer.type])
            if isinstance(result.query, Select):
                self._correlate(result.query, source.columns, equal=source.rows > 400)
            return Exists(BOOLEAN, result.query, self.chance(0.4))
        scalar = self._scalar(source.columns)
        same = [c.col for c in source.columns if c.type == scalar.type]
        other = self.one(same) if same else Lit(scalar.type, _plain_value(scalar.type))
        return Op(BOOLEAN, f"({{0}} {self.one(_COMPARISONS)} {{1}})", [other, scalar])

    def _subquery(self, depth: int, want: list[SqlType]) -> Result:
        source = self._source(min(depth - 1, 2), most=1)
        where = self._conditions(source, 1)
        return self._plain(source, where, want, 1)

    def _correlate(self, query: Select, outer: Sequence[ScopeColumn], equal: bool) -> bool:
        """Compare a column of the subquery's relation with one of the query around it."""
        inner = list(self._readable(query.source))
        pairs = [(a, b) for a in inner for b in outer if a.type == b.type]
        if not pairs:
            return False
        named = [(a, b) for a, b in pairs if a.name == b.name] or pairs
        sign = "=" if equal or self.chance(0.6) else self.one(_COMPARISONS)
        a, b = self.one(named)
        query.where.append(Op(BOOLEAN, f"({{0}} {sign} {{1}})", [a.col, b.col]))
        if self.chance(0.25):
            c, d = self.one(pairs)
            sign = "=" if equal else self.one(_COMPARISONS)
            query.where.append(Op(BOOLEAN, f"({{0}} {sign} {{1}})", [c.col, d.col]))
        return True

    def _readable(self, relation: Relation) -> list[ScopeColumn]:
        known = {name: columns for name, columns, _ in [*self.tables, *self.ctes]}
        if isinstance(relation, Named):
            return [replace(c, alias=relation.alias) for c in known[relation.name]]
        if isinstance(relation, Join):
            right = self._readable(relation.right) if relation.keeps_right else []
            return [*self._readable(relation.left), *right]
        return []

    def _scalar(self, outer: Sequence[ScopeColumn]) -> Expr:
        """Make a subquery of one value: an aggregate without groups, or, as a risk, any column."""
        source = self._named(*self.one(self.tables))
        if self.risky and self.chance(0.2):
            column = self.one(source.columns)
            alike = Op(BOOLEAN, "({0} = {1})", [column.col, self.constant(column)])
            items = [Item(column.col, self._name())]
            # DuckDB takes the first of several rows.
            query = Select(items, source.relation, [alike], portable_rows=False)
            return Scalar(column.type, query)
        agg, _ = self._aggregate(source.columns, outermost=False)
        query = Select([Item(agg, self._name())], source.relation, self._conditions(source, 1))
        if self.chance(0.65):
            self._correlate(query, outer, equal=True)
        return Scalar(agg.type, query)

    # ---- GROUP BY --------------------------------------------------------------------------

    def _grouped(
        self,
        source: Source,
        where: list[Expr],
        outermost: bool,
        keys: list[ScopeColumn] | None = None,
        aggregated: Sequence[ScopeColumn] = (),
    ) -> Result:
        """Group by some columns, which may be given, as what is aggregated may be."""
        keys = self.some(source.columns, 0, 3) if keys is None else keys
        aggregated = aggregated or source.columns
        items, columns = [], []
        grouping = (
            self.one(["ROLLUP", "CUBE", "GROUPING SETS"]) if keys and self.chance(0.2) else ""
        )
        sets: list[KeySet] = []
        if grouping == "GROUPING SETS":
            sets = [KeySet([c.col for c in self.some(keys, 0, 3)]) for _ in range(2)]
            sets.append(KeySet([key.col for key in keys]))
        factor = {"ROLLUP": 4, "CUBE": 8, "GROUPING SETS": 3}.get(grouping, 1)
        alone = len(keys) == 1 and not grouping
        for key in keys:
            name = self._name()
            items.append(Item(key.col, name))
            most = 1 if alone else source.rows * factor
            columns.append(replace(key, alias="", name=name, most=most))
        if grouping and self.chance(0.4):
            name = self._name()
            items.append(Item(Op(INT, "CAST(grouping({0}) AS INT)", [self.one(keys).col]), name))
            columns.append(ScopeColumn("", name, INT, True, source.rows * factor, ()))
        for _ in range(self.rng.randint(0 if keys else 1, 3)):
            agg, tame = self._aggregate(aggregated, outermost)
            name = self._name()
            items.append(Item(agg, name))
            columns.append(ScopeColumn("", name, agg.type, tame, source.rows * factor, ()))
        having: list[Expr] = []
        if keys and self.chance(0.25):
            agg, _ = self._aggregate(aggregated, outermost=False)
            limit = Lit(agg.type, _plain_value(agg.type))
            having.append(Op(BOOLEAN, f"({{0}} {self.one(_COMPARISONS)} {{1}})", [agg, limit]))
        query = Select(
            items,
            source.relation,
            where,
            group=[key.col for key in keys],
            grouping=grouping,
            sets=sets,
            having=having,
            hint=self._hint(source),
        )
        rows = source.rows * factor if keys else 1
        return Result(query, columns, max(1, rows))

    def _groups_by_key(self, depth: int) -> Result | None:
        """Group rows by a key of a table that they are joined with, and by its columns."""
        rows = source = self._named(*self.one(self.tables))
        keys: list[ScopeColumn] = []
        for _ in range(self.one([1, 1, 2])):
            table = self._named(*self.one(self.tables))
            key = next(column for column in table.columns if column.name == "id")
            columns = [column for column in source.columns if column.type.is_integer]
            if not columns:
                return None
            column = self.one(columns)
            conditions = [self._equal(column, key, null_safe=False)]
            if self.chance(0.15):
                conditions.append(self.condition([*source.columns, *table.columns], 1))
            joined = self._join(
                "INNER", source, table, Logic(BOOLEAN, "AND", conditions), key.most, column.most
            )
            if joined.rows > MOST_ROWS:
                return None
            keys = keys or [self.one([column, key])]
            keys += self.some([other for other in table.columns if other != key], 1, 2)
            source = joined
        keys += self.some(rows.columns, 0, 1)
        unique = list({(key.alias, key.name): key for key in keys}.values())
        aggregated = rows.columns if self.chance(0.85) else ()
        return self._grouped(source, self._conditions(source, depth), False, unique, aggregated)

    def _first_rows(self, depth: int) -> Result | None:
        """Take the first rows of joins that keep each row of a table, sorted by its columns."""
        rows = source = self._named(*self.one(self.tables))
        for _ in range(self.one([1, 1, 2])):
            table = self._named(*self.one(self.tables))
            integers = [column for column in source.columns if column.type.is_integer]
            if integers and self.chance(0.35):
                key = next(column for column in table.columns if column.name == "id")
                column = self.one(integers)
                condition = self._equal(column, key, null_safe=False)
                joined = self._join("INNER", source, table, condition, key.most, column.most)
            else:
                outer = self._by_keys("LEFT", source, table, depth)
                if outer is None:
                    return None
                joined = outer
            if joined.rows > MOST_ROWS:
                return None
            source = joined
        # Rows that a join repeats are the same in these columns.
        chosen = self.some([column for column in rows.columns if column.tame], 1, 4)
        if not chosen:
            return None
        named = [(column, self._name()) for column in chosen]
        items = [Item(column.col, name) for column, name in named]
        where = self._conditions(rows if self.chance(0.8) else source, depth)
        query = Select(items, source.relation, where, False, hint=self._hint(source))
        columns = [replace(column, alias="", name=name, most=source.rows) for column, name in named]
        return self._top(Result(query, columns, source.rows), limited=True)

    def _several_aggregations(self, depth: int) -> Result:
        """Make aggregations without groups that read the same, each under filters of its own."""
        source = self._source(depth, most=2)
        count = self.rng.randint(2, 4)
        roll = self.rng.random()
        if roll < 0.3:
            aggs = [self._aggregate(source.columns, False) for _ in range(self.rng.randint(1, 2))]
            parts = [self._aggregation(source, deepcopy(aggs)) for _ in range(count)]
            query = parts[0].query
            for part in parts[1:]:
                query = SetOp("UNION ALL", query, part.query)
            columns = [replace(column, most=count) for column in parts[0].columns]
            return Result(query, columns, count)
        most = 2 if roll < 0.7 else 1
        parts = [
            self._aggregation(
                source,
                [self._aggregate(source.columns, False) for _ in range(self.rng.randint(1, most))],
            )
            for _ in range(count)
        ]
        if most == 2:
            aliases = [self._alias("v") for _ in parts]
            relation: Relation = Derived(parts[0].query, aliases[0])
            for part, alias in zip(parts[1:], aliases[1:], strict=True):
                relation = Join("CROSS", relation, Derived(part.query, alias), None)
            found = [
                replace(column, alias=alias)
                for part, alias in zip(parts, aliases, strict=True)
                for column in part.columns
            ]
            items = [Item(column.col, self._name()) for column in found]
            rows: float = 1
        else:
            around = self._named(*self.one(self.tables))
            relation, rows = around.relation, around.rows
            found = [column for part in parts for column in part.columns]
            items = [Item(Scalar(part.columns[0].type, part.query), self._name()) for part in parts]
        columns = [
            replace(column, alias="", name=item.name, most=max(1, rows))
            for column, item in zip(found, items, strict=True)
        ]
        return Result(Select(items, relation), columns, max(1, rows))

    def _similar_groups(self, depth: int) -> Result | None:
        """Use one grouped query several times, each time under conditions of its own."""
        source = self._source(depth - 1, most=2)
        groups = self._grouped(source, self._conditions(source, 1), False)
        places = []
        for _ in range(self.one([2, 2, 3])):
            alias = self._alias("v")
            columns = [replace(column, alias=alias) for column in groups.columns]
            relation = Derived(deepcopy(groups.query), alias)
            where = [self.condition(columns, 1) for _ in range(self.one([0, 1, 1, 2]))]
            some = self.some(columns, 1, len(columns)) if self.chance(0.5) else columns
            names = [self._name() for _ in some]
            query = Select(
                [Item(c.col, n) for c, n in zip(some, names, strict=True)], relation, where
            )
            result = [
                replace(c, alias="", name=n, samples=c.samples)
                for c, n in zip(some, names, strict=True)
            ]
            places.append(Result(query, result, groups.rows))
        if self.chance(0.4) and len({tuple(c.type for c in p.columns) for p in places}) == 1:
            union = places[0]
            for place in places[1:]:
                columns = [
                    replace(a, tame=a.tame and b.tame, most=a.most + b.most)
                    for a, b in zip(union.columns, place.columns, strict=True)
                ]
                union = Result(
                    SetOp("UNION ALL", union.query, place.query), columns, union.rows + place.rows
                )
            return union
        joined: Source | None = None
        for place in places:
            alias = self._alias("v")
            part = Source(
                Derived(place.query, alias),
                [replace(c, alias=alias) for c in place.columns],
                place.rows,
            )
            joined = part if joined is None else self._joined(joined, part, 1) or joined
        return self._plain(joined, [], None, 1) if joined is not None else None

    def _aggregation(self, source: Source, aggs: list[tuple[Expr, bool]]) -> Result:
        """Make one row of these aggregates, of the rows of `source` under other filters."""
        where = [self.condition(source.columns, 1) for _ in range(self.one([0, 1, 1, 1, 2]))]
        items = [Item(agg, self._name()) for agg, _ in aggs]
        columns = [
            ScopeColumn("", item.name, agg.type, tame, 1, ())
            for item, (agg, tame) in zip(items, aggs, strict=True)
        ]
        return Result(Select(items, deepcopy(source.relation), where), columns, 1)

    def _aggregate(self, columns: Sequence[ScopeColumn], outermost: bool) -> tuple[Expr, bool]:
        """Make an aggregate, and tell whether its sum would be exact again."""
        agg, tame = self._plain_aggregate(columns, outermost)
        if self.chance(0.2):
            agg.filter = self.condition(columns, 1)
        if agg.function.startswith("collect"):
            # In which order they collect is open.
            return Op(STRING, "array_join(sort_array({0}), ',', '-')", [agg], portable=False), True
        return agg, tame

    def _plain_aggregate(self, columns: Sequence[ScopeColumn], outermost: bool) -> tuple[Agg, bool]:
        column = self.one(columns)
        roll = self.rng.random()
        summed = [c for c in columns if c.type.is_numeric and c.tame and _has_room(c.type)]
        if outermost and self.chance(0.2):
            # Their values have one sign, so that the order of a sum changes its last bits only.
            summed += [c for c in columns if c.type == DOUBLE and c.name == "w"]
        if roll < 0.4 and summed:
            return self._sum(self.one(summed), columns)
        if roll < 0.55:
            return Agg(BIGINT, "count", None), True
        if roll < 0.75:
            return Agg(BIGINT, "count", column.col, distinct=self.chance(0.5)), True
        if roll < 0.79:
            counted = Op(BIGINT, "{0}, {1}", [column.col, self.one(columns).col], portable=False)
            return Agg(BIGINT, "count", counted, distinct=True), True
        if roll < 0.84:
            words = Op(STRING, "CAST({0} AS STRING)", [column.col])
            return Agg(STRING, self.one(["collect_list", "collect_set"]), words), True
        if roll < 0.88:
            return Agg(BOOLEAN, self.one(["bool_and", "bool_or"]), self.condition(columns, 0)), True
        return Agg(column.type, self.one(["min", "max"]), column.col), column.tame

    def _sum(self, column: ScopeColumn, columns: Sequence[ScopeColumn]) -> tuple[Agg, bool]:
        distinct = self.chance(0.2)
        if self.chance(0.25) and (column.type.is_integer or column.type == DOUBLE):
            return Agg(DOUBLE, "avg", column.col, distinct), False
        arg: Expr = column.col
        if self.chance(0.15):
            arg = Op(column.type, "CASE WHEN {0} THEN {1} END", [self.condition(columns, 0), arg])
        return Agg(_sum_type(column.type), "sum", arg, distinct), column.tame

    # ---- windows ---------------------------------------------------------------------------

    def _windowed(self, source: Source, where: list[Expr], outermost: bool) -> Result:
        result = self._plain(source, where, None, 1)
        assert isinstance(result.query, Select)
        # DISTINCT would see rows before the numbers of their order are known; that is fine.
        for _ in range(self.rng.randint(1, 2)):
            over, tame = self._over(source.columns)
            name = self._name()
            result.query.items.append(Item(over, name))
            result.columns.append(ScopeColumn("", name, over.type, tame, source.rows, ()))
        return Result(
            result.query, [replace(c, most=source.rows) for c in result.columns], source.rows
        )

    def _first_of_each(self, result: Result) -> Result:
        """Keep the rows whose number, or whose other window function, is small."""
        alias = self._alias("w")
        assert isinstance(result.query, Select)
        numbers = [
            column
            for column, item in zip(result.columns, result.query.items, strict=True)
            if isinstance(item.expr, Over) and item.expr.type in (INT, BIGINT)
        ]
        if not numbers:
            return result
        number = self.one(numbers)
        limit = Lit(number.type, self.rng.randint(1, 4))
        kept = Op(
            BOOLEAN,
            f"({{0}} {self.one(['<=', '<', '='])} {{1}})",
            [replace(number, alias=alias).col, limit],
        )
        items = [
            Item(replace(column, alias=alias).col, self._name())
            for column in result.columns
            if column is not number or self.chance(0.5)
        ] or [Item(replace(number, alias=alias).col, self._name())]
        columns = [
            replace(column, name=item.name)
            for item in items
            for column in result.columns
            if isinstance(item.expr, Col) and column.name == item.expr.name
        ]
        return Result(Select(items, Derived(result.query, alias), [kept]), columns, result.rows)

    def _over(self, columns: Sequence[ScopeColumn]) -> tuple[Over, bool]:
        partition: list[Expr] = [c.col for c in self.some(columns, 0, 2)]
        if self.chance(0.3):
            by = self._order(self.some(columns, 1, 2))
            return Over(INT, self.one(["rank", "dense_rank"]), [], partition, by), True
        total = len(columns) <= 10 and self.chance(0.5)
        order = self._order(columns) if total else self._order(self.some(columns, 0, 2))
        if total and self.chance(0.4):
            return Over(INT, "row_number", [], partition, order, total=True), True
        frame = self.one(_ROW_FRAMES if total else _PEER_FRAMES)
        column = self.one(columns)
        summed = [c for c in columns if c.type.is_numeric and c.tame and _has_room(c.type)]
        # A sliding frame takes values away again only by adding anew: sums stay exact.
        if summed and self.chance(0.4):
            column = self.one(summed)
            kind = _sum_type(column.type)
            return Over(kind, "sum", [column.col], partition, order, frame, total), column.tame
        if self.chance(0.4):
            args: list[Expr] = [] if self.chance(0.4) else [column.col]
            return Over(BIGINT, "count", args, partition, order, frame, total), True
        function = self.one(["min", "max"])
        over = Over(column.type, function, [column.col], partition, order, frame, total)
        return over, column.tame

    def _order(self, columns: Sequence[ScopeColumn]) -> list[OrderKey]:
        shuffled = self.some(columns, len(columns), len(columns))
        return [OrderKey(c.col, self.chance(0.4), self.chance(0.5)) for c in shuffled]

    # ---- values ----------------------------------------------------------------------------

    def value(self, columns: Sequence[ScopeColumn], kind: SqlType, depth: int) -> tuple[Expr, bool]:
        """Make an expression of a type, and tell whether its sums are exact."""
        fitting = [c for c in columns if c.type == kind]
        if depth > 0 and self.chance(0.7):
            made = self._operation(columns, kind, depth)
            if made is not None:
                return made
        if fitting and self.chance(0.85):
            column = self.one(fitting)
            return column.col, column.tame
        return Lit(kind, _plain_value(kind)), True

    def _operation(
        self, columns: Sequence[ScopeColumn], kind: SqlType, depth: int
    ) -> tuple[Expr, bool] | None:
        roll = self.rng.random()
        if roll < 0.2:
            a, tame_a = self.value(columns, kind, depth - 1)
            b, tame_b = self.value(columns, kind, depth - 1)
            args = [self.condition(columns, 0), a, b]
            return Op(kind, "CASE WHEN {0} THEN {1} ELSE {2} END", args), tame_a and tame_b
        if roll < 0.35:
            a, tame_a = self.value(columns, kind, depth - 1)
            b, tame_b = self.value(columns, kind, depth - 1)
            return Op(kind, "coalesce({0}, {1})", [a, b]), tame_a and tame_b
        if kind.is_integer:
            return self._whole_number(columns, kind, depth)
        if kind == DOUBLE:
            return self._double(columns, depth)
        if kind.kind == "decimal":
            return self._decimal(columns, kind, depth)
        return self._other(columns, kind, depth)

    def _whole_number(
        self, columns: Sequence[ScopeColumn], kind: SqlType, depth: int
    ) -> tuple[Expr, bool]:
        a, tame = self.value(columns, kind, depth - 1)
        b, tame_b = self.value(columns, kind, depth - 1)
        # Overflow is an error in ANSI mode, so large values only meet where errors are wanted.
        if not self.risky and not (tame and tame_b):
            return a, tame
        if self.risky and self.chance(0.4):
            form = self.one(["({0} % {1})", "({0} * {1})", "CAST({0} DIV {1} AS K)"])
            template = f"CAST({form.replace('AS K', f'AS {kind}')} AS {kind})"
            return Op(kind, template, [a, b], portable=False), False
        texts = [c for c in columns if c.type == STRING]
        if texts and kind == INT and self.chance(0.3):
            if self.risky and self.chance(0.5):
                return Op(INT, "CAST({0} AS INT)", [self.one(texts).col], portable=False), False
            return Op(INT, "CAST(length({0}) AS INT)", [self.one(texts).col]), True
        days = [c for c in columns if c.type == DATE]
        if days and kind == INT and self.chance(0.3):
            return Op(INT, "CAST(year({0}) AS INT)", [self.one(days).col]), True
        sign = self.one(["+", "-"])
        return Op(
            kind, f"CAST(({{0}} {sign} {{1}}) AS {str(kind).upper()})", [a, b]
        ), tame and tame_b

    def _double(self, columns: Sequence[ScopeColumn], depth: int) -> tuple[Expr, bool]:
        a, tame_a = self.value(columns, DOUBLE, depth - 1)
        b, tame_b = self.value(columns, DOUBLE, depth - 1)
        if self.risky and self.chance(0.4):
            return Op(DOUBLE, "({0} / {1})", [a, b], portable=False), False
        whole = [c for c in columns if c.type.is_integer]
        if whole and self.chance(0.3):
            column = self.one(whole)
            return Op(DOUBLE, "CAST({0} AS DOUBLE)", [column.col]), column.tame
        if self.chance(0.2):
            return Op(DOUBLE, "({0} * {1})", [a, b]), False
        return Op(DOUBLE, f"({{0}} {self.one(['+', '-'])} {{1}})", [a, b]), tame_a and tame_b

    def _decimal(
        self, columns: Sequence[ScopeColumn], kind: SqlType, depth: int
    ) -> tuple[Expr, bool] | None:
        others = [c for c in columns if c.type.kind == "decimal" or c.type.is_integer]
        if not others:
            return None
        a, b = self.one(others), self.one(others)
        signs = ["+", "-", "*"] + (["/"] if self.risky else [])
        inner = Op(kind, f"({{0}} {self.one(signs)} {{1}})", [a.col, b.col], portable=False)
        # An error in ANSI mode, NULL otherwise, if it does not fit.
        form = "CAST({0} AS K)" if self.risky else "try_cast({0} AS K)"
        if not self.risky and not (a.tame and b.tame):
            inner = Op(kind, "{0}", [a.col], portable=False)
        template = form.replace("K", str(kind).upper())
        return Op(kind, template, [inner], portable=False), False

    def _other(
        self, columns: Sequence[ScopeColumn], kind: SqlType, depth: int
    ) -> tuple[Expr, bool] | None:
        a, _ = self.value(columns, kind, depth - 1)
        if kind == STRING:
            b, _ = self.value(columns, STRING, depth - 1)
            whole = [c for c in columns if c.type.is_integer or c.type == DATE]
            if whole and self.chance(0.3):
                return Op(STRING, "CAST({0} AS STRING)", [self.one(whole).col]), True
            form = self.one(["concat({0}, {1})", "upper({0})", "trim({0})", "substr({0}, 1, 2)"])
            # Concatenation of NULL is not the same everywhere.
            portable = form.startswith("substr")
            return Op(STRING, form, [a, b] if "{1}" in form else [a], portable), True
        if kind == BOOLEAN:
            return self.condition(columns, depth - 1), True
        if kind == DATE:
            tame_days = [c for c in columns if c.type == DATE and c.tame]
            if tame_days:
                days = self.rng.randint(-40, 40)
                expr = Op(
                    DATE, f"date_add({{0}}, {days})", [self.one(tame_days).col], portable=False
                )
                return expr, True
        if kind == TIMESTAMP:
            days_in_sight = [c for c in columns if c.type == DATE]
            if days_in_sight:
                return Op(TIMESTAMP, "CAST({0} AS TIMESTAMP)", [self.one(days_in_sight).col]), True
        return None


def _comparable(a: ScopeColumn, b: ScopeColumn) -> bool:
    """Tell whether two columns make a key: of one type, or numbers that Spark casts."""
    if a.type == b.type:
        return a.type != BOOLEAN
    kinds = {a.type.kind, b.type.kind}
    if kinds == {"date", "timestamp"}:
        return True
    numbers = a.type.is_numeric and b.type.is_numeric
    return numbers and a.name == b.name


def _has_room(kind: SqlType) -> bool:
    return kind.kind != "decimal" or kind.precision <= 28


def _sum_type(kind: SqlType) -> SqlType:
    if kind.is_integer:
        return BIGINT
    if kind.kind == "decimal":
        return decimal(min(38, kind.precision + 10), kind.scale)
    return DOUBLE


def _plain_value(kind: SqlType) -> Value:
    return _PLAIN.get(kind.kind, 1)


def _plain_values() -> dict[str, Value]:
    import datetime as dt
    from decimal import Decimal

    return {
        "double": 1.5,
        "decimal": Decimal(0),
        "string": "a",
        "date": dt.date(2000, 1, 1),
        "timestamp": dt.datetime(2000, 1, 1, 12, 30),
        "boolean": True,
    }


_PLAIN = _plain_values()

__all__ = ["Grammar", "true"]
