package io.selinger.cost

import org.apache.spark.sql.catalyst.optimizer.{
  BuildLeft,
  BuildRight,
  BuildSide,
  JoinSelectionHelper
}
import org.apache.spark.sql.catalyst.plans.{FullOuter, InnerLike, JoinType}

/**
 * One join, as its operators see it. What it costs to return its rows is the same for all operators,
 * so that is no part of it: see [[JoinCost.output]].
 *
 * @param builds the sides from which operators may build, by the type of the join and hints
 * @param hasKeys whether it compares keys for equality
 * @param pairs of rows with equal keys; 0 without keys
 * @param groups of an aggregation above
 * @param stock the operator that Spark would choose, where that is known
 */
final class JoinFacts(
    val left: JoinSide,
    val right: JoinSide,
    val builds: BuildSides,
    val hasKeys: Boolean,
    val pairs: Double = 0.0,
    val groups: GroupsAbove = GroupsAbove.none,
    val stock: Option[JoinOperator] = None
) {

  def side(which: BuildSide): JoinSide = if (which == BuildLeft) left else right

  def otherSide(which: BuildSide): JoinSide = if (which == BuildLeft) right else left

  /** The side with more rows; the left one where they have as many. */
  def larger: JoinSide = if (left.rows >= right.rows) left else right

  /** Rows that an aggregation above gets: of an inner join its pairs, of another one those of a side. */
  def rowsToGroup: Double = if (builds.isInner) pairs else larger.rows

  /** Whether no side needs another shuffle. */
  def isShuffled: Boolean = left.shuffleExists && right.shuffleExists

  /** Whether Spark would choose just this operator. */
  def isStock(operator: JoinOperator): Boolean = (stock ne None) && stock.contains(operator)
}

/**
 * The sides from which operators may build.
 *
 * @param isInner whether the join returns pairs only
 */
final case class BuildSides(
    broadcastLeft: Boolean,
    broadcastRight: Boolean,
    shuffledLeft: Boolean,
    shuffledRight: Boolean,
    isInner: Boolean
) {

  def broadcast(side: BuildSide): Boolean = if (side == BuildLeft) broadcastLeft else broadcastRight

  def shuffled(side: BuildSide): Boolean = if (side == BuildLeft) shuffledLeft else shuffledRight
}

object BuildSides {

  val all: Seq[BuildSide] = Seq(BuildLeft, BuildRight)

  /** What Spark's operators support. */
  private final class Support extends JoinSelectionHelper

  def of(joinType: JoinType, hasKeys: Boolean): BuildSides = {
    val both = joinType == FullOuter && !hasKeys
    val support = new Support
    BuildSides(
      broadcastLeft = both || support.canBuildBroadcastLeft(joinType),
      broadcastRight = both || support.canBuildBroadcastRight(joinType),
      shuffledLeft = support.canBuildShuffledHashJoinLeft(joinType),
      shuffledRight = support.canBuildShuffledHashJoinRight(joinType),
      isInner = joinType.isInstanceOf[InnerLike]
    )
  }
}

/**
 * Groups that an aggregation above makes of the join's keys.
 *
 * @param bytes in all
 * @param bytesPerTask in one task of a shuffled join
 */
final case class GroupsAbove(bytes: Double, bytesPerTask: Double)

object GroupsAbove {
  val none: GroupsAbove = GroupsAbove(0.0, 0.0)
}
