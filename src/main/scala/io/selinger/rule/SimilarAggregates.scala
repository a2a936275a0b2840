package io.selinger.rule

import org.apache.spark.sql.catalyst.expressions.{Alias, And}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, LogicalPlan, Project}

/**
 * Aggregations in several places of a query that are computed once.
 *
 * @param aggregates in all of these places, some of which may be equal
 * @param cover returns the rows of all of them
 * @param leader the one of them in whose join order `cover` is
 * @param compared each distinct one by itself with `cover`, whose result is read in each place
 * @param refused why this aggregation was not shared with a similar one
 */
private[rule] final case class SimilarAggregates(
    aggregates: Vector[Aggregate],
    cover: CoveringPlan,
    leader: Int = 0,
    compared: ComputedTogether = ComputedTogether.unknown,
    refused: Option[Refused] = None
) {

  /** Each once: Spark computes equal ones once anyway. */
  lazy val distinct: Seq[Aggregate] = aggregates.distinctBy(_.canonicalized)

  /**
   * With one more, where a plan can return its rows and those of the others: in the join order of
   * `leader`, and in that of the new one if it is new and joins in another order.
   */
  def including(aggregate: Aggregate): Seq[SimilarAggregates] = {
    val all = aggregates :+ aggregate
    val isNew = !distinct.exists(_.canonicalized == aggregate.canonicalized)
    val leaders =
      if (isNew) Seq(leader, all.size - 1).distinctBy(i => SubplanGroups.dataOf(all(i)))
      else Seq(leader)
    leaders.flatMap { i =>
      CoveringPlan.of(all, i).map(cover => copy(aggregates = all, cover = cover, leader = i))
    }
  }

  /** What takes the place of each: its rows of an equal plan, with the columns that it had. */
  def replaced: Option[Seq[LogicalPlan]] =
    ExpressionSets.all(aggregates.indices.map { i =>
      cover.copied.map { copy =>
        val rows = copy.owed(i).reduceOption(And(_, _)).fold(copy.plan)(Filter(_, copy.plan))
        Project(
          // Alike in all places, so that what equal places have above stays equal.
          aggregates(i).output.map { column =>
            Alias(copy.columns(i)(column), column.name)(
              column.exprId,
              explicitMetadata = Some(column.metadata)
            )
          },
          rows
        )
      }
    })
}

private[rule] object SimilarAggregates {
  def of(aggregate: Aggregate): Option[SimilarAggregates] =
    CoveringPlan.of(Seq(aggregate)).map(SimilarAggregates(Vector(aggregate), _))
}
