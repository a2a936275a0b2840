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


def test_functions_in_python_stay_apart_from_others(spark: SparkSession) -> None:
    """Spark plans them by themselves, so no aggregation gets both kinds of functions."""

    @pandas_udf("long")  # type: ignore[call-overload,untyped-decorator,unused-ignore]
    def largest(values: pd.Series) -> int:
        return int(values.max())

    rows = spark.range(100).selectExpr("id % 3 AS a", "id % 2 AS b", "id")
    spark.conf.set("spark.selinger.merge.minGain", "0")
    try:
        one = rows.where("b = 0").groupBy("a", "b").agg(largest("id").alias("m"))
        other = rows.where("b = 1").groupBy("a", "b").count()
        joined = one.join(other, "a").select("a", "m", "count")
        reasons = {d.reason for d in selinger.explain(joined, all=True).decisions}
        assert "AGGREGATES_DIFFER" in reasons
        assert sorted(map(tuple, joined.collect())) == [(0, 96, 17), (1, 94, 17), (2, 98, 16)]
        total = rows.groupBy().agg(largest("id").alias("m"))
        assert len(rows.groupBy("a").count().crossJoin(total).collect()) == 3
    finally:
        spark.conf.unset("spark.selinger.merge.minGain")
