from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import selinger
from selinger import install
from selinger._launch import launch_conf, parse_properties, split_words

ROOT = Path(__file__).resolve().parents[3]
EXTENSIONS = "spark.sql.extensions"
PROVIDERS = "spark.sql.extendedExplainProviders"


class Builder:
    """What a session builder of PySpark's is to `configure`."""

    def __init__(self, **options: str) -> None:
        self._options: dict[str, str] = {k.replace("_", "."): v for k, v in options.items()}

    def config(self, key: str, value: str) -> Builder:
        self._options[key] = value
        return self


@pytest.fixture(autouse=True)
def no_launch_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (
        "PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME",
        "SPARK_REMOTE",
    )  # fmt: skip
    for name in names:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def jars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give a folder of jars with the 4.3 one in it, beside PySpark 4.3."""
    monkeypatch.setattr("pyspark.version.__version__", "4.3.0")
    (tmp_path / "selinger-spark-4.3.jar").touch()
    (tmp_path / "selinger-spark-4.3-sources.jar").touch()
    monkeypatch.setattr(install, "_JARS", tmp_path)
    return tmp_path


@pytest.mark.parametrize("version", ["4.3", "4.3.0", "4.3.1.dev0", "4.3.0-vendor-1", "v4.3.2"])
def test_jar_path_takes_the_jar_of_the_line(jars: Path, version: str) -> None:
    assert selinger.jar_path(version) == str(jars / "selinger-spark-4.3.jar")


def test_jar_path_asks_the_installed_pyspark(jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.version.__version__", "4.3.9")
    assert selinger.jar_path().endswith("selinger-spark-4.3.jar")


def test_jar_not_found_names_folder_lines_and_cure(jars: Path) -> None:
    with pytest.raises(selinger.JarNotFound) as caught:
        selinger.jar_path("4.2.0")
    text = str(caught.value)
    assert str(jars) in text
    assert "jars there: 4.3" in text
    assert "make jar SPARK=4.2" in text
    assert "--force-reinstall" in text


def test_jar_not_found_without_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(install, "_JARS", tmp_path / "none")
    with pytest.raises(selinger.JarNotFound, match="no jar is there"):
        selinger.jar_path("4.3.0")


@pytest.mark.parametrize("version", ["3.5.1", "4.30.0", "5.0.0", "14.3", "nonsense", ""])
def test_unsupported_spark_names_version_and_lines(jars: Path, version: str) -> None:
    with pytest.raises(selinger.UnsupportedSpark) as caught:
        selinger.jar_path(version)
    assert f"Spark {version}" in str(caught.value)
    assert "4.2, 4.3" in str(caught.value)


def test_a_jar_built_by_hand_for_another_line_is_taken(jars: Path) -> None:
    (jars / "selinger-spark-4.1.jar").touch()
    assert selinger.jar_path("4.1.2").endswith("selinger-spark-4.1.jar")


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.version", None)
    with pytest.raises(selinger.PySparkNotFound, match=r"selinger\[spark\]"):
        selinger.jar_path()


def test_supported_lines_are_those_of_the_build() -> None:
    lines = json.loads((ROOT / "conf" / "spark-lines.json").read_text())["lines"]
    assert sorted(install.SUPPORTED_LINES) == sorted(lines)


def test_spark_conf_from_nothing(jars: Path) -> None:
    assert selinger.spark_conf() == {
        "spark.jars": selinger.jar_path(),
        EXTENSIONS: selinger.EXTENSION,
        PROVIDERS: selinger.EXPLAIN_PROVIDER,
    }


def test_spark_conf_appends_and_keeps_the_rest(jars: Path) -> None:
    base = {"spark.jars": "a.jar, b.jar", EXTENSIONS: "x.Y", PROVIDERS: "p.Q", "spark.k": "v"}
    kept = dict(base)
    conf = selinger.spark_conf(base)
    assert base == kept
    assert conf == {
        "spark.jars": f"a.jar,b.jar,{selinger.jar_path()}",
        EXTENSIONS: f"x.Y,{selinger.EXTENSION}",
        PROVIDERS: f"p.Q,{selinger.EXPLAIN_PROVIDER}",
        "spark.k": "v",
    }


def test_spark_conf_twice_is_as_once(jars: Path) -> None:
    once = selinger.spark_conf({EXTENSIONS: "x.Y"})
    assert selinger.spark_conf(once) == once


def test_spark_conf_obeys_a_jar_of_ours_elsewhere(jars: Path) -> None:
    base = {"spark.jars": "s3a://jars/selinger-spark-4.3.jar"}
    assert selinger.spark_conf(base)["spark.jars"] == base["spark.jars"]
    assert selinger.spark_conf(jar="hdfs:///s.jar")["spark.jars"] == "hdfs:///s.jar"


def test_spark_conf_adds_no_jar_beside_that_of_a_package(jars: Path) -> None:
    base = {"spark.jars.packages": "a:b:1, io.selinger:selinger-spark-4.3_2.13:0.1.0"}
    assert "spark.jars" not in selinger.spark_conf(base)
    assert selinger.spark_conf(base)[EXTENSIONS] == selinger.EXTENSION
    assert "spark.jars" in selinger.spark_conf({"spark.jars.packages": "a:b:1"})


def test_configure_sees_the_package_of_the_launcher(
    jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = "io.selinger:selinger-spark-4.3_2.13:0.1.0"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--packages {package} pyspark-shell")
    builder: Any = Builder()
    assert "spark.jars" not in selinger.configure(builder)._options
    assert builder._options["spark.jars.packages"] == package


def test_spark_conf_knows_its_jar_by_a_path_of_windows(jars: Path) -> None:
    base = {"spark.jars": "C:\\Users\\me\\selinger-spark-4.3.jar"}
    assert selinger.spark_conf(base)["spark.jars"] == base["spark.jars"]


def test_spark_conf_without_explain(jars: Path) -> None:
    assert PROVIDERS not in selinger.spark_conf(explain=False)


def test_configure_appends_to_the_builder(jars: Path) -> None:
    builder: Any = Builder(spark_jars="a.jar", spark_app_name="t")
    assert selinger.configure(builder) is builder
    assert builder._options["spark.jars"] == f"a.jar,{selinger.jar_path()}"
    assert builder._options["spark.app.name"] == "t"
    before = dict(builder._options)
    assert selinger.configure(builder)._options == before


def test_configure_real_builder_starts_nothing(jars: Path) -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.config(EXTENSIONS, "x.Y")
    selinger.configure(builder)
    assert builder._options[EXTENSIONS] == f"x.Y,{selinger.EXTENSION}"
    assert SparkContext._active_spark_context is None


def test_configure_keeps_what_the_launcher_would_read(
    jars: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"{EXTENSIONS} d.E\nspark.jars d.jar\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars s.jar pyspark-shell")
    builder: Any = Builder()
    selinger.configure(builder)
    assert builder._options[EXTENSIONS] == f"d.E,{selinger.EXTENSION}"
    assert builder._options["spark.jars"] == f"s.jar,{selinger.jar_path()}"
    assert set(builder._options) == {"spark.jars", EXTENSIONS, PROVIDERS}


@pytest.mark.parametrize("remote", ["sc://host:15002", "sc://host/;token=x"])
def test_configure_leaves_a_server_alone(jars: Path, remote: str) -> None:
    builder: Any = Builder(spark_remote=remote)
    assert selinger.configure(builder)._options == {"spark.remote": remote}


def test_configure_local_remote_gets_the_settings(jars: Path) -> None:
    builder: Any = Builder(spark_remote="local[2]")
    assert EXTENSIONS in selinger.configure(builder)._options


def test_configure_leaves_a_submitted_script_alone(
    jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    builder: Any = Builder()
    assert selinger.configure(builder)._options == {}


@pytest.mark.parametrize(
    "place",
    [
        "{}/selinger-spark-4.3.jar",
        "file:{}/selinger-spark-4.3.jar",
        "file://{}/selinger-spark-4.3.jar",
    ],
)
def test_configure_refuses_a_jar_that_is_not_there(jars: Path, tmp_path: Path, place: str) -> None:
    builder: Any = Builder(spark_jars="a.jar," + place.format(tmp_path / "nowhere"))
    with pytest.raises(selinger.JarMissing, match="there is no such file") as caught:
        selinger.configure(builder)
    assert "nowhere" in caught.value.cause
    assert EXTENSIONS not in builder._options


def test_configure_takes_a_jar_that_is_there_or_elsewhere(jars: Path, tmp_path: Path) -> None:
    spaced = tmp_path / "my jars" / "selinger-spark-4.3.jar"
    spaced.parent.mkdir()
    spaced.touch()
    elsewhere = ["s3a://jars/selinger-spark-4.3.jar", "/jars/*/selinger-spark-4.3.jar"]
    for jar in [str(spaced), spaced.as_uri(), *elsewhere]:
        builder: Any = Builder(spark_jars=jar)
        assert selinger.configure(builder)._options["spark.jars"] == jar


def test_configure_refuses_a_builder_that_hides_its_options(jars: Path) -> None:
    builder: Any = object()
    with pytest.raises(selinger.BuilderUnreadable, match="spark_conf"):
        selinger.configure(builder)


def test_properties_in_all_their_forms() -> None:
    text = "# c\n\nspark.a  1\nspark.b=2\nspark.c : 3\nspark.d  x=y z\nspark.e 1,\\\n2\nspark.f\n"
    text += "spark.g C:\\\\jars\\\\\\u0061.jar\n"
    assert parse_properties(text) == {
        "spark.a": "1",
        "spark.b": "2",
        "spark.c": "3",
        "spark.d": "x=y z",
        "spark.e": "1,2",
        "spark.g": "C:\\jars\\a.jar",
    }


def test_submit_arguments_win_over_defaults(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.a 1\nspark.b 1\n")
    arguments = "--conf spark.a=2 --conf=spark.c='x y' --master local[2] pyspark-shell"
    env = {"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": arguments}
    assert launch_conf(env) == {"spark.a": "2", "spark.b": "1", "spark.c": "x y"}


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (r"--jars C:\jars\a.jar", ["--jars", r"C:\jars\a.jar"]),
        (r"C:\\jars\\a.jar D:/b.jar", [r"C:\jars\a.jar", "D:/b.jar"]),
        (r"'C:\my jars\a.jar' x", [r"C:\my jars\a.jar", "x"]),
        (r'"C:\my jars\a.jar" "say \"a\""', [r"C:\my jars\a.jar", 'say "a"']),
        (r"--conf=spark.c='C:\a b'\c.jar", [r"--conf=spark.c=C:\a b\c.jar"]),
        (r"/my\ jars/a.jar it\'s", ["/my jars/a.jar", "it's"]),
        ("C:\\jars\\", ["C:\\jars\\"]),
        ("", []),
    ],
)
def test_words_of_a_command_line_keep_backslashes_of_paths(written: str, words: list[str]) -> None:
    assert split_words(written) == words


def test_submit_arguments_with_paths_of_windows(jars: Path) -> None:
    arguments = r"--jars C:\jars\a.jar --conf spark.b='D:\my files\b' pyspark-shell"
    conf = launch_conf({"SPARK_CONF_DIR": str(jars), "PYSPARK_SUBMIT_ARGS": arguments})
    assert conf == {"spark.jars": r"C:\jars\a.jar", "spark.b": r"D:\my files\b"}
    assert selinger.spark_conf(conf)["spark.jars"] == rf"C:\jars\a.jar,{selinger.jar_path()}"


def test_import_does_nothing() -> None:
    code = "import selinger, sys; print('pyspark' in sys.modules, 'tqdm' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    told = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["False", "False"]
    assert told.stderr == ""
