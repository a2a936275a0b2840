package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{Evidence, Origin, Phase, PlanningPass}
import io.selinger.cost.{Cluster, JoinCost, JoinSettings}
import io.selinger.estimate.{PlanEstimate, RowSize}
import io.selinger.estimate.joins.{JoinEstimator, JoinKeys}
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.stats.relations.QueryStages
import io.selinger.strategy.JoinChoice.{Choice, GroupsAbove}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.{
  BuildLeft,
  BuildRight,
  BuildSide,
  JoinSelectionHelper
}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.joins.HashJoin
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.LongType

/** A join whose operator is to be chosen, with what is known of its sides. */
private[strategy] final case class JoinProblem(
    join: Join,
    left: JoinInput,
    right: JoinInput,
    limits: JoinLimits,
    cluster: Cluster
) {
  import JoinProblem._

  private lazy val keys = equalities(join)

  def hasEqualities: Boolean = keys.nonEmpty

  lazy val cost: JoinCost = new JoinCost(cluster, SelingerConf.CBO_WEIGHT.value)

  /** @param stock what Spark would run */
  def choice(stock: Option[JoinOperator]): Choice = {
    val chooser = new JoinChoice(cluster, cost, limits)
    if (hasEqualities) chooser.equiJoin(left, right, stock, pairs, groupsAbove)
    else chooser.nestedLoop(left, right)
  }

  /** As if what is expected of the rows of both sides had been measured. */
  def asExpected: JoinProblem = {
    def expected(side: JoinInput) = {
      val rows = side.estimate.rows.value
      val measured = side.estimate.rows.copy(origin = Origin.Measured)
      side.copy(estimate = side.estimate.withRows(measured, rows, Some(rows)))
    }
    copy(left = expected(left), right = expected(right))
  }

  private def pairs: Double = {
    val (leftKeys, rightKeys) = keys.unzip
    JoinEstimator.pairs(JoinKeys.pairs(leftKeys, rightKeys), left.estimate, right.estimate)
  }

  /**
   * The groups of an aggregation above that rows sorted by the join's key would come clustered by:
   * it groups by the key, or by columns of a side that has about one row a key.
   */
  private def groupsAbove: GroupsAbove =
    JoinsBelowAggregate.groupedBy(join).fold(GroupsAbove.none) { columns =>
      val (leftKeys, rightKeys) = keys.unzip
      val byKey = (leftKeys ++ rightKeys).exists(_.references.subsetOf(columns))
      val dimension = Seq((join.left, left, leftKeys), (join.right, right, rightKeys)).collect {
        case (plan, side, keys) if nearlyUnique(side.estimate, keys) => (plan.outputSet, side)
      }
      val grouped = dimension.filter { case (output, _) =>
        byKey || columns.exists(output.contains)
      }
      grouped.map(_._2.estimate.rows.value).maxOption.fold(GroupsAbove.none) { groups =>
        val width = RowSize.of(columns.toSeq, left.estimate.columns ++ right.estimate.columns)
        val bytes = groups * (width + groupOverhead)
        GroupsAbove(bytes, bytes / math.max(1, SQLConf.get.numShufflePartitions))
      }
    }

  def evidence(choice: Choice): Seq[Evidence] = {
    def of(name: String, side: JoinInput) = Seq(
      Evidence(s"$name rows", side.estimate.rows.value, "rows", side.estimate.rows.origin),
      Evidence(s"$name rows at most", side.estimate.upperBound, "rows", side.estimate.rows.origin),
      Evidence(
        s"$name hash table",
        side.tableBytes(side.estimate.rows.value),
        "bytes",
        side.estimate.rows.origin.worse(if (side.widthIsKnown) Origin.Derived else Origin.Default)
      )
    )
    of("left", left) ++ of("right", right) ++
      limits.broadcastLimitBytes.map(Evidence("broadcast limit", _, "bytes", Origin.Exact)) ++
      limits.countedLimitBytes
        .filter(_ => left.isCounted || right.isCounted)
        .map(Evidence("broadcast limit of counted rows", _, "bytes", Origin.Exact)) ++
      choice.candidates.map(c =>
        Evidence(s"cost of ${c.operator.label}", c.seconds, "s", Origin.Derived)
      )
  }
}

