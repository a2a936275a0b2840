package io.selinger.ordering

import io.selinger.core.RaisedErrors
import org.apache.spark.sql.catalyst.expressions.{And, Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.InnerLike
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Inner joins that may change places: a join, and all those that it reaches through joins,
 * projections of plain columns and filters.
 *
 * @param relations what they join, in the order written
 * @param conditions all their conjuncts
 * @param written the order written
 */
final case class JoinRegion(
    root: LogicalPlan,
    relations: Seq[LogicalPlan],
    conditions: Seq[Expression],
    written: JoinRegion.Shape
)

object JoinRegion {

  /** The form of the tree as written; relations by their position. */
  sealed trait Shape
  final case class Leaf(index: Int) extends Shape
  final case class Pair(left: Shape, right: Shape) extends Shape

  /** The region whose topmost join or filter is `plan`; none where that is neither. */
  def at(plan: LogicalPlan): Option[JoinRegion] = plan match {
    case Movable(_) =>
      val relations = Seq.newBuilder[LogicalPlan]
      val conditions = Seq.newBuilder[Expression]
      var count = 0

      def flatten(node: LogicalPlan): Shape = node match {
        case Movable(join: Join) =>
          conditions ++= join.condition.toSeq.flatMap(conjuncts)
          Pair(flatten(join.left), flatten(join.right))
        case Movable(Filter(condition, child)) =>
          conditions ++= conjuncts(condition)
          flatten(child)
        case Movable(Project(_, child)) => flatten(child)
        case relation =>
          relations += relation
          count += 1
          Leaf(count - 1)
      }

      val shape = flatten(plan)
      Some(JoinRegion(plan, relations.result(), conditions.result(), shape))
    case _ => None
  }

  private object Movable {
    def unapply(plan: LogicalPlan): Option[LogicalPlan] = plan match {
      // A hint is about the inputs that its writer saw. A condition may move only if it gives the
      // same rows wherever it is evaluated: no error that a row raises which another join would have
      // removed first, no subquery, whose place Spark relies on.
      case Join(_, _, _: InnerLike, condition, JoinHint.NONE)
          if condition.forall(c => conjuncts(c).forall(RaisedErrors.isSafe)) =>
        Some(plan)
      case Filter(condition, child)
          if conjuncts(condition).forall(RaisedErrors.isSafe) && movable(child) =>
        Some(plan)
      case Project(list, child) if list.forall(_.isInstanceOf[Attribute]) && movable(child) =>
        Some(plan)
      case _ => None
    }
  }

  private def movable(plan: LogicalPlan): Boolean = Movable.unapply(plan).isDefined

  private def conjuncts(condition: Expression): Seq[Expression] = condition match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case other => Seq(other)
  }
}
