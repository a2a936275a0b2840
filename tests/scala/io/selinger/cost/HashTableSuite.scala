package io.selinger.cost

import io.selinger.estimate.RowSize
import io.selinger.stats.ColumnStatistics
import io.selinger.testing.{Plans, SharedSession}
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec
import org.apache.spark.sql.execution.joins.{HashJoin, ShuffledHashJoinExec}
import org.apache.spark.sql.types.LongType
import org.scalatest.funsuite.AnyFunSuite

/** The memory that we expect of a hash table is at least half of what Spark's own takes. */
class HashTableSuite extends AnyFunSuite with SharedSession {

  // Key, payload and rows of a build side. Few columns and many, numbers and text, keys that pack
  // into a long and others; enough rows that a table's fixed pages do not matter.
  private val shapes: Seq[(String, Long, Seq[String], String)] = Seq(
    ("a bigint key alone", 300000L, Seq("id AS k"), "k"),
    (
      "an int key and numbers",
      200000L,
      Seq("cast(id AS int) AS k", "id * 2 AS v", "id / 3.0D AS w"),
      "k"
    ),
    (
      "two int keys",
      200000L,
      Seq("cast(id AS int) AS k", "cast(id AS int) AS l", "id AS v"),
      "k,l"
    ),
    ("a key with many duplicates", 200000L, Seq("id % 1000 AS k", "id AS v"), "k"),
    ("a bigint key and text", 200000L, Seq("id AS k", "repeat('x', 40) AS s"), "k")
  )

  private def predicted(rows: Long, columns: Seq[String], key: String): Double = {
    val output = Plans.execution(spark.range(rows).selectExpr(columns: _*)).optimizedPlan.output
    val keys =
      HashJoin.rewriteKeyExpr(key.split(',').toSeq.map(name => output.find(_.name == name).get))
    val types = keys.map(_.dataType)
    val statistics = output.filter(_.name == "s").map { column =>
      column.exprId -> ColumnStatistics(averageBytes = Some(40))
    }
    HashTable.bytes(
      rows.toDouble,
      RowSize.bytes(output, statistics.toMap),
      RowSize.bytesOfTypes(types),
      types == Seq(LongType)
    )
  }

  /** Bytes that Spark itself reports of a table that it has built. */
  private def actual(rows: Long, columns: Seq[String], key: String, hint: String): Double = {
    spark.range(rows).selectExpr(columns: _*).createOrReplaceTempView("build")
    spark.range(
      0,
      10
    ).selectExpr("id AS k", "cast(id AS int) AS l").createOrReplaceTempView("probe")
    val df = spark.sql(
      s"SELECT /*+ $hint(build) */ * FROM probe JOIN build USING (${key.replace(",", ", ")})"
    )
    df.collect()
    Plans
      .physical(df)
      .collectFirst {
        case exchange: BroadcastExchangeExec => exchange.metrics("dataSize").value
        case join: ShuffledHashJoinExec => join.metrics("buildDataSize").value
      }
      .getOrElse(fail("no hash table was built"))
      .toDouble
  }

  for ((name, rows, columns, key) <- shapes; hint <- Seq("BROADCAST", "SHUFFLE_HASH"))
    test(s"$name ($hint)") {
      val ratio = predicted(rows, columns, key) / actual(rows, columns, key, hint)
      assert(ratio >= 0.5 && ratio <= 2.5, "of what Spark takes")
    }
}
