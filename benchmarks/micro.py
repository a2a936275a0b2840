"""What the benchmarks of single parts share: a session, and where their results go."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import selinger

from benchmarks.paths import RESULTS
from benchmarks.profiles import COMMON
from benchmarks.setting import commit, machine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession


def session(memory: str, conf: Mapping[str, str]) -> SparkSession:
    """
    Start a classic session with Selinger in mode ``advise``.

    Parameters
    ----------
    memory : str
        Heap of the driver, such as ``8g``.
    conf : mapping of str to str
        Confs besides the common ones of all benchmarks.

    Returns
    -------
    pyspark.sql.SparkSession

    Examples
    --------
    >>> session("2g", {})  # doctest: +SKIP
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", memory)
    for key, value in {**COMMON, "spark.selinger.mode": "advise", **conf}.items():
        builder = builder.config(key, value)
    spark = selinger.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def write(
    benchmark: str, spark_version: str, data: str, rows: Sequence[Any], summary: dict[str, Any]
) -> None:
    """
    Write ``benchmarks/results/<benchmark>.json``.

    Parameters
    ----------
    benchmark : str
        Its name.
    spark_version : str
        The version that ran.
    data : str
        What it ran on.
    rows : sequence
        One a case.
    summary : dict
        The figures that count.

    Examples
    --------
    >>> write("operators", "4.3.0", "generated", [], {})  # doctest: +SKIP
    """
    results = {
        "benchmark": benchmark,
        "commit": commit(),
        "spark": spark_version,
        "data": data,
        "machine": machine(),
        "rows": list(rows),
        "summary": summary,
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{benchmark}.json").write_text(json.dumps(results, indent=1) + "\n")
