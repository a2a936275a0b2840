package io.selinger.stats.imported

import io.selinger.core.{Origin, Quantity}
import io.selinger.stats.imported.ScaleStatistics.Growth
import org.apache.spark.sql.types._
import org.scalacheck.Gen
import org.scalacheck.rng.Seed
import org.scalatest.funsuite.AnyFunSuite

/** What grows with the rows, and what stays. */
class ScaleStatisticsSuite extends AnyFunSuite {

  private def exact(value: Double) = Some(Quantity(value, Origin.Exact))

  private def column(distinct: Double, range: Option[(Double, Double)] = None, nulls: Double = 0) =
    PortableColumn(
      exact(nulls),
      range.map(_._1).flatMap(exact),
      range.map(_._2).flatMap(exact),
      exact(distinct)
    )

  private def relation(name: String, rows: Double)(
      columns: (String, DataType, PortableColumn)*
  ): PortableRelation = PortableRelation(
    name,
    "parquet",
    None,
    StructType(columns.map { case (column, kind, _) => StructField(column, kind) }),
    Nil,
    rows * 100,
    Some(2),
    exact(rows),
    Some(rows),
    columns.map { case (column, _, known) => column -> known }.toMap
  )

  private val customers = relation("customers", 10000)(
    ("c_id", LongType, column(10000, Some((1.0, 10000.0)))),
    ("c_name", StringType, column(9900)),
    ("c_state", StringType, column(50)),
    ("c_birth", DateType, column(10000, Some((-20000.0, 9000.0)))),
    ("c_score", DecimalType(9, 2), column(10000, Some((0.0, 100.0))))
  )

  private val orders = relation("orders", 100000)(
    ("o_customer", IntegerType, column(9800, Some((3.0, 9999.0)))),
    ("o_number", LongType, column(20000, Some((1.0, 20000.0)))),
    ("o_month", IntegerType, column(12, Some((1.0, 12.0)))),
    ("o_quantity", IntegerType, column(1000, Some((1.0, 1000.0)))),
    ("o_note", StringType, column(30000))
  )

  private val stores = relation("stores", 12)(
    ("s_id", IntegerType, column(12, Some((1.0, 12.0))))
  )

  private val all = Seq(customers, orders, stores)

  private def scaled(factor: Double) =
    ScaleStatistics.scaled(all, _ => factor).map(r => r.name -> r).toMap

  test("rows, their bound, bytes and files grow, and are derived") {
    val found = scaled(1000)("orders")
    assert(found.rows.contains(Quantity(1e8, Origin.Derived)))
    assert(found.bound.contains(1e8) && found.bytes == 1e10 && found.files.contains(2000.0))
    assert(found.columns.values.flatMap(_.distinct).forall(_.origin == Origin.Derived))
  }

  private def calendar(kind: DataType, low: Double, high: Double, rows: Double = 1827) =
    relation("days", rows)(
      ("d_key", LongType, column(rows, Some((1.0, rows)))),
      ("d_day", kind, column(rows, Some((low, high))))
    )

  test("a calendar has a row for each day, or for each hour, minute or second of a day") {
    // 2020 to 2024
    assert(ScaleStatistics.isCalendar(calendar(DateType, 18262, 20088)))
    assert(ScaleStatistics.isCalendar(calendar(TimestampType, 18262 * 86400e6, 20088 * 86400e6)))
    assert(ScaleStatistics.isCalendar(calendar(IntegerType, 20200101, 20241231)))
    Seq(24, 1440, 86400).foreach { parts =>
      val times = relation("times", parts)(("t", IntegerType, column(parts, Some((0, parts - 1)))))
      assert(ScaleStatistics.isCalendar(times))
    }
  }

  test("not a calendar: few days, days with gaps, other numbers") {
    all.foreach(relation => assert(!ScaleStatistics.isCalendar(relation), relation.name))
    assert(!ScaleStatistics.isCalendar(calendar(DateType, 1, 300, rows = 300)))
    assert(!ScaleStatistics.isCalendar(calendar(DateType, 0, 20088)))
    assert(!ScaleStatistics.isCalendar(calendar(IntegerType, 20200001, 20241231)))
    assert(!ScaleStatistics.isCalendar(calendar(LongType, 1, 1827)))
    val orders = relation("orders", 86400)(("o", IntegerType, column(86400, Some((1, 86400)))))
    assert(!ScaleStatistics.isCalendar(orders))
  }

