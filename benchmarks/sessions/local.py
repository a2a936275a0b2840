"""Sessions of the benchmarks of single parts: in this process, or for a class of the test jar."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
import selinger
from pyspark.sql import SparkSession
from selinger.install import installed_spark, jar_path, spark_line

from benchmarks.paths import ROOT
from benchmarks.sessions.profiles import COMMON


def session(memory: str, conf: Mapping[str, str]) -> SparkSession:
    """Start a classic session with Selinger, by default in mode ``advise``."""
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", memory)
    builder = builder.config(map={**COMMON, "spark.selinger.mode": "advise", **conf})
    spark = selinger.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def test_jar() -> Path:
    """Find the jar with the benchmarks' classes."""
    jar = Path("target", f"spark-{spark_line(installed_spark())}", "selinger-tests.jar")
    if not (ROOT / jar).is_file():
        raise SystemExit(f"the benchmarks' classes are not built: make {jar}")
    return ROOT / jar


def submit(
    main: str, request: Mapping[str, Any], memory: str, conf: Mapping[str, str]
) -> list[dict[str, Any]]:
    """
    Run a class of the test jar in a session of stock Spark.

    It reads the request from a JSON file and answers with a file of JSON lines, which are returned.
    A class that fails has said why on standard error.
    """
    settings = {"spark.master": "local[2]", "spark.log.level": "ERROR", **conf}
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    spark_submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    with tempfile.TemporaryDirectory(prefix="benchmark-") as temp:
        asked, answered = Path(temp, "request.json"), Path(temp, "answer.jsonl")
        asked.write_text(json.dumps({**request, "out": str(answered)}), encoding="utf-8")
        command = [str(spark_submit), "--class", main, "--driver-memory", memory, *options]
        subprocess.run(
            [*command, "--jars", jar_path(), str(test_jar()), str(asked)],
            check=True,
            cwd=temp,
            env={**os.environ, "SPARK_LOCAL_DIRS": temp, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        return [json.loads(line) for line in answered.read_text(encoding="utf-8").splitlines()]
