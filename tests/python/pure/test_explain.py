from __future__ import annotations

import json
from typing import Any

import pytest
import selinger
from selinger._page import diff_html
from selinger._plan import executed, normalised, plan_diff, same_plan
from selinger.explain import parse, physical_plan

DECISION: dict[str, Any] = {
    "rule": "selectJoinOperator",
    "node": "Join Inner (a < b)",
    "outcome": "changed",
    "chosen": "BroadcastHashJoin(right)",
    "stock": "SortMergeJoin",
    "reason": "BROADCAST_FITS",
    "why": "The right side fits.",
    "phase": "static",
    "numbers": [
        {"name": "right rows", "value": 102000.0, "unit": "rows", "origin": "exact"},
        {"name": "right size", "value": 67108864, "unit": "bytes", "origin": "derived"},
    ],
    "setting": "spark.selinger.join.broadcastMaxBytes",
    "setting_value": "67108864",
    "setting_to": "8m",
    "title": "sales ⋈ customers",
    "brief": ["sales ⋈ customers: broadcast customers", "The right side fits."],
    "full": ["sales ⋈ customers: broadcast customers", "customers: 102,000 rows (counted)"],
}
KEPT = {**DECISION, "outcome": "same", "brief": ["kept"], "full": ["kept: every number"]}
PLAN = "AdaptiveSparkPlan isFinalPlan=false\n+- Range (0, 3, step=1, splits=2)"


def explained(*decisions: dict[str, Any], after: str = "", **fields: Any) -> str:
    body = json.dumps({"selinger": "0.1.0", "mode": "on", "decisions": decisions, **fields})
    head = f"== Physical Plan ==\n{PLAN}\n\n"
    return f"{head}== Extended Information (Selinger) ==\n{body}\n{after}\n"


def parsed(text: str) -> selinger.Explanation:
    found = parse(text)
    assert found is not None
    return found


def test_reads_a_decision() -> None:
    explanation = parsed(explained(DECISION))
    (decision,) = explanation.decisions
    assert decision.rule == "selectJoinOperator"
    assert decision.chosen == "BroadcastHashJoin(right)"
    assert decision.numbers[0] == selinger.Number("right rows", 102000.0, "rows", "exact")
    assert decision.setting_value == "67108864"
    assert explanation.plan == PLAN
    assert explanation.mode == "on"


def test_reads_nulls_absent_and_unknown_fields() -> None:
    entry = {**DECISION, "chosen": None, "stock": None, "setting": None, "new_field": [1]}
    del entry["numbers"], entry["setting_value"]
    (decision,) = parsed(explained(entry)).decisions
    assert (decision.chosen, decision.stock, decision.setting) == (None, None, None)
    assert decision.numbers == ()
    assert "None" not in str(parsed(explained(entry)))


def test_other_sections_are_left_out() -> None:
    text = explained(DECISION, after="== Extended Information (Other) ==\nx")
    assert len(parsed(text).decisions) == 1
    before = text.replace("== Extended", "== Extended Information (A) ==\ny\n\n== Extended", 1)
    assert parsed(before).plan == PLAN


def test_no_section() -> None:
    assert parse(f"== Physical Plan ==\n{PLAN}\n") is None
    assert (
        parse(f"== Physical Plan ==\n{PLAN}\n\n== Extended Information (Selinger) ==\n\n") is None
    )


@pytest.mark.parametrize("body", ["{", '{"decisions": 3}', "[]", '{"decisions": [{}]}', "text"])
def test_unreadable_section(body: str) -> None:
    text = f"== Physical Plan ==\n{PLAN}\n\n== Extended Information (Selinger) ==\n{body}\n"
    with pytest.raises(selinger.ExplainMissing, match="cannot be read"):
        parse(text)


def test_prints_numbers_with_one_unit_and_origin() -> None:
    (decision,) = parsed(explained(DECISION)).decisions
    assert [str(n) for n in decision.numbers] == [
        "right rows 102,000 (exact)",
        "right size 64 MiB (derived)",
    ]


INPUT = {
    "name": "customers",
    "estimated": 1.2e6,
    "origin": "derived",
    "actual": 3e4,
    "reduced": False,
    "text": "customers: 1.2 M rows estimated, 30,000 came",
}


def test_prints_the_verdict_first_and_then_only_what_changed() -> None:
    text = explained(DECISION, KEPT, verdict="1 of 2 joins changed", more="Not shown: 1", truth="T")
    assert str(parsed(text)).splitlines() == [
        "1 of 2 joins changed",
        "* sales ⋈ customers: broadcast customers",
        "    The right side fits.",
        "T",
        "Not shown: 1",
    ]