private[strategy] object JoinProblem {

  /** What Spark's operators support. */
  private final class Operators extends JoinSelectionHelper

  /** None where the rows of a side cannot be estimated. */
  def of(join: Join, phase: Phase, cluster: Cluster): Option[JoinProblem] = {
    val (leftKeys, rightKeys) = equalities(join).unzip
    val estimator = LeafStatistics.estimator
    for (left <- estimator.estimate(join.left); right <- estimator.estimate(join.right))
      yield {
        val leftShuffle = QueryStages.shuffleBy(join.left, leftKeys)
        val rightShuffle = QueryStages.shuffleBy(join.right, rightKeys)
        JoinProblem(
          join,
          input(join.left, left, leftKeys, leftShuffle, rightShuffle),
          input(join.right, right, rightKeys, rightShuffle, leftShuffle),
          limitsOf(join, phase, cluster),
          cluster
        )
      }
  }

  // Pointers and aggregation buffers beside the key of a group.
  private val groupOverhead = 40.0

  // Partition sizes are known compressed, and a partition of one repeated key compresses better
  // than the others: it may hold this many times more rows than its bytes say.
  private val compressionSkew = 2.0

  private def input(
      plan: LogicalPlan,
      estimate: PlanEstimate,
      keys: Seq[Expression],
      shuffle: Option[ShuffleQueryStageExec],
      other: Option[ShuffleQueryStageExec]
  ): JoinInput = {
    val packed = if (keys.isEmpty) Nil else HashJoin.rewriteKeyExpr(keys)
    val target = SQLConf.get.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES)
    val share = shuffle
      .flatMap(QueryStages.largestTaskShare(_, other, target))
      .map(share => math.min(1.0, share * compressionSkew))
    JoinInput(
      estimate,
      estimate.rowBytes(plan.output),
      estimate.widthIsKnown(plan.output),
      RowSize.ofTypes(packed.map(_.dataType)),
      packed.map(_.dataType) == Seq(LongType),
      shuffle.isDefined || groupedBy(plan, keys),
      keys.size == 1 && packed.map(_.dataType) == Seq(LongType),
      PlanningPass.current.promisedBeside(plan.semanticHash()),
      share.getOrElse(1.0)
    )
  }

  private def limitsOf(join: Join, phase: Phase, cluster: Cluster): JoinLimits = {
    def builds(left: Boolean, right: Boolean): Set[BuildSide] =
      (if (left) Set[BuildSide](BuildLeft) else Set.empty) ++
        (if (right) Set[BuildSide](BuildRight) else Set.empty)
    val both = join.joinType == FullOuter && equalities(join).isEmpty
    val operators = new Operators
    import operators._
    JoinLimits(
      broadcastBuilds = builds(
        (both || canBuildBroadcastLeft(join.joinType)) && !hintToNotBroadcastLeft(join.hint),
        (both || canBuildBroadcastRight(join.joinType)) && !hintToNotBroadcastRight(join.hint)
      ),
      shuffledBuilds =
        if (JoinSettings.sortMergeDemanded) Set.empty
        else
          builds(
            canBuildShuffledHashJoinLeft(join.joinType),
            canBuildShuffledHashJoinRight(join.joinType)
          ),
      sortable = true,
      broadcastLimitBytes = JoinSettings.broadcastLimit(phase, cluster),
      countedLimitBytes = JoinSettings.countedLimit(phase, cluster),
      totalLimitBytes = SelingerConf.BROADCAST_TOTAL_SHARE.value * cluster.smallerHeapBytes,
      hashMemoryShare = SelingerConf.HASH_MEMORY_SHARE.value,
      hashMemoryMargin = SelingerConf.HASH_MEMORY_MARGIN.value,
      minGain = SelingerConf.JOIN_MIN_GAIN.value
    )
  }

  private def nearlyUnique(side: PlanEstimate, keys: Seq[Expression]): Boolean =
    keys.exists(key => side.distinct(key).exists(_ >= 0.9 * side.rows.value))

  private def equalities(join: Join): Seq[(Expression, Expression)] = join match {
    case ExtractEquiJoinKeys(_, leftKeys, rightKeys, _, _, _, _, _) => leftKeys.zip(rightKeys)
    case _ => Nil
  }

  /** Rows that an aggregate returns by the join's keys are partitioned by them already. */
  private def groupedBy(plan: LogicalPlan, keys: Seq[Expression]): Boolean = plan match {
    case aggregate: Aggregate if aggregate.groupingExpressions.nonEmpty =>
      aggregate.groupingExpressions.size == keys.size &&
      keys.forall(key => aggregate.groupingExpressions.exists(_.semanticEquals(key)))
    case Filter(_, child) => groupedBy(child, keys)
    case Project(_, child) => groupedBy(child, keys)
    case _ => false
  }
}
