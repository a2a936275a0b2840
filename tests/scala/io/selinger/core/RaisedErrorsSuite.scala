package io.selinger.core

import io.selinger.testing.{Plans, SharedSession, Tables}
import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Average, Sum}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.types._
import org.scalatest.funsuite.AnyFunSuite

class RaisedErrorsSuite extends AnyFunSuite with SharedSession {
  import RaisedErrors._

  private def column(kind: DataType): Attribute = AttributeReference("c", kind)()
  private val whole = column(IntegerType)
  private val fraction = column(DoubleType)
  private val text = column(StringType)
  private val day = column(DateType)

  test(
    "comparisons, logic and texts are safe; what is random, asks a subquery or is a user's is not"
  ) {
    assert(isSafe(And(LessThan(fraction, Literal(1.0)), Not(IsNull(whole)))))
    assert(isSafe(EqualTo(Upper(Substring(text, Literal(1), Literal(2))), Literal("A"))))
    assert(!isSafe(LessThan(fraction, Rand(1))))
    assert(!isSafe(LessThan(fraction, ScalarSubquery(OneRowRelation()))))
    assert(!isSafe(ScalaUDF((x: Double) => x, DoubleType, Seq(fraction))))
  }

  test("arithmetic is safe where it cannot overflow, or returns null if it does") {
    assert(!isSafe(Add(whole, whole, EvalMode.ANSI)) && isSafe(Add(whole, whole, EvalMode.LEGACY)))
    assert(isSafe(Add(fraction, fraction, EvalMode.ANSI)))
    assert(!isSafe(Divide(fraction, fraction, EvalMode.ANSI)))
    assert(!isSafe(Remainder(whole, whole, EvalMode.ANSI)))
    assert(isSafe(Remainder(whole, Literal(7), EvalMode.ANSI)))
    assert(!isSafe(Remainder(whole, Literal(0), EvalMode.ANSI)))
    assert(!isSafe(Remainder(whole, Literal(null, IntegerType), EvalMode.ANSI)))
    assert(isSafe(Divide(fraction, Literal(2.0), EvalMode.ANSI)))
    assert(!isSafe(Divide(fraction, Literal(-0.0), EvalMode.ANSI)))
    val price = column(DecimalType(7, 2))
    assert(isSafe(Multiply(price, price, EvalMode.ANSI)))
    def two(digits: Int) = Literal.create(Decimal(2), DecimalType(digits, 0))
    assert(isSafe(Divide(price, two(1), EvalMode.ANSI)))
    assert(!isSafe(Divide(price, Literal(Decimal(0)), EvalMode.ANSI)))
    assert(!isSafe(Divide(price, price, EvalMode.ANSI)))
    val widest = column(DecimalType(38, 10))
    assert(!isSafe(Divide(widest, two(38), EvalMode.ANSI)))
    assert(!isSafe(Multiply(widest, widest, EvalMode.ANSI)))
    val span = column(DayTimeIntervalType())
    assert(!isSafe(Add(span, span, EvalMode.LEGACY)))
  }

  test("casts are safe that hold every value") {
    assert(isSafe(Cast(whole, LongType)) && isSafe(Cast(whole, StringType)))
    assert(!isSafe(Cast(fraction, IntegerType, None, EvalMode.ANSI)))
    assert(isSafe(Cast(text, IntegerType, None, EvalMode.LEGACY)))
    assert(!isSafe(Cast(text, IntegerType, None, EvalMode.ANSI)))
    // A day may lie outside of what a timestamp can hold.
    assert(!isSafe(Cast(day, TimestampType, Some("UTC"))))
    assert(isSafe(Cast(AttributeReference("t", TimestampType)(), DateType, Some("UTC"))))
  }

  test("a pattern that ends in an escape raises an error") {
    assert(isSafe(Like(text, Literal("a%b"), '\\')))
    assert(!isSafe(Like(text, Literal("a\\"), '\\')))
    assert(!isSafe(Like(text, text, '\\')))
  }

  private def late(text: String): Boolean = withConf("spark.sql.ansi.enabled" -> "true") {
    computesUnsafeColumns(spark.sql(text).asInstanceOf[Dataset[_]].queryExecution.optimizedPlan)
  }

  test("columns computed by what can raise errors are late, up to an aggregation or a sort") {
    assert(late("SELECT 10 DIV id AS v FROM range(9)"))
    assert(!late("SELECT id, cast(id AS string) AS v FROM range(9)"))
    assert(late(
      "SELECT a.v, b.id FROM (SELECT id, id + 1 AS v FROM range(9)) a JOIN range(5) b USING (id)"
    ))
    assert(!late("SELECT sum(10 DIV id) AS v FROM range(9)"))
    assert(late("SELECT max(10) DIV max(id) AS v FROM range(9)"))
    // Computed of whole numbers, with room for any result.
    assert(!late("SELECT id, sum(cast(id AS decimal(7,2))) AS v FROM range(9) GROUP BY id"))
    assert(!late("SELECT id, avg(cast(id AS decimal(7,2))) AS v FROM range(9) GROUP BY id"))
    assert(late("SELECT sum(cast(id AS decimal(7,2))) / max(id) AS v FROM range(9) GROUP BY id"))
    assert(!late("SELECT * FROM (SELECT 10 DIV id AS v FROM range(9)) ORDER BY v"))
    assert(late("SELECT 10 DIV id AS v FROM range(9) UNION ALL SELECT 1"))
    // A filter asks every row.
    assert(!late("SELECT id FROM range(9) WHERE 10 DIV id > 3"))
  }

