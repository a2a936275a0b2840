"""Pages and pictures: what is shown, and that nothing in names can become markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import selinger
from selinger import _page
from selinger._drawing import changes, pair, svg, tree_of, with_rows
from selinger.explain import Decision

EVIL = "<script>alert('a')</script>&\"><img src=x onerror=y>"
STYLE = (Path(selinger.__file__).parent / "page.css").read_text(encoding="utf-8")


class Tags(HTMLParser):
    """Collects the tags of a page, and checks that each is closed where it should be."""

    EMPTY = ("meta", "circle", "path")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def entry(depth: int, name: str, **fields: Any) -> dict[str, Any]:
    return {"depth": depth, "name": name, **fields}


def scan(depth: int, table: str, rows: float) -> dict[str, Any]:
    return entry(depth, "Scan parquet", table=table, rows=rows)


#: A sort-merge join as Spark runs it.
SORTED = [
    entry(0, "Project"),
    entry(1, "SortMergeJoin", symbol="⋈", rows=50),
    entry(2, "Sort", estimated=90, origin="derived"),
    entry(3, "AQEShuffleRead"),
    entry(4, "Exchange", rows=100),
    entry(5, "Filter", rows=100),
    scan(6, "sales", 1e6),
    entry(2, "Sort"),
    entry(3, "Exchange", rows=7),
    scan(4, "days", 7),
]
HASHED = [
    entry(0, "BroadcastHashJoin", symbol="⋈", rows=50),
    entry(1, "Filter", rows=100),
    scan(2, "sales", 1e6),
    entry(1, "BroadcastExchange", rows=7),
    scan(2, "days", 7),
]
ORDERS = (
    tree_of([
        entry(0, "⋈", symbol="⋈", estimated=5),
        entry(1, "⋈", symbol="⋈", estimated=1e8),
        entry(2, "sales", estimated=1e6),
        entry(2, "stock", estimated=2e5),
        entry(1, "days", estimated=1),
    ]),
    tree_of([
        entry(0, "⋈", symbol="⋈", estimated=5),
        entry(1, "⋈", symbol="⋈", estimated=1e4),
        entry(2, "sales", estimated=1e6),
        entry(2, "days", estimated=1),
        entry(1, "stock", estimated=2e5),
    ]),
)  # fmt: skip


def decision(**fields: Any) -> Decision:
    facts: dict[str, Any] = {
        "rule": "selectJoinOperator",
        "node": "Join Inner (a < b)",
        "outcome": "changed",
        "chosen": "BroadcastHashJoin(right)",
        "stock": "SortMergeJoin",
        "reason": "BROADCAST_FITS",
        "why": "The build side fits.",
        "phase": "static",
        "numbers": (),
        "setting": None,
        "setting_value": None,
        "title": "sales ⋈ days",
        "brief": (
            "sales ⋈ days: broadcast days",
            "The build side fits. [BROADCAST_FITS]",
            "days: 7 rows (counted)",
        ),
        "full": ("sales ⋈ days: all numbers", "The build side fits. [BROADCAST_FITS]"),
    }
    return Decision(**{**facts, **fields})


def test_a_plan_is_read_without_what_only_passes_rows_on() -> None:
    tree = tree_of(SORTED)
    assert tree is not None
    assert (tree.name, tree.symbol, tree.rows) == ("SortMergeJoin", "⋈", 50)
    sales, days = tree.inputs
    assert (sales.name, sales.rows, sales.estimated) == ("sales", 100, 90)
    assert sales.moves == days.moves == ("shuffled", "sorted")
    assert tree.tables == ("days", "sales")
    assert tree_of([]) is None


def test_inputs_that_are_waited_for_and_rows_that_come_again_are_not_drawn_twice() -> None:
    waits = tree_of([
        entry(0, "Union"),
        entry(1, "WaitForBuildSide"),
        scan(2, "sales", 3),
        entry(2, "Exchange", rows=9),
        scan(3, "days", 9),
        entry(1, "ReusedExchange"),
        entry(2, "Exchange", rows=4),
        scan(3, "days", 4),
    ])  # fmt: skip
    assert waits is not None
    assert [node.name for node in waits.nodes()] == ["Union", "sales", "ReusedExchange"]
    assert waits.rows == 7
    assert "the same rows of days again" in svg("t", waits)


def test_a_table_that_is_compared_with_a_subquery_keeps_its_name_and_rows() -> None:
    subquery = [
        {"depth": 3, "name": "Subquery"},
        {"depth": 4, "name": "Scan parquet", "table": "days", "rows": 1},
    ]
    scan = {"depth": 1, "name": "Scan parquet", "table": "sales", "rows": 9}
    other = {"depth": 1, "name": "Scan parquet", "table": "items", "rows": 5}
    join = {"depth": 0, "name": "HashJoin", "symbol": "⋈", "rows": 7}
    below: list[dict[str, Any]] = [
        {"depth": 2, "name": "Subquery"},
        {"depth": 3, "name": "Scan parquet", "table": "days", "rows": 1},
    ]
    tree = tree_of([join, scan, *below, other])
    assert tree is not None
    assert tree.tables == ("items", "sales")
    assert [node.rows for node in tree.inputs] == [9, 5]
    filtered = tree_of([{"depth": 0, "name": "Filter"}, scan, *below])
    project = tree_of([{"depth": 1, "name": "Project"}, {**scan, "depth": 2}, *subquery])
    assert filtered is not None
    assert project is not None
    assert filtered.tables == project.tables == ("sales",)
    assert filtered.rows == project.rows == 9


def test_what_a_function_of_the_user_returns_is_not_what_it_reads() -> None:
    scan = {"depth": 1, "name": "Scan parquet", "table": "sales", "rows": 9}
    for name in ("MapPartitions", "FlatMapGroupsInPandas", "ScriptTransformation"):
        tree = tree_of([{"depth": 0, "name": name}, scan])
        assert tree is not None
        assert tree.rows is None
        assert [node.rows for node in tree.inputs] == [9]


def test_rows_below_a_limit_are_not_those_above_it() -> None:
    tree = tree_of([entry(0, "CollectLimit"), scan(1, "sales", 100)])
    assert tree is not None
    assert (tree.rows, tree.inputs[0].rows) == (None, 100)


def test_what_changed_between_two_plans_is_marked_and_nothing_else() -> None:
    one, other = tree_of(SORTED), tree_of(HASHED)
    assert one
    assert other
    gone, come = changes(one, other)
    assert {node.name for node in one.nodes() if id(node) in gone} == {
        "SortMergeJoin", "sales", "days",
    }  # fmt: skip
    assert {node.name for node in other.nodes() if id(node) in come} == {
        "BroadcastHashJoin", "sales", "days",
    }  # fmt: skip
    drawn = pair(("a", "b"), (one, other))
    assert drawn.count('class="mark"') == 6
    assert drawn.count("◆ in colour") == 1
    assert '<g class="gone">' in drawn
    assert '<g class="come">' in drawn


def test_nothing_is_marked_where_nothing_changed() -> None:
    same = pair(("a", "b"), (tree_of(SORTED), tree_of(SORTED)))
    assert "mark" not in same
    assert "colour" not in same
    assert same.count("<svg") == 2


def test_a_join_of_the_same_tables_is_no_change_of_the_order() -> None:
    written, chosen = ORDERS
    assert written
    assert chosen
    gone, come = changes(written, chosen)
    assert [node.estimated for node in written.nodes() if id(node) in gone] == [1e8]
    assert [node.estimated for node in chosen.nodes() if id(node) in come] == [1e4]


def test_thicker_lines_are_more_rows_and_unknown_rows_are_dashed() -> None:
    (written, _) = ORDERS
    assert written
    widths = [float(w) for w in re.findall(r'stroke-width="([0-9.]+)"', svg("t", written))]
    assert sorted(widths) == [1.3, 6.3, 7.0, 9.0]
    assert "unknown" not in svg("t", written)
    nothing = tree_of([entry(0, "Union"), entry(1, "Scan a"), entry(1, "Scan b")])
    assert nothing
    assert svg("t", nothing).count('class="unknown"') == 2


def test_estimated_rows_stand_beside_those_that_came() -> None:
    written, _ = ORDERS
    plan = tree_of([
        entry(0, "SortMergeJoin", symbol="⋈", rows=5),
        entry(1, "SortMergeJoin", symbol="⋈", rows=2e8),
        scan(2, "sales", 1e6),
        scan(2, "stock", 3e5),
        scan(1, "days", 1),
    ])  # fmt: skip
    assert written
    filled = with_rows(written, plan)
    assert [(n.name, n.rows) for n in filled.nodes()] == [
        ("⋈", 5), ("⋈", 2e8), ("sales", 1e6), ("stock", 3e5), ("days", 1),
    ]  # fmt: skip
    assert "200 M rows, 100 M estimated" in svg("t", filled)
    assert "1 row, 1 estimated" in svg("t", filled)
    assert "1 row estimated" in svg("t", written)
    assert with_rows(written, None) == written


def test_rows_are_not_taken_from_another_use_of_a_table() -> None:
    twice = tree_of([
        entry(0, "⋈", symbol="⋈", estimated=5),
        entry(1, "days", estimated=1),
        entry(1, "days#2", estimated=3),
    ])  # fmt: skip
    plan = tree_of(
        [entry(0, "SortMergeJoin", symbol="⋈", rows=6), scan(1, "days", 7), scan(1, "days", 8)]
    )
    assert twice
    filled = with_rows(twice, plan)
    assert [(n.name, n.rows) for n in filled.nodes()] == [
        ("⋈", 6),
        ("days", None),
        ("days#2", None),
    ]


def test_lines_do_not_share_a_place_and_fit_into_the_picture() -> None:
    tree = tree_of(SORTED)
    assert tree
    drawn = svg("title", tree)
    places = re.findall(r'<text x="(\d+)" y="(\d+)"', drawn)
    assert len({y for _, y in places}) == len(places) == 3
    width, height = (int(n) for n in re.findall(r'viewBox="0 0 (\d+) (\d+)"', drawn)[0])
    assert all(int(x) < width and int(y) < height for x, y in places)


def test_a_picture_has_a_title_for_screen_readers() -> None:
    tree = tree_of(HASHED)
    assert tree
    drawn = svg("Plan of Selinger", tree, frozenset({id(tree)}), "come")
    assert 'role="img" aria-label="Plan of Selinger: 3 parts, 1 of them changed"' in drawn
    assert "<title>Plan of Selinger: 3 parts, 1 of them changed</title>" in drawn


def test_a_repeated_part_names_few_of_its_tables() -> None:
    scans = [{"depth": 2, "name": "Scan", "table": f"t{i}"} for i in range(9)]
    tree = tree_of([{"depth": 0, "name": "ReusedExchange"}, {"depth": 1, "name": "Union"}, *scans])
    assert tree is not None
    assert "the same rows of t0, t1, t2 and 6 more again" in svg("Plan", tree)


def test_what_is_too_large_is_not_drawn() -> None:
    many = tree_of([entry(0, "Union"), *(entry(1, f"Scan t{i}") for i in range(400))])
    assert pair(("a", "b"), (many, many)) == "<p>Too large to be drawn.</p>"
    assert pair(("a", "b"), (many, None)) == ""


def test_deep_plans_can_be_read() -> None:
    deep = [entry(i, "Project") for i in range(5000)] + [scan(5000, "t", 1)]
    tree = tree_of(deep)
    assert tree
    assert tree.name == "t"


def test_changes_are_said_in_words_with_the_code_behind() -> None:
    html = _page.what_changed("1 of 2 joins changed", [decision(), decision(outcome="same")])
    assert html.startswith('<p class="lead">1 of 2 joins changed</p><ul class="changes"><li>')
    assert html.count("<li>") == 1
    assert "<p>The build side fits. <code>BROADCAST_FITS</code></p>" in html
    assert "<details><summary>numbers, and how to undo it</summary><p>days: 7 rows" in html
    words = re.findall(r"\w+", Tags(html).text)
    assert not {"left", "right"} & set(words)


def test_an_order_is_drawn_instead_of_written_with_brackets() -> None:
    one = decision(
        title="Order of 3 tables",
        brief=("Order of 3 tables: ((a ⋈ b) ⋈ c)", "Cheaper. [ORDER_CHEAPER]"),
        orders=ORDERS,
    )
    said = _page.what_changed("", [one])
    assert "<b>Order of 3 tables: it is another one, drawn below</b>" in said
    drawn = _page.orders([one, decision(outcome="same", orders=ORDERS)], (None, None))
    assert drawn.count("<svg") == 2
    assert "Order of 3 tables, as written" in drawn
    assert drawn.count('class="mark"') == 2


def test_only_what_changed_is_open() -> None:
    html = _page.query(
        "1 join changed", [decision()], (tree_of(SORTED), tree_of(HASHED)), ("-a", "+b"), ""
    )
    assert " open" not in html
    seen = re.sub(r"<details>.*</details>", "", html)
    assert "The build side fits." in html.partition("<details>")[0]
    assert "<svg" not in seen
    assert "all numbers" not in seen


def test_names_cannot_become_markup() -> None:
    evil = [
        entry(0, EVIL, symbol="⋈", rows=1),
        scan(1, EVIL, 2),
        entry(1, "BroadcastExchange", rows=3),
        scan(2, EVIL, 3),
    ]
    tree = tree_of(evil)
    order = (tree_of(evil[:3]), tree_of(evil[2:]))
    html = _page.document(
        EVIL,
        _page.query(
            EVIL,
            [decision(title=EVIL, brief=(EVIL, EVIL, EVIL), full=(EVIL,), orders=order)],
            (tree, tree_of(HASHED)),
            (EVIL, f"{EVIL}\n+"),
            EVIL,
            (EVIL, EVIL),
        )
        + _page.table((EVIL, EVIL), [(EVIL, EVIL)])
        + _page.paragraph(EVIL),
    )
    tags = Tags(html)
    assert not {"script", "img"} & tags.seen
    assert tags.text.count("alert(") >= 15
    assert "onerror" in tags.text


def test_the_style_changes_nothing_outside_and_loads_nothing() -> None:
    dark = r"@media \(prefers-color-scheme: dark\) \{(.*?\})\s*\}"
    heads = re.findall(r"([^{}]+)\{", re.sub(dark, r"\1", STYLE, flags=re.S))
    selectors = [selector.strip() for head in heads for selector in head.split(",")]
    assert len(selectors) > 40
    assert [one for one in selectors if not re.match(r"\.selinger(?![\w-])", one)] == []
    assert "prefers-color-scheme: dark" in STYLE
    for outside in ("url(", "@import", "http"):
        assert outside not in STYLE


def test_every_class_has_a_style() -> None:
    trees = (tree_of(SORTED), tree_of(HASHED))
    body = _page.query("1", [decision()], trees, ("a", "b"), "")
    used = re.findall(r'class="([^"]+)"', _page.document("t", body))
    assert len(set(used)) > 8
    assert [one for one in used for part in one.split() if f".{part}" not in STYLE] == []
