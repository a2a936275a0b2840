package io.selinger.testing

/** Small Parquet tables for the examples in the descriptions of rules. */
object ExampleTables
    extends ParquetTables(
      Map(
        "sales" -> (
          2000L,
          Seq(
            "id % 97 as item",
            "id div 34 as sold",
            "id % 500 as ticket",
            "id % 40 as customer",
            "if(id % 11 = 0, null, id % 7) as amount"
          )
        ),
        "imported_sales" -> (300L, Seq("id % 97 as item", "id % 7 as amount")),
        "items" -> (
          97L,
          Seq(
            "id",
            "concat(if(id % 3 = 0, 'bike ', 'car '), id) as name",
            "element_at(array('red', 'blue'), cast(id % 2 as int) + 1) as color",
            "if(id % 5 = 0, 'Books', 'Toys') as category"
          )
        ),
        "inventory" -> (900L, Seq("id % 97 as item", "id as quantity")),
        "dates" -> (60L, Seq("id as day", "1998 + id div 12 as year")),
        "returns" -> (200L, Seq("id * 2 as ticket", "if(id % 9 = 0, null, id % 12) as reason")),
        "reasons" -> (12L, Seq("id", "if(id < 2, 'broken', 'other') as text")),
        "visits" -> (
          2000L,
          Seq("date_add(date'2022-01-01', cast(id as int)) as day", "id % 7 as pages")
        ),
        "customers" -> (40L, Seq("id", "concat('city', id % 4) as city"))
      )
    )
