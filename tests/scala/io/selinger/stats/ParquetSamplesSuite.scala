package io.selinger.stats

import org.apache.hadoop.conf.Configuration

class ParquetSamplesSuite extends SampleReaderBehaviors("parquet", ParquetSamples) {

  test("no more rows are decoded than allowed") {
    withData(spark.range(0, 50000, 1, 1).toDF(), "parquet.page.row.count.limit" -> "50000") {
      (df, file) =>
        // Older files, and those of other writers, have no index to find pages by.
        val chunk = read(file, df.schema, rows = 100, window = 2000)("id")
        assert(values(chunk).size == 100)
        assert(chunk.exists(_.covered <= 8192))
    }
  }

  test("of a large row group with an index, pages in many places are read") {
    withData(
      spark.range(0, 200000, 1, 1).selectExpr("id", "uuid() AS wide"),
      "parquet.page.row.count.limit" -> "1000"
    ) { (df, file) =>
      val found = read(file, df.schema, rows = 400, window = 10000)
      val ids = values(found("id")).collect { case id: Long => id }
      assert(ids.size == 400 && ids.map(_ / 25000).distinct.size >= 6)
      assert(found("wide").exists(_.values.size == 400))
      assert(found("id").exists(_.covered < 10000))
    }
  }

  test("row groups are read on their own") {
    withData(
      spark.range(0, 20000, 1, 1).toDF(),
      "parquet.block.size" -> "4096",
      "parquet.page.row.count.limit" -> "500"
    ) { (df, file) =>
      val groups = ParquetFooters.read(file, new Configuration()).groups
      assert(groups.size > 2)
      val second = values(read(file, df.schema, rows = 10, group = 1)("id"))
      assert(second.forall {
        case id: Long => id >= groups.head && id < groups.take(2).sum
        case _ => false
      })
    }
  }
}
