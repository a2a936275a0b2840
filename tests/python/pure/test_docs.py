"""What the pages mention must exist: links, settings, reason codes, targets, functions, files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest
import selinger
from selinger.cli import _parser
from selinger.session import knob_of

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "python/README.md", *(ROOT / "docs").rglob("*.md")])
#: Words in the form of a reason code that are none.
NO_REASONS = {
    "JAVA_HOME",
    "PYSPARK_SUBMIT_ARGS",
    "SELINGER_SEED",
    "SELINGER_TEST_ALL",
    "SELINGER_NO_DATA",  # a Spark error condition
    "SELINGER_WRITE_DOCS",
    "SELINGER_WRITE_GOLDEN",
    "SHUFFLE_HASH",
    "SHUFFLE_REPLICATE_NL",
    "SPARK_HOME",
    "UPPER_SNAKE",
    # An error of Spark.
    "STAGE_MATERIALIZATION_MULTIPLE_FAILURES",
}


@cache
def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def without_fences(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchor(heading: str) -> str:
    """Name a heading as GitHub's links do.

    Examples
    --------
    >>> anchor("4. Tell `us`, please")
    '4-tell-us-please'
    """
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def dead_links(page: Path, text: str) -> list[str]:
    return [
        link
        for link in re.findall(r"\]\(([^)\s]+)\)", without_fences(text))
        if "://" not in link and not is_there(page, *link.partition("#")[::2])
    ]


def is_there(page: Path, path: str, fragment: str) -> bool:
    target = (page.parent / path) if path else page
    if not target.exists():
        return False
    headings = re.findall(r"^#+ (.*)$", without_fences(read(str(target))), re.M) if fragment else []
    return not fragment or fragment in map(anchor, headings)


def unknown_settings(text: str) -> list[str]:
    # Whole keys only: `spark.selinger.cluster.*` and `spark.selinger.<rule>.enabled` are patterns.
    keys = re.findall(r"spark\.selinger(?:\.\w+)+(?![\w.]*[<*])", text)
    known = set(re.findall(r"`(spark\.selinger\.[\w.]+)`", read("docs/configs.md")))
    return [key for key in keys if key not in known]


def unknown_reasons(text: str) -> list[str]:
    words = re.findall(r"(?<![\w$])[A-Z]+(?:_[A-Z]+)+(?![\w…])", text)
    known = set(re.findall(r"`([A-Z_]+)`", read("docs/rules.md")))
    return [word for word in words if word not in known | NO_REASONS]


def stale_samples(text: str) -> list[str]:
    """Codes in a sample of explain whose sentence is not the one of today."""
    sentences = dict(re.findall(r"^\| `([A-Z_]+)` \| ([^|]+?) \|", read("docs/rules.md"), re.M))
    samples = re.findall(r"^== Extended Information.*?^```", text, re.M | re.S)
    codes = [(code, sample) for sample in samples for code in sentences if code in sample]
    return [code for code, sample in codes if sentences[code] not in sample]


def unknown_targets(text: str) -> list[str]:
    code = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^ {4}(make .*)$", text, re.M)
    code += re.findall(r"^(make .*)$", text, re.M)
    targets = [word for line in code for word in re.findall(r"^make ([a-z][a-z-]*)", line)]
    known = re.findall(r"^([a-z-]+):", read("Makefile"), re.M)
    return [target for target in targets if target not in known]


def unknown_functions(text: str) -> list[str]:
    names = re.findall(r"(?<![\w/])selinger\.([a-z_]+)\(", text)
    return [name for name in names if name not in selinger.__all__]


def unknown_knobs(text: str) -> list[str]:
    keys = re.findall(r"`(spark\.selinger\.[\w.]+)`", read("docs/configs.md"))
    known = {knob_of(key) for key in keys}
    calls = re.findall(r"selinger\.settings\(\w+, ([^*)]*)\)", text)
    knobs = [knob for call in calls for knob in re.findall(r"(\w+)=", call)]
    return [knob for knob in knobs if knob not in known]


def unknown_commands(text: str) -> list[str]:
    code = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^ *(selinger .*)$", text, re.M)
    words = [word for line in code for word in re.findall(r"(?:^|\()selinger ([a-z-]+)", line)]
    known = re.findall(r"[a-z-]+", _parser().format_help())
    return [word for word in words if word not in known]


def unknown_sql_functions(text: str) -> list[str]:
    names = re.findall(r"\bselinger_\w+(?=\()", text)
    known = {
        name
        for file in (ROOT / "src/main/scala").rglob("*Functions.scala")
        for name in re.findall(r'"(selinger_\w+)"', file.read_text(encoding="utf-8"))
    }
    return [name for name in names if name not in known]


def missing_files(text: str) -> list[str]:
    folders = "src|tests|docs|conf|python|project|benchmarks"
    paths = re.findall(rf"`((?:{folders})/[\w./-]+)`", text)
    # What the build or a run makes is not in a clone.
    made = ("benchmarks/results", "benchmarks/data/", "python/dist", "python/selinger/jars")
    return [p for p in paths if not p.startswith(made) and not (ROOT / p).exists()]


def missing_suites(text: str) -> list[str]:
    known = {file.stem for file in (ROOT / "tests/scala").rglob("*.scala")}
    return [name for name in re.findall(r"`(\w+Suite)`", text) if name not in known]


CHECKS: dict[str, tuple[Callable[[str], Iterable[str]], str, str]] = {
    # what is looked for: the check, a text that it must refuse, and one that it must not
    "settings": (unknown_settings, "SET spark.selinger.nothing", "`spark.selinger.mode`"),
    "reason codes": (unknown_reasons, "`NO_SUCH_REASON`", "`HINT_OBEYED` COLLECTED_STATISTICS_…"),
    "sentences of explain": (
        stale_samples,
        "== Extended Information (Selinger) ==\nHINT_OBEYED: because\n```",
        "`HINT_OBEYED`: because",
    ),
    "make targets": (unknown_targets, "`make nothing SF=1`", "`make test`, make sure"),
    "Python functions": (unknown_functions, "selinger.nothing(1)", "selinger.explain(df)"),
    "knobs": (unknown_knobs, "selinger.settings(spark, a=1)", "selinger.settings(s, mode='on')"),
    "commands": (unknown_commands, "`selinger nothing`", "`selinger jar`"),
    "SQL functions": (unknown_sql_functions, "selinger_nothing()", "selinger_status()"),
    "files": (missing_files, "`docs/nothing.md`", "`docs/explain.md`, `docs/<page>.md`"),
    "suites": (missing_suites, "`NothingSuite`", "`GuardSuite`"),
}


@pytest.mark.parametrize("what", CHECKS)
def test_what_a_page_mentions_exists(what: str) -> None:
    check = CHECKS[what][0]
    missing = {str(p.relative_to(ROOT)): list(check(p.read_text("utf-8"))) for p in PAGES}
    assert {page: words for page, words in missing.items() if words} == {}


@pytest.mark.parametrize("what", CHECKS)
def test_a_check_finds_what_is_not_there(what: str) -> None:
    check, wrong, right = CHECKS[what]
    assert list(check(wrong))
    assert not list(check(right))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert dead_links(page, page.read_text("utf-8")) == []


@pytest.mark.parametrize("link", ["nothing.md", "docs/explain.md#nothing", "#nothing"])
def test_a_dead_link_is_found(link: str) -> None:
    assert dead_links(ROOT / "README.md", f"[a]({link}) [b](docs/explain.md#outcomes)") == [link]


def test_the_readme_names_the_supported_spark_versions() -> None:
    known = json.loads(read("conf/spark-lines.json"))
    for line, facts in known["lines"].items():
        how = "tested" if line == known["default"] else "compiled"
        assert f"Spark {line} ({how} with {facts['spark']}" in read("README.md")
        assert f"selinger-spark-{line}.jar" in read("docs/compatibility.md")


def test_the_figures_of_the_readme_are_those_that_are_published() -> None:
    figures = json.loads(read("benchmarks/published/tpcds-sf10.json"))
    total = figures["summary"]
    spark = ".".join(figures["spark"].split(".")[:2])
    line = (
        f"all {total['queries']} queries together take {total['total_ratio']:.2f} times the time "
        f"of stock Spark {spark} ({total['selinger_total_s']:,.0f} s instead of "
        f"{total['stock_total_s']:,.0f} s), and all {total['queries']} answers are equal."
    )
    assert total["equal"] in (True, "ties")
    assert line in read("README.md")


def test_every_page_can_be_reached_from_the_readme() -> None:
    pages = {str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")}
    assert pages - set(re.findall(r"\]\(([^)#\s]+)", read("README.md"))) == set()