def test_prints_everything_on_request() -> None:
    text = explained(
        DECISION, KEPT, verdict="V", more="Not shown: 1", truth="T", inputs=[INPUT], all=True
    )
    assert str(parsed(text)).splitlines() == [
        "V",
        "* sales ⋈ customers: broadcast customers",
        "    customers: 102,000 rows (counted)",
        "* kept: every number",
        "T",
        "    customers: 1.2 M rows estimated, 30,000 came",
    ]


def test_prints_why_nothing_was_decided_and_the_plan() -> None:
    text = str(parsed(explained(verdict="Nothing to decide: no join.")))
    assert text == f"Nothing to decide: no join.\n\n{PLAN}"
    assert "decided nothing" in str(parsed(explained()))


def test_html_says_what_changed_and_folds_the_rest() -> None:
    html = parsed(explained(DECISION, KEPT, verdict="1 of 2 joins changed"))._repr_html_()
    shown, _, folded = html.partition("<details>")
    change = "<b>sales ⋈ customers: broadcast customers</b><p>The right side fits.</p></li></ul>"
    assert shown.endswith(change)
    assert "kept: every number" in folded
    assert html.count("<details>") == html.count("</details>") == 2
    assert " open" not in html
    asked = parsed(explained(DECISION, KEPT, all=True))._repr_html_()
    assert "<details open><summary>all decisions and their numbers: 2 decisions<" in asked
    assert asked.count(" open") == 1


def test_html_is_escaped() -> None:
    evil = {**DECISION, "brief": ["<i>", "<u>"], "full": ["<script>x</script>"]}
    html = parsed(explained(evil, verdict="<b>"))._repr_html_()
    assert "&lt;script&gt;x" in html
    assert "<script>" not in html
    assert '<p class="lead">&lt;b&gt;</p>' in html
    assert "<li><b>&lt;i&gt;</b><p>&lt;u&gt;</p>" in html


def test_reads_what_is_to_be_drawn() -> None:
    join = {"depth": 0, "name": "⋈", "symbol": "⋈", "estimated": 9, "origin": "derived"}
    inputs = [{"depth": 1, "name": name, "estimated": 5} for name in ("a", "b")]
    order = {"stock": [join, *inputs], "chosen": [join, *reversed(inputs)]}
    plan = [{"depth": 0, "name": "Range", "table": "range", "rows": 3}]
    found = parsed(explained({**DECISION, "orders": order}, tree=plan))
    assert found.tree
    assert (found.tree.name, found.tree.rows) == ("range", 3)
    written, chosen = found.decisions[0].orders or (None, None)
    assert written
    assert chosen
    assert [node.name for node in written.nodes()] == ["⋈", "a", "b"]
    assert [node.name for node in chosen.nodes()] == ["⋈", "b", "a"]
    assert found._repr_html_().count("<svg") == 3
    assert parsed(explained(DECISION)).tree is None


def test_physical_plan_of_an_extended_explain() -> None:
    text = f"== Parsed Logical Plan ==\nx\n\n== Physical Plan ==\n{PLAN}\n"
    assert physical_plan(text) == PLAN


def test_plans_that_differ_in_ids_only_are_the_same() -> None:
    one = "*(2) Sort [k#1L ASC], false, 0, [plan_id=28]\n+- ReusedExchange [k#1], [id=#4]"
    two = "*(5) Sort [k#77L ASC], false, 0, [plan_id=9]\n+- ReusedExchange [k#3], [id=#41]"
    assert plan_diff(one, two) == ""
    assert normalised(one) == normalised(two)
    assert normalised("*(2) Sort [k#1L ASC], [plan_id=28]") == "* Sort [k ASC], [plan_id=]"


def test_plan_diff_shows_what_changed() -> None:
    diff = plan_diff("Join\n+- SortMergeJoin [k#1]", "Join\n+- ShuffledHashJoin [k#2]")
    assert "-+- SortMergeJoin [k]" in diff
    assert "++- ShuffledHashJoin [k]" in diff
    assert '<span class="gone">-+- SortMergeJoin [k]</span>' in diff_html(diff)
    assert '<span class="come">++- ShuffledHashJoin [k]</span>' in diff_html(diff)


def test_plans_that_differ_in_stages_only_are_the_same() -> None:
    one, two = (f"ResultQueryStage {n}\n+- BroadcastQueryStage {n - 3}" for n in (3, 4))
    assert same_plan(one, two, changed=False) is True
    assert same_plan(one, two, changed=True) is False
    early = "AdaptiveSparkPlan isFinalPlan=false\n+- Scan"
    assert same_plan(early, early, changed=False) is None
    assert same_plan(early, "Scan", changed=False) is False


def test_executed_keeps_the_final_plan_of_nested_adaptive_plans() -> None:
    plan = (
        "AdaptiveSparkPlan isFinalPlan=true\n+- == Final Plan ==\n   A\n   +- B\n"
        "+- == Initial Plan ==\n   C\n"
    )
    assert executed(plan) == "A\n+- B"
    assert executed("A") == "A"
