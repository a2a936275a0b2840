package io.selinger.estimate

import io.selinger.core.Origin
import io.selinger.stats.ColumnStatistics
import org.apache.spark.sql.catalyst.dsl.expressions._
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.scalatest.funsuite.AnyFunSuite

class ComputedColumnSuite extends AnyFunSuite {

  private val day = AttributeReference("day", DateType)()
  private val time = AttributeReference("time", TimestampType)()
  private val text = AttributeReference("text", StringType)()
  private val number = AttributeReference("number", IntegerType)()

  // The days of 2000 to 2009, a quarter of them null; 500 texts; -5 to 5.
  private val input = PlanEstimate.exactly(
    10000,
    Origin.Exact,
    Map(
      day.exprId -> ColumnStatistics(Some(0.25), Some(10957), Some(14609), Some(3653)),
      time.exprId -> ColumnStatistics(None, Some(0), Some(86400e6 * 9)),
      text.exprId -> ColumnStatistics(distinct = Some(500), averageBytes = Some(9)),
      number.exprId -> ColumnStatistics(Some(0.0), Some(-5), Some(5), Some(11))
    )
  )

  private def of(expression: Expression): ColumnStatistics =
    ComputedColumn.statistics(expression, input).getOrElse(fail(s"nothing known of $expression"))

  private def range(expression: Expression): (Option[Double], Option[Double]) =
    (of(expression).min, of(expression).max)

  test("parts of a date") {
    assert(range(Year(day)) == (Some(2000.0), Some(2009.0)))
    assert(of(Year(day)).distinct.contains(10.0) && of(Year(day)).nullFraction.contains(0.25))
    assert(of(Month(day)).distinct.contains(12.0))
    assert(of(Quarter(day)).distinct.contains(4.0))
    assert(range(Cast(time, DateType)) == (Some(0.0), Some(9.0)))
  }

  test("arithmetic moves and turns the range") {
    assert(range(number + 1) == (Some(-4.0), Some(6.0)))
    assert(range(Literal(1) - number) == (Some(-4.0), Some(6.0)))
    assert(range(number * -2) == (Some(-10.0), Some(10.0)))
    assert(range(UnaryMinus(number)) == (Some(-5.0), Some(5.0)))
    assert(range(DateAdd(day, Literal(3))) == (Some(10960.0), Some(14612.0)))
    assert(of(number + 1).distinct.contains(11.0))
  }

  test("functions of texts have no more values than these") {
    assert(of(Upper(text)).distinct.contains(500.0))
    assert(of(Substring(text, Literal(1), Literal(1))).distinct.exists(_ < 100))
    assert(of(Substring(text, Literal(1), Literal(5))).distinct.contains(500.0))
  }

  test("a choice among literals has just these") {
    val choice = CaseWhen(Seq((number > 0, Literal(7)), (number < 0, Literal(3))), Literal(3))
    assert(of(choice).distinct.contains(2.0))
    assert(range(choice) == (Some(3.0), Some(7.0)))
    assert(ComputedColumn.statistics(If(number > 0, number, Literal(1)), input).isEmpty)
  }

  test("a default joins the values") {
    assert(range(Coalesce(Seq(number, Literal(100)))) == (Some(-5.0), Some(100.0)))
    assert(of(Coalesce(Seq(number, Literal(100)))).distinct.contains(12.0))
  }

  test("widths are not for functions to know, nor are nulls of a default") {
    assert(of(Upper(text)).averageBytes.isEmpty)
    assert(of(Coalesce(Seq(day, Literal(0, DateType)))).nullFraction.isEmpty)
  }

  test("of two columns together nothing is known") {
    assert(ComputedColumn.statistics(number + number, input).isEmpty)
    assert(ComputedColumn.statistics(Rand(Literal(1L)), input).isEmpty)
  }
}
