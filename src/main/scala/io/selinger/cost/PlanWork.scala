package io.selinger.cost

import io.selinger.core.Origin
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.predicates.Selectivity
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * What a plan takes.
 *
 * @param seconds on the scale of [[JoinCost]]
 * @param rowsRead of all relations
 * @param origin of the rows
 */
final case class Work(seconds: Double, rowsRead: Double, origin: Origin) {

  def +(other: Work): Work =
    Work(seconds + other.seconds, rowsRead + other.rowsRead, origin.worse(other.origin))

  def plus(more: Double): Work = copy(seconds = seconds + more)
}

/**
 * The work of plans of scans, filters, joins and aggregations: what it takes to read rows, to test
 * them, to find partners for them, and to aggregate them. Which operators Spark chooses is left out, so
 * these numbers compare plans that are alike.
 *
 * @param estimate what is known of the rows of a plan
 * @param readOf rows that a scan reads under predicates, given the rows that it has
 */
final class PlanWork(
    cost: JoinCost,
    estimate: LogicalPlan => Option[PlanEstimate],
    readOf: (LeafNode, Seq[Expression], Double) => Double
) {

  /** None where the rows of some part are unknown. */
  def of(plan: LogicalPlan): Option[Work] = of(plan, plan.outputSet)

  private def of(plan: LogicalPlan, needed: AttributeSet): Option[Work] = plan match {
    case Filter(condition, leaf: LeafNode) =>
      scan(leaf, needed ++ condition.references, Selectivity.conjuncts(condition))
        .map(read => read.plus(cost.evaluated(read.rowsRead * tests(condition))))
    case leaf: LeafNode => scan(leaf, needed, Nil)
    case Filter(condition, child) =>
      for (below <- of(child, needed ++ condition.references); input <- rows(child))
        yield below.plus(cost.evaluated(input * tests(condition)))
    case Project(list, child) =>
      val used = list.filter(column => needed.contains(column.toAttribute))
      for (below <- of(child, AttributeSet(used.flatMap(_.references))); input <- rows(child))
        yield below.plus(cost.evaluated(input * used.map(tests).sum))
    case join: Join =>
      val wanted = needed ++ AttributeSet(join.condition.toSeq.flatMap(_.references))
      for {
        left <- of(join.left, wanted)
        right <- of(join.right, wanted)
        leftRows <- rows(join.left)
        rightRows <- rows(join.right)
        output <- rows(join)
      } yield (left + right).plus(
        cost.grouped(math.min(leftRows, rightRows)) + cost.probed(math.max(leftRows, rightRows)) +
          cost.output(output, 0.0)
      )
    case aggregate: Aggregate =>
      for {
        below <- of(aggregate.child, aggregate.references)
        input <- rows(aggregate.child)
      } yield below.plus(aggregated(aggregate, input) + cost.stage)
    case other =>
      val wanted = needed ++ other.references
      val parts = other.children.map(of(_, wanted))
      if (parts.exists(_.isEmpty)) None
      else rows(other).map(output => parts.flatten.reduce(_ + _).plus(cost.output(output, 0.0)))
  }

  private def rows(plan: LogicalPlan): Option[Double] = estimate(plan).map(_.rows.value)

  private def scan(
      leaf: LeafNode,
      needed: AttributeSet,
      predicates: Seq[Expression]
  ): Option[Work] =
    estimate(leaf).map { known =>
      val read = readOf(leaf, predicates, known.rows.value)
      val columns = leaf.output.filter(needed.contains)
      val rowBytes = known.copy(measuredRowBytes = None).rowBytes(columns)
      val side = JoinSide(read, rowBytes, shuffleExists = true)
      Work(cost.read(side), read, known.rows.origin)
    }

  private def aggregated(aggregate: Aggregate, rows: Double): Double = {
    val functions = aggregate.aggregateExpressions
      .flatMap(_.collect { case function: AggregateExpression => function })
      .distinctBy(_.canonicalized)
    val updates = functions.map(function => 1 + function.children.map(tests).sum).sum
    val grouped = if (aggregate.groupingExpressions.isEmpty) 0 else 1
    cost.evaluated(rows * updates) + cost.grouped(rows * (grouped + copies(functions)))
  }

  /** How often a row is put into groups so that functions see each value once. */
  private def copies(functions: Seq[AggregateExpression]): Int = {
    val (distinct, others) = functions.partition(_.isDistinct)
    val sets = distinct.map(_.aggregateFunction.children.map(_.canonicalized).toSet).distinct.size
    val expands = sets > 1 || distinct.exists(_.filter.isDefined)
    sets + (if (expands && others.nonEmpty) 1 else 0)
  }

  /** Tests and computations that an expression consists of; of AND and OR the second is often skipped. */
  private def tests(expression: Expression): Double = expression match {
    case _: And | _: Or => tests(expression.children.head) + tests(expression.children.last) / 2
    case _: Attribute | _: Literal | _: Alias | _: Not => expression.children.map(tests).sum
    case other => 1 + other.children.map(tests).sum
  }

}
