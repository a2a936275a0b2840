package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{Evidence, Origin, Phase, PlanningPass}
import io.selinger.cost.{
  BuildSides,
  Cluster,
  GroupsAbove,
  JoinCost,
  JoinFacts,
  JoinOperator,
  JoinOperatorModel,
  JoinSide
}
import io.selinger.estimate.{PlanEstimate, RowSize}
import io.selinger.estimate.joins.{JoinEstimator, JoinKeys}
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.stats.relations.QueryStages
import io.selinger.strategy.JoinChoice.Choice
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.{
  BuildLeft,
  BuildRight,
  BuildSide,
  JoinSelectionHelper
}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.joins.HashJoin
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.LongType

/**
 * A join whose operator is to be chosen, with what is known of its sides.
 *
 * @param builds the sides from which operators may build
 */
private[strategy] final case class JoinProblem(
    join: Join,
    left: JoinProblem.Input,
    right: JoinProblem.Input,
    builds: BuildSides,
    model: JoinOperatorModel
) {
  import JoinProblem._

  private lazy val keys = equalities(join)

  def hasEqualities: Boolean = keys.nonEmpty

  def cost: JoinCost = model.cost

  /** @param stock what Spark would run */
  def choice(stock: Option[JoinOperator]): Choice = {
    def facts(pairs: Double, groups: GroupsAbove) =
      new JoinFacts(left.side, right.side, builds, hasEqualities, pairs, groups, stock)
    val known = if (hasEqualities) facts(pairs, groupsAbove) else facts(0.0, GroupsAbove.none)
    new JoinChoice(model, SelingerConf.JOIN_MIN_GAIN.value).choose(known)
  }

  /** As if what is expected of the rows of both sides had been measured. */
  def asExpected: JoinProblem = {
    def expected(input: Input) = {
      val rows = input.estimate.rows.copy(origin = Origin.Measured)
      val estimate = input.estimate.withRows(rows, rows.value, Some(rows.value))
      Input(estimate, input.side.asExpected)
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
      def isDimension(plan: LogicalPlan, input: Input, keys: Seq[Expression]) =
        nearlyUnique(input.estimate, keys) && (byKey || columns.exists(plan.outputSet.contains))
      val dimensions = Seq(left).filter(isDimension(join.left, _, leftKeys)) ++
        Seq(right).filter(isDimension(join.right, _, rightKeys))
      dimensions.map(_.side.rows).maxOption.fold(GroupsAbove.none) { groups =>
        val width = RowSize.bytes(columns.toSeq, left.estimate.columns ++ right.estimate.columns)
        val bytes = groups * (width + groupOverhead)
        GroupsAbove(bytes, bytes / math.max(1, SQLConf.get.numShufflePartitions))
      }
    }

  def evidence(choice: Choice): Seq[Evidence] = {
    val broadcasts = choice.best.flatMap(_.operator.broadcastSide)
    def of(build: BuildSide, input: Input) = {
      val name = if (build == BuildLeft) "left" else "right"
      val (side, origin) = (input.side, input.estimate.rows.origin)
      Seq(
        Evidence(s"$name rows", side.rows, "rows", origin)
      ) ++ Option.when(side.upperBound < mostKnown)(
        Evidence(s"$name rows at most", side.upperBound, "rows", origin)
      ) ++ Seq(
        Evidence(
          s"$name hash table",
          side.tableBytes(side.rows),
          "bytes",
          origin.worse(if (side.widthIsKnown) Origin.Derived else Origin.Default)
        )
      ) ++ Option.when(broadcasts.contains(build) && side.broadcastPlaces > 1)(
        Evidence(s"$name broadcast once for", side.broadcastPlaces.toDouble, "joins", Origin.Exact)
      )
    }
    val limits = model.limits
    of(BuildLeft, left) ++ of(BuildRight, right) ++
      limits.broadcastBytes.map(Evidence("broadcast limit", _, "bytes", Origin.Exact)) ++
      limits.countedBroadcastBytes
        .filter(_ => left.side.isCounted || right.side.isCounted)
        .map(Evidence("broadcast limit of counted rows", _, "bytes", Origin.Exact)) ++
      choice.candidates.map(c =>
        Evidence(s"cost of ${c.operator.label}", c.seconds, "s", Origin.Derived)
      )
  }
}

private[strategy] object JoinProblem {

  /** A side of the join, and the estimate that it comes from. */
  final case class Input(estimate: PlanEstimate, side: JoinSide)

  /** None where the rows of a side cannot be estimated. */
  def of(join: Join, phase: Phase, cluster: Cluster): Option[JoinProblem] = {
    val (leftKeys, rightKeys) = equalities(join).unzip
    val estimator = LeafStatistics.estimator
    for (left <- estimator.estimate(join.left); right <- estimator.estimate(join.right))
      yield {
        val leftRead = QueryStages.shuffleReadBy(join.left, leftKeys)
        val rightRead = QueryStages.shuffleReadBy(join.right, rightKeys)
        JoinProblem(
          join,
          input(join.left, left, leftKeys, leftRead, rightRead),
          input(join.right, right, rightKeys, rightRead, leftRead),
          buildsOf(join, leftKeys.nonEmpty),
          JoinOperatorModel.ofSession(phase, cluster)
        )
      }
  }

  /** The prices of operators in this session, whatever the join. */
  def cost(cluster: Cluster): JoinCost =
    JoinOperatorModel.ofSession(Phase.Adaptive, cluster).cost

  // An upper bound beyond it is a product of sides of which nothing is known.
  private val mostKnown = PlanEstimate.most / 1000.0

  // Bytes of pointers and aggregation buffers beside the key of a group. Set by hand, and
  // not measured.
  private val groupOverhead = 40.0

  // Partition sizes are known compressed, and a partition of one repeated key compresses better
  // than the others: it may hold this many times more rows than its bytes say. Set by hand, a limit of
  // memory and not measured: beyond it the join is by sort-merge, which can spill.
  private val compressionSkew = 2.0

  private def input(
      plan: LogicalPlan,
      estimate: PlanEstimate,
      keys: Seq[Expression],
      read: Option[ShuffleQueryStageExec],
      other: Option[ShuffleQueryStageExec]
  ): Input = {
    val packed = if (keys.isEmpty) Nil else HashJoin.rewriteKeyExpr(keys)
    val target = SQLConf.get.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES)
    // A join in between may return more rows for some partitions than for others.
    val share = QueryStages
      .shuffleBy(plan, keys)
      .flatMap(QueryStages.largestTaskShare(_, other, target))
      .map(share => math.min(1.0, share * compressionSkew))
    val types = packed.map(_.dataType)
    val side = JoinSide(
      rows = estimate.rows.value,
      upperBound = estimate.upperBound,
      maxRows = estimate.bound,
      isCounted = JoinSide.areCounted(estimate.rows),
      rowBytes = estimate.rowBytes(plan.output),
      widthIsKnown = estimate.widthIsKnown(plan.output),
      keyBytes = RowSize.bytesOfTypes(types),
      packedKey = types == Seq(LongType),
      singleKey = keys.size == 1 && types == Seq(LongType),
      shuffleExists = read.isDefined || groupedBy(plan, keys),
      // Without a shuffle that has run, a single key may hold all rows.
      largestTaskShare = share.getOrElse(1.0),
      otherBroadcastBytes = PlanningPass.current.promisedBeside(plan.semanticHash()),
      broadcastPlaces = SharedBroadcasts.places(plan, keys)
    )
    Input(estimate, side)
  }

  /** What the join's type and the hints of adaptive execution allow; other hints are obeyed before. */
  private def buildsOf(join: Join, hasKeys: Boolean): BuildSides = {
    val builds = BuildSides.of(join.joinType, hasKeys)
    val hints = new Hints
    builds.copy(
      broadcastLeft = builds.broadcastLeft && !hints.hintToNotBroadcastLeft(join.hint),
      broadcastRight = builds.broadcastRight && !hints.hintToNotBroadcastRight(join.hint)
    )
  }

  private final class Hints extends JoinSelectionHelper

  // Distinct values of a key by its rows from which it counts as unique. Not 1, because
  // distinct values are an estimate. Set by hand, and not measured.
  private val leastUnique = 0.9

  private def nearlyUnique(side: PlanEstimate, keys: Seq[Expression]): Boolean =
    keys.exists(key => side.distinct(key).exists(_ >= leastUnique * side.rows.value))

  private def equalities(join: Join): Seq[(Expression, Expression)] = join match {
    case ExtractEquiJoinKeys(_, leftKeys, rightKeys, _, _, _, _, _) => leftKeys.zip(rightKeys)
    case _ => Nil
  }

  /** Rows that an aggregate returns by the join's keys are partitioned by them already. */
  private def groupedBy(plan: LogicalPlan, keys: Seq[Expression]): Boolean = plan match {
    // With a hint it may group in each task by itself.
    case aggregate: Aggregate
        if aggregate.groupingExpressions.nonEmpty && aggregate.hint.isEmpty =>
      aggregate.groupingExpressions.size == keys.size &&
      keys.forall(key => aggregate.groupingExpressions.exists(_.semanticEquals(key)))
    case Filter(_, child) => groupedBy(child, keys)
    case Project(_, child) => groupedBy(child, keys)
    case _ => false
  }
}
