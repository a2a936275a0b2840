package io.selinger.strategy

import io.selinger.exec.PartitionedByEitherKeyExec
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  AttributeMap,
  AttributeSet,
  Expression,
  NamedExpression
}
import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SortExec, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ValidateRequirements}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, ShuffledJoin}
import org.apache.spark.sql.execution.window.WindowExec

/**
 * A shuffle by more keys than are needed.
 *
 * @param keys of the shuffle, as its rows have them, that are enough
 */
private[strategy] final case class CoarserShuffle(
    exchange: ShuffleExchangeExec,
    keys: Seq[Expression]
)

/**
 * A plan whose rows come out partitioned by fewer keys.
 *
 * @param shuffles that are by these keys now
 * @param leftOut shuffles that are not needed, as their rows lie where they should already
 */
private[strategy] final case class Repartitioned(
    plan: SparkPlan,
    shuffles: Seq[CoarserShuffle],
    leftOut: Seq[CoarserShuffle]
)

private[strategy] object Repartitioned {

  /** None where that takes more than other keys for the plan's last shuffles. */
  def by(plan: SparkPlan, wanted: HashPartitioning): Option[Repartitioned] =
    repartitioned(plan, wanted.expressions, wanted.numPartitions).filter { result =>
      SparkShuffle.isPartitionedAs(wanted, result.plan.outputPartitioning) &&
      ValidateRequirements.validate(result.plan)
    }

  private def repartitioned(
      plan: SparkPlan,
      keys: Seq[Expression],
      partitions: Int
  ): Option[Repartitioned] = plan match {
    case SparkShuffle(exchange) =>
      exchange.outputPartitioning match {
        case hash: HashPartitioning
            if hash.numPartitions == partitions && !SparkShuffle.isHeld(exchange) &&
              keys.forall(isAmong(_, hash.expressions)) =>
          val coarser = hash.copy(expressions = keys)
          // A side of a join that Spark shuffles by all join keys, though its operators (or a stage
          // that has run) have partitioned it by these.
          if (SparkShuffle.isPartitionedAs(coarser, exchange.child.outputPartitioning)) {
            Some(Repartitioned(exchange.child, Nil, Seq(CoarserShuffle(exchange, keys))))
          } else {
            val plan = exchange.copy(outputPartitioning = coarser)
            Some(Repartitioned(plan, Seq(CoarserShuffle(exchange, keys)), Nil))
          }
        case _ => None
      }
    case project: ProjectExec => below(project, keys, project.projectList, partitions)
    case aggregate: BaseAggregateExec =>
      for {
        groups <- substituted(keys, aggregate.resultExpressions)
        result <- below(aggregate, groups, aggregate.groupingExpressions, partitions)
      } yield result
    case _: FilterExec | _: WindowExec | _: BroadcastHashJoinExec =>
      throughInput(plan, keys, partitions)
    case sort: SortExec if !sort.global => throughInput(sort, keys, partitions)
    case join: ShuffledJoin => ofBothSides(join, keys, partitions)
    // What it claims is claimed anew, of fewer keys.
    case claim: PartitionedByEitherKeyExec => repartitioned(claim.child, keys, partitions)
    // In a re-plan: a side of a full outer join that has run.
    case stage: ShuffleQueryStageExec if isBy(keys, partitions, stage) =>
      Some(Repartitioned(stage, Nil, Nil))
    case _ => None
  }

  private def isBy(keys: Seq[Expression], partitions: Int, plan: SparkPlan): Boolean =
    SparkShuffle.isPartitionedAs(HashPartitioning(keys, partitions), plan.outputPartitioning)

  private def isAmong(key: Expression, keys: Seq[Expression]): Boolean =
    keys.exists(_.semanticEquals(key))

  /** Through an operator each of whose rows is made of one row, or one group, of its input. */
  private def below(
      operator: UnaryExecNode,
      keys: Seq[Expression],
      computed: Seq[NamedExpression],
      partitions: Int
  ): Option[Repartitioned] =
    for {
      own <- substituted(keys, computed)
      result <- throughInput(operator, own, partitions)
    } yield result

  /** Through the input that has all the keys, if the operator keeps its rows where they are. */
  private def throughInput(
      operator: SparkPlan,
      keys: Seq[Expression],
      partitions: Int
  ): Option[Repartitioned] = {
    val columns = AttributeSet(keys.flatMap(_.references))
    val inputs = operator.children.zipWithIndex.filter { case (child, _) =>
      columns.subsetOf(child.outputSet)
    }
    inputs.flatMap { case (child, i) =>
      repartitioned(child, keys, partitions).map { input =>
        input.copy(plan = operator.withNewChildren(operator.children.updated(i, input.plan)))
      }
    }.headOption
  }

  /** Both sides of a join, by the join keys that are equal to the keys wanted. */
  private def ofBothSides(
      join: ShuffledJoin,
      keys: Seq[Expression],
      partitions: Int
  ): Option[Repartitioned] = {
    val isFull = join.joinType == FullOuter
    val pairs = join.leftKeys.zip(join.rightKeys)
    val wanted = keys.flatMap { key =>
      pairs.find { case (left, right) =>
        if (isFull) EitherKey.is(key, left, right)
        else left.semanticEquals(key) || right.semanticEquals(key)
      }
    }
    if (wanted.size < keys.size) None
    else
      for {
        left <- repartitioned(join.left, wanted.map(_._1), partitions)
        right <- repartitioned(join.right, wanted.map(_._2), partitions)
        // What is claimed of a full outer join holds for each side by its own keys only.
        if !isFull || isBy(wanted.map(_._1), partitions, left.plan) &&
          isBy(wanted.map(_._2), partitions, right.plan)
      } yield {
        val joined = join.withNewChildren(Seq(left.plan, right.plan))
        Repartitioned(
          if (isFull) PartitionedByEitherKeyExec(wanted.map(_._1), keys, joined) else joined,
          left.shuffles ++ right.shuffles,
          left.leftOut ++ right.leftOut
        )
      }
  }

  /** The keys in terms of what some columns are computed from; none if one is not among these. */
  private def substituted(
      keys: Seq[Expression],
      computed: Seq[NamedExpression]
  ): Option[Seq[Expression]] = {
    val sources = AttributeMap(computed.map {
      case alias @ Alias(child, _) => alias.toAttribute -> child
      case column => column.toAttribute -> column.toAttribute
    })
    val known = keys.flatMap(_.references).forall(sources.contains)
    Option.when(known && computed.forall(_.deterministic))(keys.map(_.transformUp {
      case column: Attribute => sources.getOrElse(column, column)
    }))
  }
}
