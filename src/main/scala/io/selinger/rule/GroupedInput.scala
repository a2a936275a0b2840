package io.selinger.rule

import org.apache.spark.sql.catalyst.expressions.{And, EqualTo, Expression}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.{
  AGGREGATE,
  DYNAMIC_PRUNING_EXPRESSION,
  DYNAMIC_PRUNING_SUBQUERY,
  WINDOW
}

/**
 * An aggregation, or window functions, on one side of a join that only needs the groups of some keys.
 *
 * @param node whose groups, or partitions, have one value of each key
 * @param keys over the output of `node`, each with the expression of the other side that it must equal
 */
private[rule] final case class GroupedInput(
    node: LogicalPlan,
    keys: Seq[(Expression, Expression)]
)

private[rule] object GroupedInput {

  /** Those of one side of a join, of which rows without a match are dropped; from above. */
  def in(side: LogicalPlan, keys: Seq[(Expression, Expression)]): Seq[GroupedInput] = {
    def below(child: LogicalPlan)(origin: Expression => Option[Expression]) =
      in(child, keys.flatMap { case (own, value) => origin(own).map(_ -> value) })
    if (keys.isEmpty || !side.containsAnyPattern(AGGREGATE, WINDOW)) Nil
    else
      side match {
        case _: Aggregate | _: Window if isReduced(side) => Nil
        case Project(list, child) => below(child)(KeyOrigins.below(list, _))
        case Filter(_, child) => below(child)(Some(_))
        case aggregate: Aggregate =>
          val kept = keys.filter(key => KeyOrigins.belowGroups(aggregate, key._1).isDefined)
          // With a hint, each task groups by itself what another aggregation groups again.
          Option.when(kept.nonEmpty && aggregate.hint.isEmpty)(GroupedInput(
            aggregate,
            kept
          )).toSeq ++
            below(aggregate.child)(KeyOrigins.belowGroups(aggregate, _))
        case window: Window =>
          val spec = window.partitionSpec
          val kept = keys.filter(key => KeyOrigins.belowPartitions(spec, key._1).isDefined)
          Option.when(kept.nonEmpty)(GroupedInput(window, kept)).toSeq ++
            below(window.child)(KeyOrigins.belowPartitions(spec, _))
        case limit: WindowGroupLimit =>
          below(limit.child)(KeyOrigins.belowPartitions(limit.partitionSpec, _))
        case expand: Expand => below(expand.child)(KeyOrigins.belowCopies(expand, _))
        case union: Union =>
          union.children.flatMap(branch =>
            below(branch)(key => Some(KeyOrigins.inBranch(union, branch, key)))
          )
        case join: Join =>
          sidesToFilter(join).flatMap(left =>
            below(if (left) join.left else join.right)(KeyOrigins.onSide(join, left, _))
          )
        case _ => Nil
      }
  }

  /** The sides of which rows may be left out if the rows that a join makes of them are not needed. */
  def sidesToFilter(join: Join): Seq[Boolean] = join.joinType match {
    case _: InnerLike => Seq(true, false)
    case LeftOuter | LeftSemi | LeftAnti | _: ExistenceJoin => Seq(true)
    case RightOuter => Seq(false)
    case _ => Nil
  }

  /** The sides of which a join drops rows that have no match. */
  def sidesThatNeedMatches(join: Join): Seq[Boolean] = join.joinType match {
    case _: InnerLike | LeftSemi => Seq(true, false)
    case LeftOuter | LeftAnti | _: ExistenceJoin => Seq(false)
    case RightOuter => Seq(true)
    case _ => Nil
  }

  private val reducerTag = TreeNodeTag[Unit]("selinger.reducesGroups")

  def markReducer(join: Join): Unit = join.setTagValue(reducerTag, ())

  def isReducer(join: Join): Boolean = join.getTagValue(reducerTag).isDefined

  /** Whether something of it has been filtered by the keys of a join. */
  private def isReduced(node: LogicalPlan): Boolean =
    node.exists(_.getTagValue(reducerTag).isDefined)
}