  test("what grows, and why") {
    val growth = ScaleStatistics.growth(all, _ => 10)
    assert(growth("customers") == Map("c_id" -> Growth.Key(10), "c_name" -> Growth.Key(10)))
    assert(
      growth("orders") == Map(
        "o_customer" -> Growth.Reference("customers", "c_id", 10),
        "o_number" -> Growth.FewRows(10)
      )
    )
    assert(growth("stores") == Map("s_id" -> Growth.Key(10)))
  }

  test("a key's values and range grow together, and so do those of its references") {
    val grown = scaled(1000)
    val key = grown("customers").columns("c_id")
    assert(key.distinct.get.value == 1e7 && key.min.get.value == 1 && key.max.get.value == 1e7)
    val reference = grown("orders").columns("o_customer")
    assert(reference.distinct.get.value == 9.8e6)
    assert(reference.max.get.value > 9.9e6 && reference.max.get.value <= key.max.get.value)
  }

  test("other columns keep their values") {
    val grown = scaled(1000)
    Seq("customers" -> "c_state", "orders" -> "o_month", "orders" -> "o_quantity").foreach {
      case (relation, name) =>
        val before = all.find(_.name == relation).get.columns(name).statistics
        assert(grown(relation).columns(name).statistics == before)
    }
    // There are no more days, and no other prices.
    Seq("c_birth", "c_score").foreach { name =>
      assert(grown("customers").columns(name).statistics == customers.columns(name).statistics)
    }
  }

  test("each relation may have a factor of its own: references grow with their keys") {
    val grown = ScaleStatistics
      .scaled(all, Map("orders" -> 1000.0, "customers" -> 10.0, "stores" -> 1.0))
      .map(r => r.name -> r)
      .toMap
    assert(grown("orders").rows.get.value == 1e8)
    assert(grown("orders").columns("o_customer").distinct.get.value == 98000)
    assert(grown("orders").columns("o_number").distinct.get.value == 2e7)
    assert(grown("stores") == stores)
  }

  test("a factor of one changes nothing, origins included") {
    assert(ScaleStatistics.scaled(all, _ => 1.0) == all)
  }

  test("fewer rows have fewer values, and ranges do not turn over") {
    val shrunk = scaled(0.0001)
    shrunk.values.flatMap(r => r.columns.values.map(r -> _)).foreach { case (r, c) =>
      assert(c.distinct.forall(_.value <= r.rows.get.value))
      for (low <- c.min; high <- c.max) assert(low.value <= high.value)
    }
  }

  test("a factor must be a positive number") {
    Seq(0.0, -1.0, Double.NaN, Double.PositiveInfinity).foreach { factor =>
      val error = intercept[IllegalArgumentException](scaled(factor))
      assert(error.getMessage.contains("positive number"))
    }
  }

  test("whatever the statistics, scaled ones are finite and consistent") {
    val number = Gen.option(Gen.choose(0.0, 18.0).map(p => Quantity(math.pow(10, p), Origin.Exact)))
    val columns = for {
      nulls <- Gen.option(Gen.choose(0.0, 1.0).map(Quantity(_, Origin.Exact)))
      low <- number
      width <- Gen.choose(0.0, 1e12)
      distinct <- number
    } yield PortableColumn(nulls, low, low.map(l => l.copy(value = l.value + width)), distinct)
    val relations = for {
      rows <- number
      a <- columns
      b <- columns
      c <- columns
    } yield relation("r", 1)(("a", LongType, a), ("b", StringType, b), ("c", DateType, c))
      .copy(rows = rows, bound = rows.map(_.value))
    val cases = Gen.zip(Gen.listOfN(3, relations), Gen.choose(-6.0, 9.0).map(math.pow(10, _)))
    (0 until 500).foreach { i =>
      val (some, factor) = cases.pureApply(Gen.Parameters.default, Seed(i.toLong))
      val named = some.zipWithIndex.map { case (r, n) => r.copy(name = s"r$n") }
      ScaleStatistics.scaled(named, _ => factor).foreach { r =>
        val numbers =
          r.bytes +: (r.rows.map(_.value).toSeq ++ r.bound ++ r.columns.values.flatMap(c =>
            Seq(c.min, c.max, c.distinct).flatten.map(_.value)
          ))
        assert(numbers.forall(n => !n.isNaN && !n.isInfinite && n >= 0), s"seed $i: $r")
        assert(r.rows.forall(rows => r.bound.forall(_ >= rows.value)), s"seed $i: $r")
      }
    }
  }
}
