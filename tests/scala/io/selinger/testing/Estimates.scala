package io.selinger.testing

import io.selinger.core.{Origin, Quantity}
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.plans.CardinalityEstimator
import io.selinger.stats.ColumnStatistics
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LocalRelation, LogicalPlan}
import org.apache.spark.sql.types._
import org.scalacheck.Gen

/** Hand-made relations with statistics, an estimator that knows only these, and random ones. */
object Estimates {

  /** A relation of columns `a: int`, `b: double`, `s: string` and what is believed of it. */
  final case class Relation(plan: LocalRelation, estimate: Option[PlanEstimate]) {
    def a: Attribute = plan.output(0)
    def b: Attribute = plan.output(1)
    def s: Attribute = plan.output(2)
  }

  private def emptyRelation(): LocalRelation = LocalRelation(
    AttributeReference("a", IntegerType)(),
    AttributeReference("b", DoubleType)(),
    AttributeReference("s", StringType)()
  )

  def unknown(): Relation = Relation(emptyRelation(), None)

  /** Counted rows, with statistics of `a` and `b` as given. */
  def counted(
      rows: Double,
      a: ColumnStatistics = ColumnStatistics(),
      b: ColumnStatistics = ColumnStatistics()
  ): Relation = {
    val plan = emptyRelation()
    val columns = Map(plan.output(0).exprId -> a, plan.output(1).exprId -> b)
    Relation(plan, Some(PlanEstimate.exactly(rows, Origin.Exact, columns)))
  }

  /** As [[counted]], but seen in a part of the files. */
  def sampled(rows: Double, a: ColumnStatistics): Relation = {
    val exact = counted(rows, a)
    exact.copy(estimate =
      exact.estimate.map(
        _.copy(rows = Quantity(rows, Origin.Sampled), upperBound = rows * 2, bound = None)
      )
    )
  }

  /** A column of whole numbers `min` to `max`, all of them, evenly. */
  def evenly(min: Double, max: Double, nulls: Double = 0): ColumnStatistics =
    ColumnStatistics(Some(nulls), Some(min), Some(max), Some(max - min + 1))

  def estimator(relations: Relation*): CardinalityEstimator = {
    val known =
      relations.map(relation => relation.plan.output.head.exprId -> relation.estimate).toMap
    new CardinalityEstimator((leaf: LeafNode, _: Seq[Expression]) =>
      known(leaf.output.head.exprId).map((_, Nil))
    )
  }

  def estimate(plan: LogicalPlan, relations: Relation*): Option[PlanEstimate] =
    estimator(relations: _*).estimate(plan)

  // ---- random ones --------------------------------------------------------------------------

  private val share: Gen[Double] = Gen.oneOf(Gen.const(0.0), Gen.const(1.0), Gen.choose(0.0, 1.0))
  private val size: Gen[Double] =
    Gen.oneOf(Gen.const(0.0), Gen.const(1.0), Gen.choose(0.0, 18.0).map(math.pow(10, _)))
  private val place: Gen[Double] =
    Gen.oneOf(Gen.const(0.0), Gen.choose(-100.0, 100.0), Gen.choose(-1e300, 1e300))

  private val column: Gen[ColumnStatistics] = for {
    nulls <- Gen.option(share)
    range <- Gen.option(Gen.zip(place, place))
    distinct <- Gen.option(size)
    width <- Gen.option(Gen.choose(0.0, 1e4))
  } yield ColumnStatistics(
    nulls,
    range.map { case (x, y) => math.min(x, y) },
    range.map { case (x, y) => math.max(x, y) },
    distinct,
    width
  )

  val relation: Gen[Relation] = for {
    rows <- size
    slack <- Gen.oneOf(1.0, 2.0, 1e3)
    bounded <- Gen.oneOf(true, false)
    origin <- Gen.oneOf(Origin.Exact, Origin.Sampled, Origin.Derived, Origin.Default)
    a <- column
    b <- column
  } yield {
    val plan = emptyRelation()
    val upperBound = math.min(rows * slack, PlanEstimate.most)
    val columns = Map(plan.output(0).exprId -> a, plan.output(1).exprId -> b)
    val bound = if (bounded) Some(upperBound) else None
    Relation(plan, Some(PlanEstimate(Quantity(rows, origin), upperBound, bound, columns)))
  }

