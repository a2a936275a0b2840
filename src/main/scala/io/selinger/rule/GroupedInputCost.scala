package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Origin, Phase, Quantity}
import io.selinger.cost.{Cluster, JoinCost, JoinLimits, JoinSide, PlanWork}
import io.selinger.estimate.{PlanEstimate, ValueWidth}
import io.selinger.estimate.plans.{LeafStatistics, TaskGroups}
import org.apache.spark.sql.catalyst.expressions.{AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Expand, Join, LogicalPlan, Project}

/** What it takes, in seconds, to group rows of all keys and of some. */
private[rule] final class GroupedInputCost(cluster: Cluster) {

  private val cost = new JoinCost(cluster, SelingerConf.CBO_WEIGHT.value)
  private val limits = JoinLimits.ofSession(Phase.Static, cluster)

  def broadcast(side: JoinSide): Double = cost.broadcast(side)

  /** Of a plan whatever it shuffles, as far as that is known. */
  def plain(plan: LogicalPlan): Option[Double] =
    new PlanWork(cost, LeafStatistics.estimator.estimate, (_, _, rows) => rows)
      .of(plan)
      .map(_.seconds)

  /** To start a stage. */
  def stage: Double = cost.stage

  /** Tasks that run at a time. */
  def slots: Int = cost.slots

  /** To compute the rows of a plan. */
  def computed(plan: LogicalPlan): Option[Double] = plain(plan).map(_ + shuffledByJoins(plan))

  /** To join groups with rows, besides [[of]]: the groups are broadcast, or the rows are shuffled. */
  def joined(groups: LogicalPlan, rows: LogicalPlan): Option[Double] =
    for {
      known <- LeafStatistics.estimator.estimate(groups)
      others <- LeafStatistics.estimator.estimate(rows)
      side = JoinSide.of(known, groups.output)
    } yield
      if (limits.mayBroadcast(side, stockAgrees = false)) cost.broadcast(side)
      else cost.shuffled(JoinSide.of(others, rows.output)) + cost.stage

  /** To compute groups, and to bring them to a join above. */
  def of(node: LogicalPlan): Option[Double] =
    for {
      work <- computed(node)
      known <- LeafStatistics.estimator.estimate(node)
      input <- LeafStatistics.estimator.estimate(node.children.head)
    } yield {
      // Partial groups of all tasks, or all rows of windows.
      val moved = node match {
        case aggregate: Aggregate => inAllTasks(aggregate, input, known)
        case _ => input.rows
      }
      val side = JoinSide(moved.value, known.rowBytes(node.output), shuffleExists = false)
      val arranged = node match {
        case _: Aggregate => cost.grouped(side.rows)
        case _ => cost.sorted(side)
      }
      work + cost.shuffled(side) + arranged +
        cost.probed(known.rows.value)
    }

  /** Groups that all tasks have together, for each row. */
  def shareInTasks(aggregate: Aggregate): Option[Double] =
    for {
      input <- LeafStatistics.estimator.estimate(aggregate.child)
      groups <- LeafStatistics.estimator.estimate(aggregate)
    } yield inAllTasks(aggregate, input, groups).value / math.max(1.0, input.rows.value)

  private def inAllTasks(
      aggregate: Aggregate,
      input: PlanEstimate,
      groups: PlanEstimate
  ): Quantity =
    TaskGroups
      .of(aggregate.child, input, cost.slots)
      .inAllTasks(groups.rows, aggregate.groupingExpressions)

  /** To find the groups of rows, which takes the longer the wider their keys are. */
  def keyed(aggregate: Aggregate): Option[Double] =
    LeafStatistics.estimator.estimate(aggregate.child).map { input =>
      val keys = aggregate.groupingExpressions.flatMap(_.references)
      cost.copied(JoinSide(input.rows.value, input.rowBytes(keys), shuffleExists = true))
    }

  /**
   * Texts as keys of an aggregation, beyond numbers in their place.
   *
   * @param texts of the keys, in the input
   */
  def textKeys(aggregate: Aggregate, texts: Seq[Expression]): Option[Double] =
    for {
      input <- LeafStatistics.estimator.estimate(aggregate.child)
      share <- shareInTasks(aggregate)
    } yield {
      val rows = rowsToGroup(aggregate.child, input.rows.value)
      val more = input.rowBytes(texts.flatMap(_.references)) - 8.0 * (texts.size + 1)
      cost.textKeys(rows * texts.size, rows * more) + cost.shuffledBytes(rows * share * more)
    }

  /** Of the copies that grouping sets make, most are not made, or meet few groups. */
  private def rowsToGroup(input: LogicalPlan, rows: Double): Double = input match {
    case Project(_, child) => rowsToGroup(child, rows)
    case expand: Expand => math.min(rows, 2.0 * rows / expand.projections.size)
    case _ => rows
  }

  /** To make dictionaries of texts of a table, and to look its rows up in them. */
  def dictionaries(table: LogicalPlan, texts: Int): Option[Double] =
    for (read <- plain(table); rows <- assumedRows(table))
      yield read + stagesOfDictionaries * cost.stage + stepsOfDictionaries * cost.grouped(
        rows * texts
      )

  /** To shuffle all rows of a plan. */
  def moved(plan: LogicalPlan): Option[Double] =
    LeafStatistics.estimator
      .estimate(plan)
      .map(known => cost.shuffled(JoinSide.of(known, plan.output)))

  /**
   * Bytes of the different values of a text of a table, and of where each begins: from above, since all of
   * them must fit. None where it is not known how long the values are.
   */
  def dictionaryBytes(table: LogicalPlan, text: Expression): Option[Double] =
    for {
      known <- LeafStatistics.estimator.estimate(table)
      width <- ValueWidth.bytes(text, known.columns)
    } yield {
      val distinct = known.column(text).flatMap(_.distinct)
      distinct.fold(known.upperBound)(math.min(_, known.upperBound)) * (width + bytesOfPlace)
    }

  private val bytesOfPlace = 12.0

  // Two that run; planning them, and waiting for them, takes as long. Steps: to group texts, to sort them and
  // to look each up. Both set by hand, to what TPC-DS queries lose that have few rows to group (ADR 39).
  private val stagesOfDictionaries = 4.0
  private val stepsOfDictionaries = 6.0

  /** What joins below shuffle, since neither of their sides is small. */
  private def shuffledByJoins(node: LogicalPlan): Double = node.collect { case join: Join =>
    val sides = join.children.flatMap { side =>
      LeafStatistics.estimator.estimate(side).map(JoinSide.of(_, side.output))
    }
    if (sides.exists(limits.mayBroadcast(_, stockAgrees = false))) 0.0
    else sides.map(cost.shuffled).sum
  }.sum

  /**
   * The share of the groups whose keys a source has, at most; none if unknown.
   *
   * @param over makes a key of the source one over the groups
   */
  def shareOf(
      node: LogicalPlan,
      source: KeySource,
      over: Expression => Expression
  ): Option[Double] =
    for {
      groups <- LeafStatistics.estimator.estimate(node)
      known <- LeafStatistics.estimator.estimate(source.plan)
      shares = source.keys.flatMap { case (key, value) =>
        groups.distinct(over(key)).map(known.distinct(value).getOrElse(known.rows.value) / _)
      }
      least <- shares.minOption
    } yield least

  /** Keys, as a side of a join; none where their number is not known. */
  def sideOf(source: KeySource): Option[JoinSide] =
    LeafStatistics.estimator
      .estimate(source.plan)
      .filter(_.rows.origin != Origin.Default)
      .map(JoinSide.of(_, AttributeSet(source.keys.flatMap(_._2.references)).toSeq))

  /** Whether keys are known to be few enough to be broadcast. */
  def isSmall(source: KeySource): Boolean =
    sideOf(source).exists(limits.mayBroadcast(_, stockAgrees = false))

  /** Rows of a plan, also where they are only assumed. */
  def assumedRows(plan: LogicalPlan): Option[Double] =
    LeafStatistics.estimator.estimate(plan).map(_.rows.value)

  def rowsOf(plan: LogicalPlan): Option[Quantity] =
    LeafStatistics.estimator.estimate(plan).map(_.rows).filter(_.origin != Origin.Default)
}
