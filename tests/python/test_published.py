"""The jar out of a Maven repository, as ``spark-submit --packages`` gets it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import selinger

ROOT = Path(__file__).resolve().parents[2]
LINE = Path(selinger.jar_path()).stem.removeprefix("selinger-spark-")

SCRIPT = """
import selinger
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = selinger.configure(builder).getOrCreate()
print(selinger.status(spark).active, spark.conf.get("spark.jars", ""))
spark.stop()
"""


@pytest.mark.skipif(
    os.environ.get("SELINGER_TEST_ALL") != "1", reason="runs the build: make test-all"
)
def test_packages_find_what_publish_local_has_written(tmp_path: Path) -> None:
    repository = tmp_path / "m2"
    subprocess.run(
        ["make", f"publish-local-{LINE}", f"M2={repository}"],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (pom,) = repository.rglob("*.pom")
    assert "<name>Apache-2.0</name>" in pom.read_text()
    assert "<dependency>" not in pom.read_text()
    version = (ROOT / "version.sbt").read_text().split('"')[1]
    package = f"io.selinger:selinger-spark-{LINE}_2.13:{version}"
    arguments = f"--repositories {repository.as_uri()} --packages {package}"
    arguments += f" --conf spark.jars.ivy={tmp_path}/ivy pyspark-shell"
    script = tmp_path / "app.py"
    script.write_text(SCRIPT)
    env = {**os.environ, "PYTHONPATH": str(Path(selinger.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path, env={**env, "PYSPARK_SUBMIT_ARGS": arguments},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    active, jars = done.stdout.strip().splitlines()[-1].split(maxsplit=1)
    assert active == "True"
    # The one of the repository, and no second one.
    assert "io.selinger_selinger-spark-" in jars
    assert len(jars.split(",")) == 1
