from __future__ import annotations

import pickle

import pytest
import selinger
from selinger import errors


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_ours_and_public(name: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, errors.SelingerError)
    assert getattr(selinger, name) is kind


def test_cause_comes_first_then_the_cures() -> None:
    error = errors.SelingerError("Wrong.", "do this", "or that")
    assert str(error) == "Wrong.\n  - do this\n  - or that"
    assert (error.cause, error.cures) == ("Wrong.", ("do this", "or that"))


def test_the_advice_in_one_line_has_one_or() -> None:
    error = errors.PySparkNotFound()
    assert "; or put the Python folder" in error.advice
    assert "or or" not in error.advice


def test_an_unsupported_spark_names_the_pip_install_that_helps() -> None:
    error = errors.UnsupportedSpark("3.5.1", ["4.2", "4.3"])
    assert "pip install 'pyspark[connect]==4.3.*'" in error.cures[0]
    assert "pip install --upgrade selinger" in error.cures[-1]


def test_not_loaded_names_three_causes_and_what_the_session_has() -> None:
    text = str(errors.NotLoaded("x.Y", None))
    assert "spark.sql.extensions is x.Y, spark.jars is unset" in text
    assert "the jar is missing" in text
    assert "spark.sql.extensions is not set, or was set too late" in text
    assert "the class could not be loaded" in text


def test_not_loaded_names_the_likeliest_cause_first() -> None:
    assert errors.NotLoaded(None, "s.jar").cures[0].startswith("spark.sql.extensions is not set")
    assert errors.NotLoaded(f"x.Y,{selinger.EXTENSION}", None).cures[0].startswith("the jar is")


def test_errors_survive_pickling() -> None:
    error = errors.JarNotFound("4.3", "/jars", ["4.2"])
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert copy.found == ("4.2",)