/**
 * Puts semi joins with known keys as far below an operator as that saves rows.
 *
 * @param keys makes a plan of them, with one column for each; anew for each place, as its columns are
 * @param stays whether an operator must stay as it is
 * @param rowsOf a plan; none if unknown
 */
private[rule] final class InputReducer(
    keys: () => LogicalPlan,
    stays: LogicalPlan => Boolean,
    rowsOf: LogicalPlan => Option[Double]
) {
  import InputReducer._

  /**
   * An operator that groups rows, with its input reduced.
   *
   * @param own the keys over its output
   */
  def reduced(plan: LogicalPlan, own: Seq[Expression]): LogicalPlan = {
    def through(child: LogicalPlan)(origin: Expression => Option[Expression]) =
      ExpressionSets
        .all(own.map(origin))
        .map(keys => rebuilt(plan, child, in(child, keys)))
        .getOrElse(onTop(plan, own))
    plan match {
      case Project(list, child) if goesOn(child) => through(child)(KeyOrigins.below(list, _))
      case Filter(_, child) if goesOn(child) => through(child)(Some(_))
      case aggregate: Aggregate =>
        through(aggregate.child)(KeyOrigins.belowGroups(aggregate, _))
      case window: Window =>
        through(window.child)(KeyOrigins.belowPartitions(window.partitionSpec, _))
      case limit: WindowGroupLimit =>
        through(limit.child)(KeyOrigins.belowPartitions(limit.partitionSpec, _))
      case expand: Expand => through(expand.child)(KeyOrigins.belowCopies(expand, _))
      case union: Union =>
        union.withNewChildren(union.children.map(branch =>
          in(branch, own.map(KeyOrigins.inBranch(union, branch, _)))
        ))
      case join: Join =>
        val sides = for {
          left <- GroupedInput.sidesToFilter(join)
          side = if (left) join.left else join.right
          if mayFilter(join, side)
          below <- ExpressionSets.all(own.map(KeyOrigins.onSide(join, left, _)))
        } yield side -> below
        sides.maxByOption { case (side, _) => rowsOf(side) } match {
          case Some((side, below)) if !keepsFewer(join, side, below) =>
            rebuilt(join, side, in(side, below))
          case _ => onTop(join, own)
        }
      case _ => onTop(plan, own)
    }
  }

  private def in(plan: LogicalPlan, own: Seq[Expression]): LogicalPlan =
    if (stays(plan)) onTop(plan, own) else reduced(plan, own)

  /** Whether a join leaves fewer rows of its side than the keys do. */
  private def keepsFewer(join: Join, side: LogicalPlan, own: Seq[Expression]): Boolean =
    (rowsOf(join), rowsOf(onTop(side, own))) match {
      case (Some(joined), Some(kept)) => joined < kept
      case _ => false
    }

  private def rebuilt(plan: LogicalPlan, child: LogicalPlan, made: LogicalPlan): LogicalPlan =
    plan.withNewChildren(plan.children.map(one => if (one eq child) made else one))

  private def onTop(plan: LogicalPlan, own: Seq[Expression]): LogicalPlan = {
    val right = keys()
    val condition =
      own.zip(right.output).map { case (a, b) => EqualTo(a, b) }.reduce[Expression](And(_, _))
    val reducer = Join(plan, right, LeftSemi, Some(condition), JoinHint.NONE)
    GroupedInput.markReducer(reducer)
    reducer
  }
}

private object InputReducer {

  /**
   * Whether only one side of a join may change. Equal sides are read once. A side whose rows prune the
   * partitions of the other is read once for both, too.
   */
  private def mayFilter(join: Join, side: LogicalPlan): Boolean = {
    def prunes(plan: LogicalPlan) =
      plan.containsAnyPattern(DYNAMIC_PRUNING_SUBQUERY, DYNAMIC_PRUNING_EXPRESSION)
    (!prunes(join) || prunes(side)) && !join.left.sameResult(join.right)
  }

  /** Whether there is something below that has more rows than what is above it. */
  private def goesOn(plan: LogicalPlan): Boolean = plan.exists {
    case _: Join | _: Aggregate | _: Window | _: Union | _: Expand => true
    case _ => false
  }
}
