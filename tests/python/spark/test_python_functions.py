"""Aggregate functions in Python: Spark plans them with operators of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd  # noqa: TC002 - Spark reads the hints of the function
import pytest
import selinger
from pyspark.sql.functions import max as greatest
from pyspark.sql.pandas.functions import pandas_udf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("mode", ["on", "off"])
def test_grouped_function_in_python(spark: SparkSession, mode: str) -> None:
    @pandas_udf("double")  # type: ignore[call-overload,untyped-decorator,unused-ignore]
    def mean(values: pd.Series) -> float:
        return float(values.mean())

    df = spark.range(10).selectExpr("id", "id % 2 AS k", "string(id) AS s")
    with selinger.settings(spark, mode=mode):
        found = df.groupBy("k").agg(mean("id").alias("m")).collect()
        assert sorted((row.k, row.m) for row in found) == [(0, 4.0), (1, 5.0)]
        texts = df.groupBy("k").agg(greatest("s").alias("m")).collect()
        assert sorted((row.k, row.m) for row in texts) == [(0, "8"), (1, "9")]
