package io.selinger.estimate.plans

import io.selinger.conf.SelingerConf
import io.selinger.core.PlanningPass
import io.selinger.stats.footers.{FooterStore, ReadFooterStatistics}
import io.selinger.testing.{Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical.Aggregate
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, ShuffleQueryStageExec}
import org.scalatest.funsuite.AnyFunSuite

/** Which sums cannot exceed their type, by types and by the footers of files. */
class ExactSumsSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.grouped

  private val ansi = "spark.sql.ansi.enabled"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
    spark.sql("SELECT * FROM facts").createOrReplaceTempView("t")
  }

  /** Whether the one aggregate function of a query is exact. */
  private def isExact(df: => DataFrame, strict: String = "true"): Boolean =
    withConf(ansi -> strict) {
      PlanningPass.start()
      val found = Plans.execution(df).optimizedPlan.collect { case aggregate: Aggregate =>
        aggregate.aggregateExpressions.flatMap(_.collect { case made: AggregateExpression =>
          ExactSums.isExact(made.aggregateFunction, aggregate.child)
        })
      }.flatten
      assert(found.size == 1, "the query has one aggregate function")
      found.head
    }

  private def sumOf(value: String, from: String = "t"): Boolean =
    isExact(spark.sql(s"SELECT k, sum($value) FROM $from GROUP BY k"))

  test("sums of smaller types are exact, and bigint where it wraps around") {
    Seq("k", "cast(k AS tinyint)", "d", "cast(k AS decimal(9, 2))").foreach(v =>
      assert(sumOf(v), v)
    )
    assert(!sumOf("amount"), "a decimal of 38 digits")
    assert(!sumOf("big * 1000"))
    assert(isExact(spark.sql("SELECT sum(big * 1000) FROM t"), strict = "false"))
    assert(
      !isExact(spark.sql("SELECT try_sum(big * 1000) FROM t")),
      "its null depends on the order"
    )
    assert(isExact(spark.sql("SELECT avg(big * 1000) FROM t")), "averages are doubles")
  }

  test("bigint is exact where the footers say that values fit into an int") {
    // Up to 3,000, and up to 359 * 1,000,003, negative, or null.
    Seq("id", "big", "-big", "abs(big)").foreach(v => assert(sumOf(v), v))
    assert(isExact(spark.sql("SELECT try_sum(big) FROM t")))
  }

  test("bounds of days say nothing of the seconds that a cast makes of them") {
    assert(!sumOf("cast(cast(day AS timestamp) AS bigint)"))
    assert(!sumOf("unix_seconds(cast(day AS timestamp))"))
  }

  test("what is computed of such columns is exact as far as it fits") {
    Seq(
      "big * 5",
      "id * id",
      "big + big - id",
      "coalesce(big, id, 7)",
      "if(flag, big, 0)",
      "CASE WHEN k > 3 THEN big WHEN k > 2 THEN id END",
      "greatest(id, big)",
      "cast(k AS bigint)",
      "cast(flag AS int) + id"
    ).foreach(v => assert(sumOf(v), v))
    Seq(
      "big * 6",
      "id * big",
      "big * 5 + big",
      "coalesce(big, 3000000000)",
      "if(flag, big, id * 1000000)",
      "CASE WHEN k > 3 THEN big ELSE big * 7 END",
      "cast(amount AS bigint)",
      "cast(s AS bigint)",
      "cast(unix_date(day) AS bigint) * 1000000"
    ).foreach(v => assert(!sumOf(v), v))
  }

  test("what wraps around may be anything of its type") {
    withConf(ansi -> "false") {
      assert(isExact(spark.sql("SELECT k, try_sum(id * 700000) FROM t GROUP BY k"), "false"))
      // 2^32 + 2^31 wraps around to more than the int had.
      assert(!isExact(
        spark.sql("SELECT k, try_sum(id * 3000000000 * 4000000000) FROM t GROUP BY k"),
        "false"
      ))
      assert(isExact(spark.sql("SELECT k, sum(cast(big * big AS int)) FROM t GROUP BY k"), "false"))
    }
  }

  test("columns are followed through operators to their files") {
    Seq(
      "(SELECT k, big AS v FROM t WHERE id > 5 ORDER BY id LIMIT 7)" -> true,
      "(SELECT a.k, b.big AS v FROM t a LEFT JOIN dims b ON a.k = b.k)" -> true,
      "(SELECT k, big AS v FROM t UNION ALL SELECT k, id FROM dims)" -> true,
      "(SELECT k, big AS v FROM t UNION ALL SELECT k, id * 1000000000 FROM dims)" -> false,
      "(SELECT k, id AS v, y FROM t LATERAL VIEW explode(array(1, 2)) x AS y WHERE y > 1)" -> true,
      "(SELECT k, v FROM (SELECT k, big AS v, rank() OVER (PARTITION BY k ORDER BY id) AS r FROM t) WHERE r < 9)" -> true,
      "(SELECT k, v FROM t LATERAL VIEW explode(array(big * 9)) x AS v)" -> false,
      "(SELECT id % 3 AS k, id AS v FROM range(-70000, 70000))" -> true,
      "(SELECT id % 3 AS k, id AS v FROM range(3000000000, 3000000009))" -> false
    ).foreach { case (from, exact) => assert(sumOf("v", from) == exact, from) }
  }

  test("an aggregation below passes on what it chooses, and not what it adds up") {
    def above(function: String) = {
      val text = s"SELECT sum(v) FROM (SELECT k, $function AS v FROM t GROUP BY k)"
      withConf(ansi -> "true") {
        PlanningPass.start()
        Plans.execution(spark.sql(text)).optimizedPlan.collectFirst {
          case Aggregate(Nil, results, child, _) =>
            results.flatMap(_.collect { case made: AggregateExpression =>
              ExactSums.isExact(made.aggregateFunction, child)
            })
        }.get
      }
    }
    Seq("max(big)", "min(id)", "first(big)", "max(big) FILTER (WHERE flag)").foreach(function =>
      assert(above(function) == Seq(true), function)
    )
    Seq("sum(big)", "count(DISTINCT s) * 9", "max(big) * 9", "max(id * big)").foreach(function =>
      assert(above(function) == Seq(false), function)
    )
  }

  test("nothing is known without the footers of all files") {
    FooterStore.clear()
    withConf(SelingerConf.FOOTER_MAX_FILES.key -> "1")(assert(!sumOf("big")))
    withConf(ReadFooterStatistics.switch -> "false")(assert(!sumOf("big")))
    withConf("spark.sql.parquet.fieldId.read.enabled" -> "true")(assert(!sumOf("big")))
    assert(sumOf("big"))
  }

  for (format <- Seq("parquet", "orc"))
    test(s"$format: a file that comes later counts, and one that lacks the column, too") {
      withFolder { folder =>
        val path = folder.resolve("grows").toString
        def add(column: String) = spark
          .range(3)
          .selectExpr("id AS k", column)
          .write
          .mode("append")
          .format(format)
          .save(path)
        def sum = isExact(
          spark.read
            .schema("k BIGINT, v BIGINT")
            .format(format)
            .load(path)
            .groupBy("k")
            .sum("v")
        )
        add("id AS v")
        assert(sum)
        add("cast(null AS bigint) AS v")
        assert(sum, "nulls only")
        add("id + 5000000000 AS v")
        assert(!sum, "a value that does not fit")
      }
      withFolder { folder =>
        val path = folder.resolve("lacks").toString
        spark.range(3).selectExpr("id AS k", "id AS v").write.format(format).save(path)
        spark.range(3).selectExpr("id AS k").write.mode("append").format(format).save(path)
        val table = spark.read.schema("k BIGINT, v BIGINT").format(format).load(path)
        assert(!isExact(table.groupBy("k").sum("v")), "a default value may take its place")
      }
    }

  test("a column of many projections is looked up once in each") {
    val nested = (1 to 30).foldLeft("SELECT k, id AS v FROM t")((from, i) =>
      s"SELECT k, if(v % $i > 1, v, v * 1) AS v FROM ($from)"
    )
    assert(sumOf("v", s"($nested)"))
  }

  test("decimals and times of files that are read as bigint prove nothing") {
    withFolder { folder =>
      val decimals = folder.resolve("decimals").toString
      spark.sql(
        "SELECT id AS k, cast(id AS decimal(18, 10)) AS v FROM range(9)"
      ).write.parquet(decimals)
      val times = folder.resolve("times").toString
      spark.sql("SELECT id AS k, timestamp_micros(id) AS v FROM range(9)").write.parquet(times)
      Seq(decimals, times).foreach { path =>
        val table = spark.read.schema("k BIGINT, v BIGINT").parquet(path)
        assert(!isExact(table.groupBy("k").sum("v")), path)
      }
    }
  }

  test("columns of files that are told apart by case, or by their places, prove nothing") {
    withConf("spark.sql.caseSensitive" -> "true")(assert(!sumOf("big")))
    withFolder { folder =>
      val path = folder.resolve("places").toString
      spark.range(9).selectExpr("id AS _col0", "id AS _col1").write.orc(path)
      val table = spark.read.schema("_col1 BIGINT, _col0 BIGINT").orc(path)
      assert(!isExact(table.groupBy("_col0").sum("_col1")))
    }
  }

  test("sums are followed through a query that has begun to run") {
    withConf(ansi -> "true", "spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      val df = spark.sql(
        "SELECT a.s, sum(a.big) FROM facts a JOIN dims b ON a.k = b.k GROUP BY a.s ORDER BY 1"
      )
      df.collect()
      val stages = Plans.physical(df).collect { case stage: ShuffleQueryStageExec =>
        stage.logicalLink
      }.flatten.collect { case stage: LogicalQueryStage => stage }
      assert(stages.nonEmpty)
      val found = stages.flatMap(stage =>
        stage.output.filter(_.name == "big").map(ExactSums.fitsInt(_, stage))
      )
      assert(found.nonEmpty && found.forall(identity))
    }
  }

  test("partition columns have the values of the listing") {
    withFolder { folder =>
      val path = folder.resolve("parts").toString
      spark.range(9).selectExpr("id", "id % 3 AS p").write.partitionBy("p").parquet(path)
      val table = spark.read.schema("id BIGINT, p BIGINT").parquet(path)
      assert(isExact(table.groupBy("id").sum("p")))
      spark.range(1).selectExpr("id", "7000000000 AS p").write.partitionBy("p").mode("append")
        .parquet(path)
      val more = spark.read.schema("id BIGINT, p BIGINT").parquet(path)
      assert(!isExact(more.groupBy("id").sum("p")))
      assert(isExact(more.where("p < 5").groupBy("id").sum("p")), "other partitions are not read")
    }
  }
}
