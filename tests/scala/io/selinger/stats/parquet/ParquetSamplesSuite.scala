package io.selinger.stats.parquet

import io.selinger.stats.files.SampleReaderBehaviors
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

  // Each follows from the number of the row, so that a value from another row shows.
  private val byRow = Seq(
    "id",
    "if(id % 3 = 1, null, id) AS gaps",
    "if(id % 3 = 1, null, concat('text ', id)) AS texts",
    "if(id BETWEEN 20000 AND 30000, null, id % 7) AS repeated",
    "if(id < 20000, id % 100, id) AS various",
    "if(id % 4 = 0, null, id % 2 = 0) AS flag",
    "cast(null AS int) AS nothing",
    "1 AS one",
    "if(id % 5 = 0, null, cast(id AS decimal(30,2))) AS wide",
    "if(id % 5 = 0, null, cast(id AS decimal(9,2))) AS narrow",
    "if(id % 5 = 0, null, id / 3) AS fraction",
    "float(id) AS single",
    "if(id % 6 = 0, null, timestamp_seconds(id)) AS moment"
  )

  for {
    version <- Seq("PARQUET_1_0", "PARQUET_2_0")
    dictionaries <- Seq("true", "false")
    window <- Seq(Long.MaxValue, 9000L)
  } test(
    s"sampled values are those of their rows: $version, dictionaries $dictionaries, window $window"
  ) {
    withData(
      spark.range(0, 60000, 1, 1).selectExpr(byRow: _*),
      "parquet.writer.version" -> version,
      "parquet.enable.dictionary" -> dictionaries,
      // Pages of columns begin at different rows, and dictionaries end within a row group.
      "parquet.page.size" -> "4096",
      "parquet.dictionary.page.size" -> "20000",
      "parquet.page.row.count.limit" -> "3000"
    ) { (df, file) =>
      val found = read(file, df.schema, rows = 1200, window = window)
      def rowsOf(ids: Seq[Any]) = ids.collect { case id: Long => id.toInt }
      val rows = rowsOf(values(found("id")))
      val pairs = rowsOf(found("id").toSeq.flatMap(_.neighbours))
      assert(rows.size == 1200 && rows.max > 50000 && pairs.size > 200)
      assert(pairs.grouped(2).forall(pair => pair.last == pair.head + 1))
      df.schema.foreach { column =>
        val all = truth(df, column).toIndexedSeq
        assert(values(found(column.name)).map(comparable) == rows.map(all), column)
        assert(found(column.name).toSeq.flatMap(_.neighbours) == pairs.map(all), column)
      }
      val whole = read(file, df.schema, rows = 60000, neighbours = false)
      df.schema.foreach { column =>
        val chunk = whole(column.name)
        assert(values(chunk).map(comparable) == truth(df, column), column)
        assert(chunk.forall(_.neighbours.isEmpty), column)
      }
    }
  }
}
