"""The parts of HTML pages: of `compare` and `explain` in a notebook, and of benchmarks' reports.

All of them have one style sheet, ``page.css``, whose rules apply below the class ``selinger`` only:
a notebook around them stays as it is. Nothing here needs a script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from selinger._drawing import Node, pair, with_rows
from selinger._plan import plan_diff
from selinger._render import escape
from selinger._verdict import SIDES

if TYPE_CHECKING:
    from selinger.explain import Decision

_STYLE = Path(__file__).with_name("page.css")
#: A sentence with the code of a reason behind it.
_CODED = re.compile(r"(?P<text>.*) \[(?P<code>[A-Z][A-Z0-9_]*)\]", re.S)


def document(title: str, body: str) -> str:
    """Write a whole page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>{_style()}</head>"
        f'<body class="selinger page">{body}</body></html>\n'
    )


def fragment(body: str) -> str:
    """Write a part of a page of others, such as the output of a notebook's cell."""
    return f'<div class="selinger">{_style()}{body}</div>'


def _style() -> str:
    return f"<style>{_STYLE.read_text(encoding='utf-8')}</style>"


def folded(title: str, body: str, *, opened: bool = False) -> str:
    """Hide something behind a click, unless it was asked for.

    Examples
    --------
    >>> folded("query", "<pre>SELECT 1</pre>")
    '<details><summary>query</summary><pre>SELECT 1</pre></details>'
    """
    state = " open" if opened else ""
    return f"<details{state}><summary>{escape(title)}</summary>{body}</details>"


def paragraph(text: str, kind: str = "") -> str:
    """Write a text as a paragraph, its lines kept; nothing for no text.

    Examples
    --------
    >>> paragraph("1 < 2", "quiet")
    '<p class="quiet">1 &lt; 2</p>'
    """
    if not text:
        return ""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table as wide as its text; it scrolls where there is less room.

    All columns but the first are numbers.
    """
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in headers)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def text_block(text: str) -> str:
    """Write a plan or a query, its spaces kept."""
    return f'<div class="scroll"><pre>{escape(text)}</pre></div>'


def query(
    changed: str,
    decisions: Sequence[Decision],
    trees: tuple[Node | None, Node | None],
    texts: tuple[str, str],
    unchanged: str,
    names: tuple[str, str] = SIDES,
) -> str:
    """Show what changed in a query's plan and why; the rest and the plans are folded.

    Parameters
    ----------
    changed : str
        What came of all decisions, in one line.
    decisions : sequence of Decision
        All of them.
    trees : tuple of Node or None
        The plans of both sides, to be drawn.
    texts : tuple of str
        The plans as Spark prints them.
    unchanged : str
        What is said where the texts are the same.
    names : tuple of str
        How the sides are called.
    """
    return (
        what_changed(changed, decisions)
        + orders(decisions, trees)
        + _plans(trees, texts, unchanged, names)
        + every_decision(decisions)
    )


def what_changed(summary: str, decisions: Sequence[Decision]) -> str:
    """Say what changed and why: a line, then a paragraph for each change, its numbers folded."""
    changes = "".join(_change(d) for d in decisions if d.is_change)
    return paragraph(summary, "lead") + (f'<ul class="changes">{changes}</ul>' if changes else "")


def _change(decision: Decision) -> str:
    head, *rest = decision.brief or (decision.title, f"{decision.why} [{decision.reason}]")
    reason, numbers = rest[:1], rest[1:]
    if decision.orders is not None:
        # Easier to see in the picture than to read.
        verb = "would be" if decision.outcome == "advised" else "is"
        head, numbers = f"{decision.title}: it {verb} another one, drawn below", [head, *numbers]
    more = "".join(f"<p>{_coded(line)}</p>" for line in numbers)
    return (
        f"<li><b>{escape(head)}</b>{''.join(f'<p>{_coded(line)}</p>' for line in reason)}"
        f"{folded('numbers, and how to undo it', more) if more else ''}</li>"
    )


def _coded(line: str) -> str:
    """Write a sentence; the code of a reason stands behind it, small."""
    found = _CODED.fullmatch(line)
    if found is None:
        return escape(line)
    return f"{escape(found['text'])} <code>{escape(found['code'])}</code>"


def every_decision(decisions: Sequence[Decision], *, opened: bool = False) -> str:
    """List all decisions with all their numbers, folded; nothing if there are none."""
    if not decisions:
        return ""
    listed = "".join(
        "<li>" + "".join(f"<p>{_coded(line)}</p>" for line in decision.full) + "</li>"
        for decision in decisions
    )
    count = f"{len(decisions)} decision{'' if len(decisions) == 1 else 's'}"
    return folded(
        f"all decisions and their numbers: {count}",
        f'<ul class="changes">{listed}</ul>',
        opened=opened,
    )


def orders(decisions: Sequence[Decision], trees: Sequence[Node | None]) -> str:
    """Draw the orders of joins that changed, or would change: as written beside as chosen.

    Parameters
    ----------
    decisions : sequence of Decision
        All of them.
    trees : sequence of Node or None
        The plan that joins in the order written, and the one that joins in the order chosen, if
        they have run: rows that came are taken from them.
    """
    written, chosen = trees
    drawn = (
        pair(
            (f"{d.title}, as written", f"{d.title}, as chosen"),
            (with_rows(d.orders[0], written), with_rows(d.orders[1], chosen)),
        )
        for d in decisions
        if d.orders is not None and d.is_change
    )
    return "".join(drawn)


def _plans(
    trees: tuple[Node | None, Node | None],
    texts: tuple[str, str],
    unchanged: str,
    names: tuple[str, str],
) -> str:
    """Show the plans of both sides behind clicks: drawn, compared line by line, and whole."""
    if not any(texts):
        return ""
    titles = (f"Plan of {names[0]}", f"Plan of {names[1]}")
    drawn = pair(titles, trees)
    diff = plan_diff(*texts)
    compared = diff_html(diff) if diff else paragraph(unchanged)
    whole = "".join(
        folded(title, text_block(text)) for title, text in zip(titles, texts, strict=True)
    )
    return (folded("plans, drawn", drawn) if drawn else "") + folded(
        "plans as text: what differs", compared + whole
    )


def diff_html(diff: str) -> str:
    """Colour a plan difference; signs stay, so that colour is not all that tells."""
    return f'<div class="scroll"><pre>{"".join(_coloured(diff))}</pre></div>'


def _coloured(diff: str) -> Iterator[str]:
    kinds = {"-": "gone", "+": "come"}
    for line in diff.splitlines():
        kind = kinds.get(line[:1])
        yield f'<span class="{kind}">{escape(line)}</span>\n' if kind else f"{escape(line)}\n"
