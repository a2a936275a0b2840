package io.selinger.stats.parquet

import io.selinger.stats.files.FooterReaderBehaviors
import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile

class ParquetFootersSuite extends FooterReaderBehaviors("parquet", ParquetFooters) {

  private val times = "if(id % 5 = 2, null, timestamp_micros(-60000000001 + id * 3600000001)) AS ts"

  Seq("TIMESTAMP_MICROS" -> 1, "TIMESTAMP_MILLIS" -> 1000).foreach { case (kind, unit) =>
    test(s"timestamps written as $kind") {
      withConf("spark.sql.parquet.outputTimestampType" -> kind) {
        withColumns(times) { footer =>
          val column = footer.columns("ts")
          val max = -60000000001L + 499 * 3600000001L
          assert(column.min.exists(m => math.abs(m + 60000000001L) <= unit))
          assert(column.max.exists(m => math.abs(m - max) <= unit))
        }
      }
    }
  }

  test("timestamps written as INT96 have no range, but nulls") {
    withConf("spark.sql.parquet.outputTimestampType" -> "INT96") {
      withColumns(times) { footer =>
        val column = footer.columns("ts")
        assert(column.min.isEmpty && column.max.isEmpty)
        assert(column.nulls.contains(100L))
      }
    }
  }

  test("decimals of the old layout") {
    withConf("spark.sql.parquet.writeLegacyFormat" -> "true") {
      withColumns("cast(id - 250.25 AS decimal(9,2)) AS d9", "cast(-id AS decimal(38,2)) AS d38") {
        footer =>
          assert(
            footer.columns("d9").min.contains(-250.25) && footer.columns("d9").max.contains(248.75)
          )
          assert(
            footer.columns("d38").min.contains(-499.0) && footer.columns("d38").max.contains(0.0)
          )
      }
    }
  }

  test("several row groups count together") {
    withFolder { folder =>
      val df = spark.range(0, 20000, 1, 1).selectExpr("id", "if(id < 15000, null, id) AS late")
      val target =
        write(df, folder, "parquet.block.size" -> "4096", "parquet.page.row.count.limit" -> "500")
      val file = HadoopInputFile.fromStatus(filesOf(target).head, new Configuration())
      val reader = ParquetFileReader.open(file)
      try assert(reader.getFooter.getBlocks.size > 1)
      finally reader.close()
      val footer = footersOf(target).head
      assert(footer.rows == 20000)
      assert(footer.columns("id").min.contains(0.0) && footer.columns("id").max.contains(19999.0))
      assert(footer.columns("late").nulls.contains(15000L))
      assert(footer.columns("late").min.contains(15000.0))
    }
  }

  test("a string is as wide as its values, not as their codes in a dictionary") {
    withColumns("if(id % 3 = 0, repeat('m', 300), if(id % 3 = 1, 'a', 'z')) AS s") { footer =>
      assert(footer.columns("s").averageBytes.exists(width => width >= 90 && width <= 300))
    }
  }
}