  test("sums and averages computed of whole numbers are safe only with room for any result") {
    val value = AttributeReference("v", DecimalType(7, 2))()
    def late(result: Expression) =
      computesUnsafeColumns(Aggregate(Nil, Seq(Alias(result, "result")()), LocalRelation(value)))
    def sum(precision: Int) =
      MakeDecimal(Sum(UnscaledValue(value)).toAggregateExpression(), precision, 2, false)
    assert(!late(sum(17)) && late(sum(16)))
    def average(by: Double, kind: DecimalType) = Cast(
      Divide(Average(UnscaledValue(value)).toAggregateExpression(), Literal(by)),
      kind,
      None,
      EvalMode.ANSI
    )
    assert(!late(average(100.0, DecimalType(11, 6))))
    assert(late(average(10.0, DecimalType(11, 6))) && late(average(100.0, DecimalType(10, 6))))
  }

  test("sums and averages of decimals are safe only with room for any result") {
    def mayRaiseOn(kind: DecimalType) = {
      val value = AttributeReference("v", kind)()
      Seq(Sum(value), Average(value)).map { function =>
        val result = Alias(function.toAggregateExpression(), "result")()
        mayRaise(Aggregate(Nil, Seq(result), LocalRelation(value)))
      }
    }
    assert(mayRaiseOn(DecimalType(28, 2)) == Seq(false, false))
    assert(mayRaiseOn(DecimalType(29, 2)) == Seq(true, true))
  }

  test("running a plan may raise errors unless its operators and sources are known not to") {
    Tables.register(spark)
    def ofQuery(text: String) = spark.sql(text).queryExecution.optimizedPlan
    Seq(
      "SELECT k, count(*), max(big), min(s) FROM facts WHERE id < 5 AND s LIKE 'a%' GROUP BY k",
      "SELECT DISTINCT a.k FROM facts a JOIN dims b ON a.k = b.k UNION ALL SELECT k FROM nulls",
      "SELECT k, sum(CAST(id AS DOUBLE)), avg(id), sum(length(s)) FROM facts GROUP BY k",
      "SELECT k, rank() OVER (PARTITION BY k ORDER BY id), max(s) OVER (PARTITION BY k) FROM facts",
      "SELECT id FROM facts ORDER BY upper(s)"
    ).foreach(text => assert(!mayRaise(ofQuery(text)), text))
    Seq(
      "SELECT k, count(*) FILTER (WHERE 1 / id > 0) FROM facts GROUP BY k",
      "SELECT k, sum(CAST(s AS DECIMAL(7, 2))) FROM facts GROUP BY k",
      "SELECT k, max(1 / id) FROM facts GROUP BY k",
      "SELECT k, sum(big) FROM facts GROUP BY k",
      "SELECT k FROM facts WHERE CAST(s AS INT) > 1",
      "SELECT k, rank() OVER (PARTITION BY k ORDER BY 1 / id) FROM facts",
      "SELECT k, sum(big) OVER (PARTITION BY k) FROM facts",
      "SELECT k, max(s) OVER (ORDER BY id RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) FROM facts",
      "SELECT ntile(4) OVER (ORDER BY id) FROM facts",
      "SELECT id FROM facts ORDER BY 1 / id",
      "SELECT id, explode(sequence(id, 5)) FROM facts"
    ).foreach(text => assert(mayRaise(ofQuery(text)), text))
    val sums = ofQuery("SELECT k, sum(big), sum(id) FROM facts GROUP BY k")
    assert(RaisedErrors.operatorMayRaise(
      sums,
      (value, _) => value.references.exists(_.name == "big")
    ))
    assert(!RaisedErrors.operatorMayRaise(sums, (_, _) => true))
    val numbers = spark.range(5).as[Long](Encoders.scalaLong)
    val byUserCode = numbers.filter((id: Long) => 10 / id > 2)
    assert(mayRaise(byUserCode.queryExecution.optimizedPlan))
    withFolder { folder =>
      val path = folder.resolve("text").toString
      spark.range(3).write.json(path)
      assert(mayRaise(spark.read.json(path).queryExecution.optimizedPlan))
    }
  }

  test("a cache may raise the errors of what fills it, until it is filled") {
    def mayRaiseWhenRead(text: String) = {
      val cached = spark.sql(text).cache()
      def now = mayRaise(Plans.execution(cached.toDF()).optimizedPlan)
      try {
        assert(
          Plans.execution(cached.toDF()).optimizedPlan.exists(_.isInstanceOf[InMemoryRelation])
        )
        val before = now
        val _ = cached.count()
        (before, now)
      } finally cached.unpersist(blocking = true)
    }
    withConf("spark.sql.ansi.enabled" -> "true") {
      assert(mayRaiseWhenRead("SELECT 10 DIV id AS v FROM range(1, 9)") == ((true, false)))
      assert(mayRaiseWhenRead("SELECT id FROM range(1, 9) WHERE id > 3") == ((false, false)))
    }
  }
}
