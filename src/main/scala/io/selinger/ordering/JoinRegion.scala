package io.selinger.ordering

import io.selinger.core.RaisedErrors
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Joins that may change places: a join, and all those that it reaches through joins, projections of
 * plain columns and filters.
 *
 * @param relations what they join, in the order written
 * @param written the order written
 */
final case class JoinRegion(
    root: LogicalPlan,
    relations: Seq[LogicalPlan],
    written: JoinRegion.Shape
)

object JoinRegion {

  /** The form of the tree as written; relations by their position. */
  sealed trait Shape {
    def joins: Seq[Pair] = this match {
      case _: Leaf => Nil
      case pair: Pair => pair.left.joins ++ pair.right.joins :+ pair
    }
  }

  /** @param filters conditions on this relation alone */
  final case class Leaf(index: Int, filters: Seq[Expression] = Nil) extends Shape

  /**
   * @param joinType left where the query says right, with the sides exchanged
   * @param conditions conjuncts of the join's condition, and of filters that belong to it
   */
  final case class Pair(
      left: Shape,
      right: Shape,
      joinType: JoinType,
      conditions: Seq[Expression]
  ) extends Shape

  /** The region whose topmost join or filter is `plan`; none where that is neither. */
  def at(plan: LogicalPlan): Option[JoinRegion] =
    if (!movable(plan)) None
    else {
      val relations = Seq.newBuilder[LogicalPlan]
      var count = 0

      def flatten(node: LogicalPlan): Shape = node match {
        case Movable(Join(left, right, RightOuter, condition, _)) =>
          val (l, r) = (flatten(left), flatten(right))
          Pair(r, l, LeftOuter, condition.toSeq.flatMap(conjuncts))
        case Movable(Join(left, right, kind, condition, _)) =>
          val (l, r) = (flatten(left), flatten(right))
          if (kind.isInstanceOf[InnerLike]) placed(Pair(l, r, Inner, Nil), conditionsOf(condition))
          else Pair(l, r, kind, conditionsOf(condition))
        case Movable(Filter(condition, child)) => placed(flatten(child), conjuncts(condition))
        case Movable(Project(_, child)) => flatten(child)
        case relation =>
          relations += relation
          count += 1
          Leaf(count - 1)
      }

      // A condition is evaluated as low as its columns allow.
      def placed(shape: Shape, conditions: Seq[Expression]): Shape = {
        val known = relations.result()
        conditions.foldLeft(shape)(place(known, _, _))
      }

      val shape = flatten(plan)
      Some(JoinRegion(plan, relations.result(), shape))
    }

  private def place(relations: Seq[LogicalPlan], shape: Shape, condition: Expression): Shape = {
    def columns(part: Shape): AttributeSet = part match {
      case Leaf(index, _) => relations(index).outputSet
      case pair: Pair => columns(pair.left) ++ columns(pair.right)
    }
    def into(part: Shape): Shape = part match {
      case leaf: Leaf => leaf.copy(filters = leaf.filters :+ condition)
      case pair: Pair =>
        val needed = condition.references
        if (needed.nonEmpty && needed.subsetOf(columns(pair.left))) {
          pair.copy(left = into(pair.left))
        } else if (
          pair.joinType == Inner && needed.nonEmpty &&
          needed.subsetOf(columns(pair.right))
        ) pair.copy(right = into(pair.right))
        else pair.copy(conditions = pair.conditions :+ condition)
    }
    into(shape)
  }

  private object Movable {
    def unapply(plan: LogicalPlan): Option[LogicalPlan] = Some(plan).filter(movable)
  }

  // A hint is about the inputs that its writer saw. A condition may move only if it gives the
  // same rows wherever it is evaluated: no error that a row raises which another join would have
  // removed first, no subquery, whose place Spark relies on.
  private def movable(plan: LogicalPlan): Boolean = plan match {
    case join @ Join(_, _, kind, condition, JoinHint.NONE) =>
      val conditions = conditionsOf(condition)
      isKnown(kind) && conditions.forall(RaisedErrors.isSafe) && !usesMarks(join, conditions) &&
      !isNullAware(join) &&
      (!kind.isInstanceOf[InnerLike] || conditions.forall(belongsTo(_, join)))
    case filter @ Filter(condition, child) =>
      conjuncts(condition).forall(RaisedErrors.isSafe) && movable(child) &&
      conjuncts(condition).forall(belongsBelow(_, filter.child))
    case Project(list, child) => list.forall(_.isInstanceOf[Attribute]) && movable(child)
    case _ => false
  }

  private def isKnown(kind: JoinType): Boolean = kind match {
    case _: InnerLike | LeftOuter | RightOuter | FullOuter | LeftSemi | LeftAnti |
        _: ExistenceJoin => true
    case _ => false
  }

  /** Whether a filter's condition belongs to an inner join below, or to a relation. */
  private def belongsBelow(condition: Expression, plan: LogicalPlan): Boolean = {
    val needed = condition.references
    def within(side: LogicalPlan) = needed.nonEmpty && needed.subsetOf(side.outputSet)
    plan match {
      case join: Join if movable(join) =>
        join.joinType match {
          case _: InnerLike => belongsTo(condition, join) && !usesMarks(join, Seq(condition))
          case RightOuter => within(join.right) && belongsBelow(condition, join.right)
          case FullOuter => false
          case _ => within(join.left) && belongsBelow(condition, join.left)
        }
      case Filter(_, child) if movable(plan) => belongsBelow(condition, child)
      case Project(_, child) if movable(plan) => belongsBelow(condition, child)
      case _ => needed.nonEmpty
    }
  }

  private def belongsTo(condition: Expression, inner: Join): Boolean = {
    val needed = condition.references
    if (needed.isEmpty) false
    else if (needed.subsetOf(inner.left.outputSet)) belongsBelow(condition, inner.left)
    else if (needed.subsetOf(inner.right.outputSet)) belongsBelow(condition, inner.right)
    else true
  }

  /** NOT IN keeps a row only if no comparison is unknown; Spark has an operator of its own for it. */
  private def isNullAware(join: Join): Boolean = join.joinType == LeftAnti &&
    join.condition.exists(_.exists {
      case Or(_, IsNull(_)) | Or(IsNull(_), _) => true
      case _ => false
    })

  /** Whether a condition asks for what an existence join below has found out. */
  private def usesMarks(plan: LogicalPlan, conditions: Seq[Expression]): Boolean = {
    def marks(node: LogicalPlan): Seq[Attribute] = node match {
      case Join(left, right, kind, _, _) =>
        val own = kind match {
          case ExistenceJoin(exists) => Seq(exists)
          case _ => Nil
        }
        own ++ marks(left) ++ marks(right)
      case Filter(_, child) => marks(child)
      case Project(_, child) => marks(child)
      case _ => Nil
    }
    val needed = AttributeSet(conditions.flatMap(_.references))
    needed.nonEmpty && plan.children.flatMap(marks).exists(needed.contains)
  }

  private def conditionsOf(condition: Option[Expression]): Seq[Expression] =
    condition.toSeq.flatMap(conjuncts)

  private def conjuncts(condition: Expression): Seq[Expression] = condition match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case other => Seq(other)
  }
}
