"""Each way into Spark, as the documentation has it, and what users see where it goes wrong.

``spark-submit`` is in ``test_cluster.py``, the installed package in ``test_wheel.py``. Each test
starts a Spark or two, so some of them run with ``SELINGER_TEST_ALL=1`` only.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import selinger

from tests.python.processes import run

WHOLE = pytest.mark.skipif(
    os.environ.get("SELINGER_TEST_ALL") != "1", reason="takes its time: make test-all"
)

#: What makes small tables worth a decision, and lets stock Spark sort both sides of their join.
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.selinger.failOnError": "true",
    "spark.selinger.join.minGain": "0",
    "spark.selinger.mode": "on",
    "spark.selinger.planning.smallTableMaxBytes": "0",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
QUERY = "SELECT a.id, b.id AS other FROM range(2000) a JOIN range(100, 300) b ON a.id = b.id"

STARTED = f"""
import contextlib, io, json, sys, warnings
import selinger
from pyspark.sql import SparkSession

QUERY = "{QUERY}"
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.memory", "1g").config("spark.log.level", "ERROR")

def error(body):
    try:
        body()
    except Exception as raised:
        return [type(raised).__name__, str(raised)]
"""


def python() -> str:
    """Write the Python of the tests as a shell reads it."""
    return shlex.quote(sys.executable)


def spaced_jar(tmp_path: Path) -> Path:
    """Copy the jar to a path with spaces."""
    jar = tmp_path / "my jars" / Path(selinger.jar_path()).name
    jar.parent.mkdir()
    shutil.copy(selinger.jar_path(), jar)
    return jar


def other_line(folder: Path) -> Path:
    """Copy the jar as if it had been built for another Spark line: only what it says of itself."""
    line = re.sub(r".*spark-(.*)\.jar", r"\1", selinger.jar_path())
    other = "4.2" if line == "4.3" else "4.3"
    jar = folder / f"selinger-spark-{other}.jar"
    entry = "io/selinger/core/BuildInfo$.class"

    def constant(text: str) -> bytes:
        return b"\x01" + len(text).to_bytes(2, "big") + text.encode()

    with zipfile.ZipFile(selinger.jar_path()) as source, zipfile.ZipFile(jar, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == entry:
                assert data.count(constant(line)) == 1
                data = data.replace(constant(line), constant(other))
            target.writestr(name, data)
    return jar


def shell(
    tmp_path: Path, command: str, said: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of a shell, as users type it, with text for its input."""
    return subprocess.run(
        ["bash", "-c", command], input=said, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(selinger.__file__).parents[1]), **env},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def flags(jar: Path | None = None) -> str:
    """Write the flags as the documentation has them, and those of the tests."""
    named = f" --jar '{jar}'" if jar else ""
    settings = " ".join(f"--conf {key}={value}" for key, value in SETTINGS.items())
    return f"$({python()} -m selinger conf{named}) --master 'local[2]' {settings}"


