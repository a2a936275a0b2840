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


def test_not_loaded_names_three_causes_and_what_the_session_has() -> None:
    text = str(errors.NotLoaded("x.Y", None))
    assert "spark.sql.extensions is x.Y, spark.jars is unset" in text
    assert "the jar is missing" in text
    assert "spark.sql.extensions is not set, or was set too late" in text
    assert "the class could not be loaded" in text


def test_errors_survive_pickling() -> None:
    error = errors.JarNotFound("4.3", "/jars", ["4.2"])
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert copy.found == ("4.2",)
