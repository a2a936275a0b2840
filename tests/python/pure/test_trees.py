"""Orders of joins as trees."""

from __future__ import annotations

import pytest
from selinger._trees import SYMBOLS, Join, drawn, parsed, side_by_side


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_a_bushy_order_is_read_and_drawn(symbol: str) -> None:
    tree = parsed(f"((a {symbol} b) ⋈ (c {symbol} (d ⋈ e)))")
    assert tree == Join("⋈", Join(symbol, "a", "b"), Join(symbol, "c", Join("⋈", "d", "e")))
    assert drawn(tree) == [
        "⋈",
        f"├─ {symbol}",
        "│  ├─ a",
        "│  └─ b",
        f"└─ {symbol}",
        "   ├─ c",
        "   └─ ⋈",
        "      ├─ d",
        "      └─ e",
    ]


@pytest.mark.parametrize("order", ["", "sales", "BroadcastHashJoin", "(odd", "(a ⋈)", "(a ⋈ )"])
def test_other_texts_are_no_orders(order: str) -> None:
    assert not isinstance(parsed(order), Join)
    assert side_by_side(("one", "other"), (order, "(a ⋈ b)")) == ""


def test_names_may_have_brackets_and_spaces() -> None:
    assert parsed("(part (old) ⋈ other table)") == Join("⋈", "part (old)", "other table")


def test_trees_of_unequal_height_stand_side_by_side() -> None:
    text = side_by_side(("written:", "chosen:"), ("((a ⋈ b) ⋈ c)", "(x ⟕ y)"))
    assert text.splitlines() == [
        "written:    chosen:",
        "⋈           ⟕",
        "├─ ⋈        ├─ x",
        "│  ├─ a     └─ y",
        "│  └─ b",
        "└─ c",
    ]