def test_notebook(tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    settings = "".join(f".config({key!r}, {value!r})" for key, value in SETTINGS.items())
    started = f"""import selinger
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[2]"){settings}
spark = selinger.configure(builder).getOrCreate()
selinger.status(spark)"""
    run_it = f"df = spark.sql({QUERY!r})\nlen(df.collect())"
    compared = "selinger.compare(df, runs=1)"
    cells = [started, run_it, "selinger.explain(df)", compared, "spark.stop()"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    results = [
        [out["data"] for out in cell["outputs"] if out["output_type"] == "execute_result"]
        for cell in notebook.cells
    ]
    (status,), (rows,), (explanation,), (comparison,), _ = results
    assert "<td>active</td><td>true</td>" in status["text/html"]
    assert rows["text/plain"] == "200"
    assert '<p class="lead">1 of 1 join changed' in explanation["text/html"]
    assert "ShuffledHashJoin" in explanation["text/html"]
    assert "<details" in comparison["text/html"]
    assert comparison["text/html"].count("<svg") == 2
    assert "ShuffledHashJoin" in comparison["text/html"]


def test_jar_missing_and_session_existing(tmp_path: Path) -> None:
    """Spark goes on with a warning: Selinger says what is wrong, and makes nothing worse."""
    script = """
builder = builder.config("spark.sql.extensions", selinger.EXTENSION)
spark = builder.getOrCreate()
df = spark.sql(QUERY)
result = {"status": error(lambda: selinger.status(spark))}
result["explain"] = error(lambda: selinger.explain(df))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    spark = selinger.configure(SparkSession.builder).getOrCreate()
result["warning"] = [str(w.message) for w in caught if "Selinger" in str(w.message)]
# With the explain provider that is not there, this would fail.
result["rows"] = len(spark.sql(QUERY).collect())
spark.stop()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    spark = selinger.configure(builder).getOrCreate()
result["again"] = [str(w.message) for w in caught if "Selinger" in str(w.message)]
result["rows again"] = len(spark.sql(QUERY).collect())
spark.stop()
print(json.dumps(result))
"""
    found = run(tmp_path, STARTED + script, sys.executable)
    for kind, text in (found["status"], found["explain"]):
        assert kind == "NotLoaded"
        assert text.splitlines()[1].startswith("  - the jar is missing: spark.jars")
    for warned in (found["warning"], found["again"]):
        assert len(warned) == 1
        assert "started Spark already" in warned[0]
        assert "Restart Python" in warned[0]
    assert found["rows"] == found["rows again"] == 200


def test_jar_of_another_line(tmp_path: Path) -> None:
    jar = other_line(tmp_path)
    script = f"""
conf = selinger.spark_conf(jar={str(jar)!r})
printed = io.StringIO()
spark = builder.config(map=conf).getOrCreate()
df = spark.sql(QUERY)
state = selinger.status(spark)
result = {{"active": state.active, "reason": state.reason, "rows": len(df.collect())}}
result["explain"] = error(lambda: selinger.explain(df))
result["rules"] = error(lambda: selinger.rules(spark))
with contextlib.redirect_stdout(printed):
    df.explain()
result["printed"] = printed.getvalue()
spark.stop()
print(json.dumps(result))
"""
    found = run(tmp_path, STARTED + script, sys.executable)
    assert not found["active"]
    assert re.match(r"this jar was built for Spark 4\.. and runs on Spark 4\..", found["reason"])
    assert found["rows"] == 200
    assert "Selinger is not active: this jar was built for Spark 4" in found["printed"]
    for kind, text in (found["explain"], found["rules"]):
        assert kind == "UnsupportedSpark"
        assert text.startswith("Selinger is not active in this session: this jar was built for")
        assert "'selinger jar --spark-version 4." in text
        assert "pip install" in text


@pytest.mark.parametrize(
    ("jar", "told"),
    [
        ("nowhere/selinger-spark-4.3.jar", "nowhere/selinger-spark-4.3.jar, and there is no such"),
        pytest.param(None, "this jar was built for Spark 4", marks=WHOLE),
    ],
)
def test_doctor_reads_spark_defaults(tmp_path: Path, jar: str | None, told: str) -> None:
    named = tmp_path / jar if jar else other_line(tmp_path)
    (tmp_path / "spark-defaults.conf").write_text(f"spark.jars {named}\n")
    done = shell(tmp_path, f"{python()} -m selinger doctor", SPARK_CONF_DIR=str(tmp_path))
    assert done.returncode == 1, done.stdout + done.stderr
    failed = [line for line in done.stdout.splitlines() if line.startswith("[FAILED]")]
    assert len(failed) == 1
    assert failed[0].startswith("[FAILED] session: ")
    assert told in failed[0]
    assert "to do: " in done.stdout
    assert "PYSPARK_SUBMIT_ARGS" in done.stdout


@WHOLE
def test_extension_named_twice_and_a_path_with_spaces(tmp_path: Path) -> None:
    script = f"""
for key, value in {SETTINGS!r}.items():
    builder = builder.config(key, value)
builder = builder.config("spark.sql.extensions", ",".join([selinger.EXTENSION] * 2))
spark = selinger.configure(builder, jar={str(spaced_jar(tmp_path))!r}).getOrCreate()
df = spark.sql(QUERY)
result = {{
    "extensions": spark.conf.get("spark.sql.extensions"),
    "rows": len(df.collect()),
    "decisions": [[d.rule, d.outcome] for d in selinger.explain(df).decisions],
    "status": selinger.status(spark).active,
    "rules": len(selinger.rules(spark)) - len({{rule.rule for rule in selinger.rules(spark)}}),
}}
spark.stop()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    spark = selinger.configure(builder).getOrCreate()
result["warned"] = [str(w.message) for w in caught if "Selinger" in str(w.message)]
result["again"] = selinger.status(spark).active
spark.stop()
print(json.dumps(result))
"""
    found = run(tmp_path, STARTED + script, sys.executable)
    assert found["extensions"].split(",") == [selinger.EXTENSION] * 2
    assert found["status"]
    assert found["rows"] == 200
    assert found["decisions"].count(["selectJoinOperator", "changed"]) == 1
    assert found["rules"] == 0
    # A session may be stopped and made again: the JVM has the jar.
    assert found["warned"] == []
    assert found["again"]


@WHOLE
def test_spark_sql(tmp_path: Path, spark_home: Path) -> None:
    jar = spaced_jar(tmp_path)
    statements = (
        f"SELECT value FROM selinger_status() WHERE key = 'active'; EXPLAIN {QUERY}; {QUERY}"
    )
    memory = "--conf spark.sql.catalogImplementation=in-memory"
    command = f'{spark_home}/bin/spark-sql {flags(jar)} {memory} -e "{statements}"'
    done = shell(tmp_path, command, SPARK_HOME=str(spark_home))
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    assert lines[0] == "true"
    assert "== Extended Information (Selinger) ==" in lines
    assert "1 of 1 join changed" in done.stdout
    assert sum(re.fullmatch(r"\d+\t\d+", line) is not None for line in lines) == 200


@WHOLE
def test_spark_shell(tmp_path: Path, spark_home: Path) -> None:
    said = f'''
val df = spark.sql("{QUERY}")
println("rows: " + df.collect().length)
df.explain()
spark.sql("SELECT * FROM selinger_status()").show(false)
'''
    command = f"{spark_home}/bin/spark-shell {flags(spaced_jar(tmp_path))}"
    done = shell(tmp_path, command, said, SPARK_HOME=str(spark_home))
    assert done.returncode == 0, done.stderr[-4000:]
    assert "rows: 200" in done.stdout
    assert "1 of 1 join changed" in done.stdout
    assert re.search(r"\|active +\|true", done.stdout)


@contextmanager
def connect_server(tmp_path: Path, home: Path) -> Iterator[str]:
    """Start a server by Spark's own script, in the foreground; give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = f"{home}/sbin/start-connect-server.sh {flags()}"
    log = tmp_path / "server.log"
    with log.open("w") as out, subprocess.Popen(
        ["bash", "-c", f"exec {started} --conf spark.connect.grpc.binding.port={port}"],
        cwd=tmp_path, stdout=out, stderr=out, start_new_session=True,
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_NO_DAEMONIZE": "1",
             "PYTHONPATH": str(Path(selinger.__file__).parents[1])},
    ) as server:  # fmt: skip
        try:
            until = time.monotonic() + 120
            while "Spark Connect server started" not in log.read_text():
                assert server.poll() is None, log.read_text()[-4000:]
                assert time.monotonic() < until, log.read_text()[-4000:]
                time.sleep(0.2)
            yield f"sc://127.0.0.1:{port}"
        finally:
            os.killpg(server.pid, 15)


CLIENT = f"""
import json, pathlib, sys, time
import selinger
from pyspark.sql import SparkSession

folder, name = pathlib.Path(sys.argv[1]), "NAME"

def meet(place):
    (folder / f"{{place}}-{{name}}").touch()
    while len(list(folder.glob(f"{{place}}-*"))) < 2:
        time.sleep(0.05)

spark = selinger.configure(SparkSession.builder.remote("ADDRESS")).getOrCreate()
result = {{"before": selinger.status(spark).mode}}
meet("begun")
if name == "a":
    spark.conf.set("spark.selinger.mode", "off")
meet("set")
df = spark.sql("{QUERY}")
explanation = selinger.explain(df)
result["mode"] = selinger.status(spark).mode
result["changed"] = [d.rule for d in explanation.decisions if d.outcome == "changed"]
result["joins"] = "ShuffledHashJoin" in explanation.plan
result["rows"] = len(df.collect())
meet("asked")
spark.stop()
print(json.dumps(result))
"""


@WHOLE
def test_connect_server_with_two_clients(tmp_path: Path, spark_home: Path) -> None:
    """What one client sets does not reach the other, which is there at the same time."""

    def client(name: str, address: str) -> dict[str, Any]:
        folder = tmp_path / name
        folder.mkdir()
        script = CLIENT.replace("NAME", name).replace("ADDRESS", address)
        return run(folder, script.replace("sys.argv[1]", repr(str(tmp_path))), sys.executable)

    with connect_server(tmp_path, spark_home) as address, ThreadPoolExecutor(2) as pool:
        off, on = pool.map(client, ("a", "b"), (address, address))
    assert off["before"] == on["before"] == "on"
    assert (off["mode"], on["mode"]) == ("off", "on")
    assert off["rows"] == on["rows"] == 200
    assert (off["changed"], off["joins"]) == ([], False)
    assert on["changed"] == ["selectJoinOperator"]
    assert on["joins"]
