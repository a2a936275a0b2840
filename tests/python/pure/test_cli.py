from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
import selinger
from selinger import cli, doctor, install


@pytest.fixture
def jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Give an installation whose jar is an empty file."""
    path = tmp_path / "a folder" / "selinger-spark-4.3.jar"
    path.parent.mkdir()
    path.touch()
    monkeypatch.setattr(install, "_JARS", path.parent)
    monkeypatch.setattr("pyspark.version.__version__", "4.3.0")
    return str(path)


def test_jar_prints_the_path_and_nothing_else(jar: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["jar"]) == 0
    assert capsys.readouterr().out == f"{jar}\n"


def test_version(jar: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert out == f"selinger {selinger.__version__} (jars for Spark: 4.3)\n"


def test_jar_of_an_unsupported_version(jar: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["jar", "--spark-version", "3.5.0"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "does not support Spark 3.5.0" in err


def test_conf_prints_flags_that_a_shell_can_read(
    jar: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """``$(selinger conf)`` is cut at spaces, whatever quotes there are."""
    assert cli.main(["conf"]) == 0
    out = capsys.readouterr().out
    assert (
        out.split()
        == shlex.split(out)
        == [
            "--jars",
            Path(jar).as_uri(),
            "--conf",
            f"spark.sql.extensions={selinger.EXTENSION}",
            "--conf",
            f"spark.sql.extendedExplainProviders={selinger.EXPLAIN_PROVIDER}",
        ]
    )


def test_conf_properties_are_read_back(jar: str, capsys: pytest.CaptureFixture[str]) -> None:
    from selinger._launch import parse_properties

    assert cli.main(["conf", "--format", "properties"]) == 0
    expected = {**selinger.spark_conf(), "spark.jars": Path(jar).as_uri()}
    assert parse_properties(capsys.readouterr().out) == expected


@pytest.mark.parametrize(
    ("path", "named"),
    [
        (r"C:\Users\me\selinger-spark-4.3.jar", "file:///C:/Users/me/selinger-spark-4.3.jar"),
        (r"C:\my jars\s.jar", "file:///C:/my%20jars/s.jar"),
        ("C:/jars/s.jar", "file:///C:/jars/s.jar"),
        # A relative one stays relative; in a properties file a backslash must be written twice.
        (r"jars\new\s.jar", r"jars\new\s.jar"),
    ],
)
def test_conf_with_a_path_of_windows(
    path: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from selinger._launch import parse_properties

    assert cli.main(["conf", "--format", "properties", "--jar", path]) == 0
    assert parse_properties(capsys.readouterr().out)["spark.jars"] == named
    assert cli.main(["conf", "--jar", path]) == 0
    assert shlex.split(capsys.readouterr().out)[:2] == ["--jars", named]


def test_conf_json(jar: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["conf", "--format", "json", "--no-explain"]) == 0
    assert json.loads(capsys.readouterr().out) == selinger.spark_conf(explain=False)


@pytest.mark.parametrize(
    "arguments",
    [[], ["nothing"], ["compare"], ["compare", "SELECT 1", "--table", "t"],
     ["compare", "SELECT 1", "--runs", "0"], ["conf", "--format", "xml"]],
)  # fmt: skip
def test_wrong_arguments(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2


def test_compare_refuses_a_statement_before_it_starts_anything(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_session", lambda _: pytest.fail("started"))
    assert cli.main(["compare", "DROP TABLE t"]) == 3
    assert "Only a query can be compared" in capsys.readouterr().err


def test_compare_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "nowhere/q.sql"]) == 3
    assert "nowhere/q.sql" in capsys.readouterr().err


def test_doctor_without_a_session_finds_a_broken_jar(
    jar: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", "--no-session"]) == 1
    out = capsys.readouterr().out
    assert "[ok] PySpark: 4.3.0 (line 4.3)" in out
    assert f"[FAILED] jar: {jar} cannot be read" in out
    assert "to do: reinstall" in out
    assert "] session:" not in out


def test_doctor_does_not_start_a_session_when_something_is_wrong(
    jar: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "check_session", lambda: pytest.fail("started"))
    last = list(doctor.checks())[-1]
    assert (last.name, last.ok, last.found) == ("session", False, "not tried")


def test_doctor_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.version", None)
    check = doctor.check_pyspark()
    assert not check.ok
    assert "pip install 'selinger[spark]'" in str(check)
    assert "or or" not in str(check)


def test_doctor_on_an_unsupported_line(jar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.version.__version__", "3.5.1")
    check = doctor.check_pyspark()
    assert "does not support Spark 3.5.1" in check.found
    assert "pip install 'pyspark[connect]==4.3.*'" in check.cure


def _java(folder: Path, says: str) -> str:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("says", "ok"),
    [
        ('openjdk version "17.0.15" 2025-04-15', True),
        ('openjdk version "21" 2023-09-19', True),
        ('java version "1.8.0_391"', False),
        ('openjdk version "11.0.2" 2019-01-15', False),
        ("no such thing", False),
    ],
)
def test_doctor_reads_the_version_of_java(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, ok: bool
) -> None:
    monkeypatch.setenv("JAVA_HOME", _java(tmp_path / "jdk", says))
    assert doctor.check_java().ok is ok


def test_doctor_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    check = doctor.check_java()
    assert not check.ok
    assert "install a JDK 17" in str(check)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "does not run" in doctor.check_java().found
