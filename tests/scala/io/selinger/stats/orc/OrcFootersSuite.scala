package io.selinger.stats.orc

import io.selinger.stats.files.FooterReaderBehaviors

class OrcFootersSuite extends FooterReaderBehaviors("orc", OrcFooters) {

  test("timestamps, in microseconds since 1970") {
    withColumns("if(id % 5 = 2, null, timestamp_micros(-60000000001 + id * 3600000001)) AS ts") {
      footer =>
        val column = footer.columns("ts")
        val max = -60000000001L + 499 * 3600000001L
        assert(column.nulls.contains(100L))
        assert(column.min.exists(m => math.abs(m + 60000000001L) <= 1000))
        assert(column.max.exists(m => math.abs(m - max) <= 1000))
    }
  }

  test("several stripes count together") {
    withFolder { folder =>
      val df = spark.range(0, 20000, 1, 1).selectExpr("id", "if(id < 15000, null, id) AS late")
      val footer = footersOf(write(df, folder, "orc.stripe.size" -> "4096")).head
      assert(footer.rows == 20000)
      assert(footer.columns("id").min.contains(0.0) && footer.columns("id").max.contains(19999.0))
      assert(footer.columns("late").nulls.contains(15000L))
      assert(footer.columns("late").min.contains(15000.0))
    }
  }

  test("strings know their width") {
    withColumns("repeat('x', 40) AS s")(footer =>
      assert(footer.columns("s").averageBytes.contains(40.0))
    )
  }
}
