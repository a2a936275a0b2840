package io.selinger.strategy

import io.selinger.core.{Evidence, Origin, Phase, RaisedErrors}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.stats.relations.QueryStages
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, ShuffleQueryStageExec}

/**
 * A join of which one side, which gives no rows of its own to the result, is reduced to the keys of the
 * other: before it is shuffled, its rows go through semi joins with the keys, which are broadcast.
 *
 * @param small the side whose keys are used: all its rows count, and rows of the other only with it
 * @param keys of the small side, with those of the large side
 */
private[strategy] final case class JoinReduction private (
    join: Join,
    small: BuildSide,
    keys: Seq[(Expression, Expression)]
) {
  import JoinReduction._

  def smallSide: LogicalPlan = if (small == BuildLeft) join.left else join.right

  def largeSide: LogicalPlan = if (small == BuildLeft) join.right else join.left

  /** The plan whose rows have all keys of the small side: semi and anti joins above it only drop rows. */
  def source: LogicalPlan = sourceOf(smallSide)

  /** The same join, and the semi joins that reduce its large side. */
  def result: (Join, Seq[Join]) = {
    val (large, reducers) = reduced(largeSide, keys)
    val made = if (small == BuildLeft) join.copy(right = large) else join.copy(left = large)
    (made, reducers)
  }

  private def reduced(
      plan: LogicalPlan,
      keys: Seq[(Expression, Expression)]
  ): (LogicalPlan, Seq[Join]) = {
    val columns = keys.map { case (own, _) => Alias(own, "key")() }
    val condition = keys
      .zip(columns)
      .map { case ((_, other), column) => EqualTo(other, column.toAttribute) }
      .reduce[Expression](And(_, _))
    val reducer =
      Join(plan, Project(columns, source), LeftSemi, Some(condition), JoinHint.NONE)
    reducer.setTagValue(reducerTag, ())
    (reducer, Seq(reducer))
  }

  /** What it takes now and reduced; none where that is not known. */
  def costs(cluster: Cluster, asExpected: Boolean): Option[JoinReduction.Costs] = {
    val (made, reducers) = result
    def problemOf(join: Join) = JoinProblem
      .of(join, Phase.Adaptive, cluster)
      .map(problem => if (asExpected) problem.asExpected else problem)
    def seconds(join: Join): Option[Double] =
      for (problem <- problemOf(join); best <- problem.choice(stock = None).best)
        yield best.seconds
    for {
      before <- seconds(join)
      after <- seconds(made)
      problems = reducers.map(problemOf)
      if problems.forall(_.isDefined)
      all <- LeafStatistics.estimator.estimate(largeSide)
      left <- LeafStatistics.estimator.estimate(reducers.head)
    } yield {
      val chosen = problems.flatten.map(_.choice(stock = None))
      val broadcast = chosen.map(_.candidates.find(_.operator.broadcastSide.contains(BuildRight)))
      val best = chosen.zip(broadcast).forall { case (choice, keys) =>
        keys.exists(found => choice.best.exists(_.operator == found.operator))
      }
      Costs(
        before,
        if (best) Some(after + broadcast.flatten.map(_.seconds).sum) else None,
        broadcast.forall(_.isDefined),
        problems.flatten.headOption.toSeq.flatMap { problem =>
          Seq(
            Evidence("keys", problem.right.side.rows, "rows", problem.right.estimate.rows.origin),
            Evidence(
              "hash table of keys",
              problem.right.side.tableBytes(problem.right.side.rows),
              "bytes",
              Origin.Derived
            )
          ) ++ problem.model.limits.countedBroadcastBytes.map(
            Evidence("broadcast limit", _, "bytes", Origin.Exact)
          )
        } ++ Seq(
          Evidence("rows of the large side", all.rows.value, "rows", all.rows.origin),
          Evidence("rows with a key", left.rows.value, "rows", left.rows.origin)
        )
      )
    }
  }
}

private[strategy] object JoinReduction {

  /**
   * @param before seconds of the join
   * @param after seconds of the reduced join and of what reduces it; none where another operator than a
   *   broadcast of the keys is better
   * @param isBroadcast whether the keys are few enough to be broadcast
   */
  final case class Costs(
      before: Double,
      after: Option[Double],
      isBroadcast: Boolean,
      rows: Seq[Evidence]
  ) {

    /** The share of the cost that is saved. */
    def gain: Option[Double] = after.map(seconds => 1.0 - seconds / math.max(1e-9, before))

    def evidence: Seq[Evidence] =
      rows :+ Evidence("cost of the whole join", before, "s", Origin.Derived) :++
        after.map(Evidence("cost of the reduced join", _, "s", Origin.Derived))
  }

  private val reducerTag = TreeNodeTag[Unit]("selinger.reducesJoin")

  /** Whether a join is one that only reduces the input of another. */
  def isReducer(plan: LogicalPlan): Boolean = plan.getTagValue(reducerTag).isDefined

  /** None where neither side may be reduced, or one has been. */
  def of(join: Join): Option[JoinReduction] =
    for {
      small <- smallSideOf(join.joinType)
      if !join.isStreaming && !isReducer(join)
      large = if (small == BuildLeft) join.right else join.left
      if !large.exists(isReducer)
      keys = equalities(join)
      if keys.nonEmpty && keys.forall { case (l, r) => RaisedErrors.isSafe(l) && RaisedErrors.isSafe(r) }
      if !RaisedErrors.computesUnsafeColumns(large)
    } yield JoinReduction(join, small, if (small == BuildLeft) keys else keys.map(_.swap))

  /** The side that keeps its rows, or decides which are kept: of the other, matches alone count. */
  private def smallSideOf(joinType: JoinType): Option[BuildSide] = joinType match {
    case LeftSemi | LeftAnti | LeftOuter | ExistenceJoin(_) => Some(BuildLeft)
    case RightOuter => Some(BuildRight)
    case _ => None
  }

  private def sourceOf(plan: LogicalPlan): LogicalPlan = plan match {
    case Join(left, _, LeftSemi | LeftAnti, _, _) => sourceOf(left)
    case other => other
  }

  /** A finished shuffle, which can be read once more. */
  def isFinished(plan: LogicalPlan): Boolean = plan match {
    case LogicalQueryStage(_, stage: ShuffleQueryStageExec) => stage.isMaterialized
    case _ => false
  }

  /** Whether nothing of a plan has been shuffled yet. */
  def hasNotBegun(plan: LogicalPlan): Boolean = !QueryStages.begun(plan)

  private def equalities(join: Join): Seq[(Expression, Expression)] = join match {
    case ExtractEquiJoinKeys(_, left, right, _, _, _, _, _) => left.zip(right)
    case _ => Nil
  }
}
