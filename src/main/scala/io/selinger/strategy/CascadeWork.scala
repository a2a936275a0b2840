package io.selinger.strategy

import io.selinger.core.{Evidence, Origin, Quantity}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.{LeafStatistics, TaskGroups}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}

/**
 * The rows that hash tables read: with a copy of each row for each grouping set, and when each set is
 * computed from a finer one.
 *
 * @param rows of the source; none if unknown
 * @param finest groups of all keys, those of all tasks together
 * @param copied rows read by Spark's plan
 * @param cascaded rows read by the cascade, and by the aggregation below it
 * @param sources for each grouping set the one with the fewest groups that it can be computed from; -1:
 *   the groups of all keys
 */
final case class CascadeWork(
    rows: Option[Quantity],
    finest: Quantity,
    copied: Double,
    cascaded: Double,
    sources: Seq[Int]
) {
  def known: Boolean = rows.isDefined

  /** The share of the rows that the cascade does not read; never negative. */
  def gain: Double = if (copied > 0.0) math.max(0.0, 1.0 - cascaded / copied) else 0.0

  def evidence: Seq[Evidence] = rows.toSeq.flatMap { input =>
    val origin = input.origin.worse(finest.origin).worse(Origin.Derived)
    Seq(
      Evidence("input", input.value, "rows", input.origin),
      Evidence("finest groups of all tasks", finest.value, "rows", origin),
      Evidence("aggregated rows with copies", copied, "rows", input.origin),
      Evidence("aggregated rows with the cascade", cascaded, "rows", origin)
    )
  }
}

object CascadeWork {

  def of(sets: GroupingSetAggregate, cluster: Cluster): CascadeWork = {
    val input = LeafStatistics.estimator.estimate(sets.source)
    val tasks = input.map(TaskGroups.of(sets.source, _, cluster.slots))
    def groupsOf(keys: Seq[Attribute]) = tasks
      .flatMap(read => read.groupsBy(keys).map(read.inAllTasks(_, keys)))
      // The more keys, the more groups.
      .getOrElse(Quantity(keys.size.toDouble, Origin.Default))
    val groups = sets.kept.map(kept => groupsOf(kept.toSeq))
    val finest = groupsOf(sets.keys)
    val sources = sets.kept.indices.map { set =>
      val finer = sets.kept.indices.filter(isFiner(sets, _, set))
      // By keys where the numbers are equal: a set with fewer is never worse.
      (-1 +: finer).minBy(other =>
        if (other < 0) (finest.value, sets.keys.size)
        else (groups(other).value, sets.kept(other).size)
      )
    }
    val read = sets.kept.indices.map { set =>
      val (from, size) =
        if (sources(set) < 0) (AttributeSet(sets.keys), finest.value)
        else (sets.kept(sources(set)), groups(sources(set)).value)
      // It has the groups of its source, and no table.
      if (from == sets.kept(set)) 0.0 else size
    }
    val rows = input.map(_.rows)
    val count = rows.fold(0.0)(_.value)
    CascadeWork(rows, finest, count * sets.projections.size, count + read.sum, sources)
  }

  /** Whether `set` can be computed from `other`; of sets with the same keys, from the first. */
  private def isFiner(sets: GroupingSetAggregate, other: Int, set: Int): Boolean = {
    val (fine, coarse) = (sets.kept(other), sets.kept(set))
    coarse.subsetOf(fine) && (other < set || !fine.subsetOf(coarse)) && other != set
  }
}
