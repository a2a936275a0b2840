"""The examples in the docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from typing import TYPE_CHECKING

import pytest
import selinger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODULES = sorted(m.name for m in pkgutil.iter_modules(selinger.__path__) if m.name != "__main__")
#: Modules whose documented functions are not all public by name.
PUBLIC = (
    "install",
    "session",
    "explain",
    "collect",
    "report",
    "transfer",
    "doctor",
    "cli",
    "support",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(spark: SparkSession, name: str) -> None:
    module = importlib.import_module(f"selinger.{name}")
    result = doctest.testmod(
        module, extraglobs={"spark": spark}, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0


@pytest.mark.parametrize("name", selinger.__all__)
def test_public_functions_have_examples(name: str) -> None:
    thing = getattr(selinger, name)
    if callable(thing) and not isinstance(thing, type):
        text = thing.__doc__ or ""
        assert ">>> " in text
        assert "Parameters\n" in text
        assert "Returns\n" in text
