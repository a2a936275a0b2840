package io.selinger.rule

import io.selinger.core.{Origin, PassKey, PlanningPass}
import io.selinger.cost.{JoinCost, JoinSide, PlanWork, Work}
import io.selinger.estimate.plans.{LeafStatistics, RowsRead, TaskGroups}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf

/** What it takes to compute similar aggregations apart, and once for all of their places. */
private[rule] final class SimilarAggregatesWork(cost: JoinCost) {
  import SimilarAggregatesWork._

  def of(plan: LogicalPlan): Option[Work] = PlanningPass.current.memo(works, plan) {
    new PlanWork(cost, LeafStatistics.estimator.estimate, RowsRead.of).of(plan)
  }

  /** Each by itself. What is equal in all of them Spark computes once anyway. */
  def apart(distinct: Seq[Aggregate]): Option[Work] =
    for {
      each <- ExpressionSets.all(distinct.map(of))
      equal <- ExpressionSets.all(equalIn(distinct).map(of))
    } yield {
      val sum = each.reduce(_ + _)
      val saved = equal.map(_.seconds).sum * (distinct.size - 1)
      sum.copy(
        seconds = math.max(each.map(_.seconds).max, sum.seconds - saved),
        rowsRead = sum.rowsRead - equal.map(_.rowsRead).sum * (distinct.size - 1)
      )
    }

  private def equalIn(distinct: Seq[Aggregate]): Seq[LogicalPlan] = {
    def visit(plan: LogicalPlan): Seq[LogicalPlan] = plan match {
      case part: Aggregate if distinct.tail.forall(_.exists(_.sameResult(part))) => Seq(part)
      case other => other.children.flatMap(visit)
    }
    visit(distinct.head.child)
  }

  /**
   * One for all, whose shuffle each place reads. Where its input may be in the right partitions without
   * a shuffle of its own, the places share nothing.
   */
  def together(plan: LogicalPlan, places: Int): Option[Work] = plan match {
    case aggregate: Aggregate =>
      for {
        work <- of(aggregate)
        input <- LeafStatistics.estimator.estimate(aggregate.child)
        groups <- LeafStatistics.estimator.estimate(aggregate)
      } yield
        if (isPartitioned(aggregate.child, aggregate.groupingExpressions)) {
          work.copy(work.seconds * places, work.rowsRead * places)
        } else {
          // Partial groups of all tasks; where their number is assumed, as many as rows.
          val read =
            if (groups.rows.origin == Origin.Default) input.rows
            else
              TaskGroups
                .of(aggregate.child, input, cost.slots)
                .inAllTasks(groups.rows, aggregate.groupingExpressions)
          val side =
            JoinSide(read.value, groups.rowBytes(aggregate.output), shuffleExists = true)
          val again = cost.read(side) + cost.grouped(side.rows) + cost.evaluated(side.rows)
          work.plus(again * (places - 1))
        }
    case _ => None
  }

  /** What it takes besides to merge groups into each of some coarser aggregations. */
  def merging(coarse: Int, groups: LogicalPlan): Double =
    LeafStatistics.estimator.estimate(groups).fold(0.0) { known =>
      coarse * (cost.stage + cost.grouped(known.rows.value))
    }

  /** Whether rows may have been shuffled by some of `keys` already, so that they are not shuffled again. */
  private def isPartitioned(plan: LogicalPlan, keys: Seq[Expression]): Boolean = {
    def areAmong(some: Seq[Expression]) =
      some.nonEmpty && ExpressionSets.hasAll(keys, some)
    plan match {
      case Window(_, partitionSpec, _, child, _) =>
        areAmong(partitionSpec) || isPartitioned(child, keys)
      case ExtractEquiJoinKeys(_, leftKeys, rightKeys, _, _, left, right, _) =>
        (areAmong(leftKeys) || areAmong(rightKeys)) && !isBroadcast(left) && !isBroadcast(right) ||
        isPartitioned(left, keys) || isPartitioned(right, keys)
      case LogicalRelation(relation: HadoopFsRelation, output, _, _, _) =>
        relation.bucketSpec.exists { buckets =>
          areAmong(buckets.bucketColumnNames.flatMap(name => output.find(_.name == name)))
        }
      case Project(list, child) => isPartitioned(child, keys ++ keys.flatMap(originOf(list, _)))
      case Filter(_, child) => isPartitioned(child, keys)
      case _ => false
    }
  }

  private def originOf(list: Seq[Expression], key: Expression): Option[Expression] =
    key match {
      case column: Attribute =>
        list.collectFirst {
          case named: NamedExpression if named.exprId == column.exprId =>
            ExpressionSets.unnamed(named)
        }
      case _ => None
    }

  /** Whether a side of a join is surely small enough. */
  private def isBroadcast(side: LogicalPlan): Boolean =
    LeafStatistics.estimator.estimate(side).exists { known =>
      val limit = SQLConf.get.autoBroadcastJoinThreshold
      known.rows.value * known.rowBytes(side.output) <= limit
    }
}

private object SimilarAggregatesWork {
  private val works = new PassKey[Option[Work]]("work of similar aggregations")
}