  private val comparisons: Seq[(Expression, Expression) => Expression] = Seq(
    EqualTo(_, _),
    EqualNullSafe(_, _),
    LessThan(_, _),
    LessThanOrEqual(_, _),
    GreaterThan(_, _),
    GreaterThanOrEqual(_, _)
  )

  /** A random predicate on these columns. */
  def predicate(columns: Seq[Attribute], depth: Int = 3): Gen[Expression] = {
    def literal(kind: DataType): Gen[Expression] = kind match {
      case IntegerType =>
        Gen.oneOf(Gen.choose(-120, 120), Gen.choose(Int.MinValue, Int.MaxValue)).map(Literal(_))
      case DoubleType =>
        Gen.oneOf(
          Gen.choose(-120.0, 120.0),
          Gen.oneOf(Double.NaN, -0.0, Double.PositiveInfinity)
        ).map(Literal(_))
      case _ => Gen.alphaStr.map(Literal(_))
    }
    val simple: Gen[Expression] = for {
      column <- Gen.oneOf(columns)
      values <- Gen.listOfN(3, literal(column.dataType))
      other <- Gen.oneOf(columns.filter(_.dataType == column.dataType))
      compare <- Gen.oneOf(comparisons)
      flip <- Gen.oneOf(true, false)
      right <- Gen.oneOf(
        Gen.const(values.head),
        Gen.const(other),
        Gen.const(Literal(null, column.dataType))
      )
      predicate <- Gen.oneOf[Expression](
        if (flip) compare(right, column) else compare(column, right),
        if (flip) compare(right, column) else compare(column, right),
        IsNull(column),
        IsNotNull(column),
        In(column, values),
        StartsWith(columns.last, Literal("x")),
        Literal(true),
        Literal(false),
        Literal(null, BooleanType),
        Rand(Literal(1L)) < Literal(0.5)
      )
    } yield predicate
    if (depth == 0) simple
    else {
      val inner = predicate(columns, depth - 1)
      Gen.frequency(
        3 -> simple,
        2 -> Gen.zip(inner, inner).map { case (l, r) => And(l, r) },
        1 -> Gen.zip(inner, inner).map { case (l, r) => Or(l, r) },
        1 -> inner.map(Not(_))
      )
    }
  }

  private implicit class Comparing(left: Expression) {
    def <(right: Expression): Expression = LessThan(left, right)
  }

  /** What holds of every estimate; a message if something does not. */
  def problem(estimate: PlanEstimate): Option[String] = {
    val rows = estimate.rows.value
    val upperBound = estimate.upperBound
    def bad(value: Double) = value.isNaN || value.isInfinite || value < 0
    if (bad(rows)) Some(s"rows = $rows")
    else if (bad(upperBound)) Some(s"upperBound = $upperBound")
    else if (estimate.bound.exists(b => b.isNaN || b < 0)) Some(s"bound = ${estimate.bound}")
    else if (rows > upperBound) Some(s"rows $rows > upper bound $upperBound")
    else if (estimate.bound.exists(upperBound > _))
      Some(s"upper bound $upperBound > bound ${estimate.bound}")
    else estimate.columns.values.flatMap(problem).headOption
  }

  private def problem(column: ColumnStatistics): Option[String] = {
    def outside(value: Option[Double], least: Double, most: Double) =
      value.exists(v => v.isNaN || v < least || v > most)
    if (outside(column.nullFraction, 0, 1)) Some(s"null fraction of $column")
    else if (outside(column.distinct, 0, Double.MaxValue)) Some(s"distinct values of $column")
    else if (column.min.exists(_.isNaN) || column.max.exists(_.isNaN)) Some(s"range of $column")
    else None
  }
}
