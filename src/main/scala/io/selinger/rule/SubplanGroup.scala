package io.selinger.rule

import io.selinger.core.{PassKey, PlanningPass, Reason}
import io.selinger.cost.Work
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation

/**
 * Subplans that are computed together.
 *
 * @param members each with the places of its columns among those of `plan`
 * @param plan computes all of them
 * @param compared each distinct one by itself with `plan`
 * @param refused why another subplan could have been merged with these and was not
 */
private[rule] final case class SubplanGroup(
    members: Vector[(Aggregate, Seq[Int])],
    plan: Aggregate,
    compared: ComputedTogether = ComputedTogether.unknown,
    refused: Option[Refused] = None
) {

  def subplans: Seq[Aggregate] = members.map(_._1)

  /** Each once: Spark computes equal subplans once, merged or not. */
  lazy val distinct: Seq[Aggregate] = subplans.distinctBy(_.canonicalized)

  /** Together with another subplan, where Spark can merge it with these. */
  def including(subplan: Aggregate): Option[SubplanGroup] =
    members
      .collectFirst {
        case (known, columns) if known.canonicalized == subplan.canonicalized =>
          copy(members = members :+ (subplan -> columns))
      }
      .orElse(SparkMerge.of(plan, subplan).map { merge =>
        copy(members = members :+ (subplan -> merge.columns), plan = merge.plan)
      })
}

private[rule] object SubplanGroup {
  def of(subplan: Aggregate): SubplanGroup =
    SubplanGroup(Vector(subplan -> subplan.output.indices), subplan)
}

/** Why subplans stay apart that could be merged, with the numbers compared. */
private[rule] final case class Refused(reason: Reason, compared: ComputedTogether)

/**
 * Puts subplans into groups. Only those that read the same data are compared with each other. First all
 * that can be merged; that is kept where it clearly saves enough. Else one after the other, each into the
 * first group with which it saves enough.
 *
 * @param workOf a subplan, where its rows can be estimated
 * @param minGain share of the work that merging must save; 0: whatever the work
 * @param isLate whether the time for planning is used up: no more subplans are merged then
 */
private[rule] final class SubplanGroups(
    workOf: Aggregate => Option[Work],
    minGain: Double,
    isLate: () => Boolean
) {
  import SubplanGroups._

  def of(subplans: Seq[Aggregate]): Seq[SubplanGroup] = {
    val data = subplans.map(dataOf)
    data.distinct.flatMap { wanted =>
      ofSameData(subplans.zip(data).collect { case (subplan, `wanted`) => subplan })
    }
  }

  private def ofSameData(subplans: Seq[Aggregate]): Seq[SubplanGroup] =
    grouped(subplans)((_, _) => None).flatMap { possible =>
      if (possible.distinct.size < 2) Seq(possible)
      else {
        val all = priced(possible)
        if (minGain == 0.0 || isClear(all)) Seq(all)
        else grouped(possible.subplans)(objection).map(priced)
      }
    }

  private def grouped(subplans: Seq[Aggregate])(
      objection: (SubplanGroup, SubplanGroup) => Option[Refused]
  ): Seq[SubplanGroup] = subplans.foldLeft(Vector.empty[SubplanGroup]) { (groups, subplan) =>
    if (isLate()) groups :+ SubplanGroup.of(subplan).copy(refused = Some(tooLate))
    else {
      // As far as the first that nothing speaks against.
      val tries = LazyList.from(groups.zipWithIndex).flatMap { case (group, i) =>
        group.including(subplan).map(larger => (i, larger, objection(group, larger)))
      }
      val (refused, others) = tries.span(_._3.isDefined)
      val noted = refused.foldLeft(groups) { case (known, (i, _, why)) =>
        known.updated(i, known(i).copy(refused = why))
      }
      others.headOption match {
        case Some((i, larger, _)) => noted.updated(i, larger)
        case None =>
          noted :+ SubplanGroup.of(subplan).copy(refused = refused.lastOption.flatMap(_._3))
      }
    }
  }

  private def objection(group: SubplanGroup, larger: SubplanGroup): Option[Refused] =
    if (larger.distinct.size == group.distinct.size) None
    else {
      val before = sum(Seq(work(group.plan), work(larger.subplans.last)))
      val after = work(larger.plan)
      val compared = ComputedTogether(before, after)
      if (!compared.isKnown) Some(Refused(Reason.NoStatistics, compared))
      else
        Option.when(!compared.saves(minGain))(Refused(MergeSubplansByCost.CheaperApart, compared))
    }

  private def priced(group: SubplanGroup): SubplanGroup =
    if (group.distinct.size < 2) group
    else
      group.copy(compared =
        ComputedTogether(sum(group.distinct.map(work)), together = work(group.plan))
      )

  /** It saves enough, and it does not hide a member that takes much only because of the others. */
  private def isClear(group: SubplanGroup): Boolean =
    group.compared.saves(minGain) && {
      val largest = group.distinct.flatMap(work).map(_.seconds).max
      group.compared.together.exists(_.seconds <= mostOfLargest * largest)
    }

  private def work(subplan: Aggregate): Option[Work] =
    PlanningPass.current.memo(works, subplan)(workOf(subplan))

  private def sum(works: Seq[Option[Work]]): Option[Work] =
    if (works.forall(_.isDefined)) works.flatten.reduceOption(_ + _) else None
}

private[rule] object SubplanGroups {
  private val works = new PassKey[Option[Work]]("work of subplans")

  private val tooLate = Refused(Reason.BudgetExceeded, ComputedTogether.unknown)

  /** The relations that a subplan reads, and how often, in whatever order. */
  def relationsOf(subplan: Aggregate): Map[LogicalPlan, Int] =
    dataOf(subplan).groupMapReduce(identity)(_ => 1)(_ + _)

  /** Subplans that Spark can merge read the same relations in the same order. */
  def dataOf(subplan: Aggregate): Seq[LogicalPlan] = subplan.collectLeaves().map {
    case scan: DataSourceV2ScanRelation => scan.relation.canonicalized
    case leaf => leaf.canonicalized
  }

  // Subplans that read the same data take about as long together as the largest alone.
  private val mostOfLargest = 2.0
}
