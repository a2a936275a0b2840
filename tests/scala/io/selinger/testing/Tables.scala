package io.selinger.testing

/**
 * Generated Parquet tables, the same rows at every run. The values that go wrong are in all of them:
 * nulls, duplicates, NaN, -0.0, infinities, decimals at their limits, and no rows at all.
 */
object Tables extends ParquetTables(TableColumns.all)

private object TableColumns {

  private val hash = "abs(hash(id))"

  // Each column of all tables but `spans` and `nested`; `keys` is the number of distinct keys.
  private def columns(keys: Int): Seq[String] = Seq(
    "id",
    s"if(id % 17 = 3, null, cast($hash % $keys as int)) as k",
    s"if(id % 23 = 5, null, cast($hash % ${keys * 3} as bigint) * 1000003) as big",
    s"if(id % 19 = 7, null, element_at(array('a', 'B', 'b', 'A ', 'ä', '', 'Ab'), cast($hash % 7 as int) + 1)) as s",
    s"""case cast($hash % 9 as int) when 0 then double('NaN') when 1 then -0.0D when 2 then 0.0D
       |when 3 then null when 4 then double('Infinity') else $hash % 50 / 4.0D end as d""".stripMargin,
    s"""case cast($hash % 11 as int) when 0 then null
       |when 1 then 9999999999999999999999999999.9999999999BD
       |when 2 then -9999999999999999999999999999.9999999999BD
       |else cast($hash % $keys as decimal(38,10)) end as amount""".stripMargin,
    s"if(id % 29 = 2, null, date_add(date'1999-12-20', cast($hash % 40 as int))) as day",
    s"if(id % 31 = 2, null, timestamp_micros($hash % 1000 * 86400000000L)) as at",
    "if(id % 13 = 4, null, id % 2 = 0) as flag"
  )

  val all: Map[String, (Long, Seq[String])] = Map(
    "facts" -> (3000L, columns(120)),
    "dims" -> (150L, columns(140)),
    "dupes" -> (400L, columns(9)),
    "nothing" -> (0L, columns(10)),
    "nulls" -> (50L, columns(5).map(_.replaceFirst("^if\\(id % 17 = 3", "if(true"))),
    "spans" -> (
      200L,
      Seq("id", s"cast($hash % 100 as int) as low", s"cast($hash % 100 + id % 7 as int) as high")
    ),
    "nested" -> (
      300L,
      Seq(
        s"cast($hash % 60 as int) as k",
        s"if(id % 5 = 0, null, struct(cast($hash % 4 as int) as x, string($hash % 3) as y)) as point",
        s"if(id % 6 = 0, null, array_repeat(cast($hash % 5 as int), cast(id % 4 as int))) as tags",
        s"map(string(id % 3), id) as attributes"
      )
    )
  )
}
