package io.selinger.rule

import io.selinger.core.Reason
import io.selinger.cost.Work
import org.apache.spark.sql.catalyst.plans.logical.Aggregate

/**
 * Subplans that are computed together.
 *
 * @param members each with the places of its columns among those of `plan`
 * @param plan computes all of them
 * @param apart what it takes to compute each distinct one by itself; none where nothing is known
 * @param together what `plan` takes
 * @param refused why another subplan could have been merged with these and was not
 */
private[rule] final case class SubplanGroup(
    members: Vector[(Aggregate, Seq[Int])],
    plan: Aggregate,
    apart: Option[Work],
    together: Option[Work],
    refused: Option[Refused] = None
) {
  def subplans: Seq[Aggregate] = members.map(_._1)

  /** Equal subplans are computed once by Spark, merged or not. */
  def distinct: Int = subplans.map(_.canonicalized).distinct.size
}

/** Why two subplans stay apart that could be merged, with the numbers compared. */
private[rule] final case class Refused(reason: Reason, apart: Option[Work], together: Option[Work])

/**
 * Puts subplans into groups, one after the other: each into the first group where it saves enough.
 *
 * @param work of a subplan, where its rows can be estimated
 * @param minGain share of the work that merging must save; 0: whatever the work
 */
private[rule] final class SubplanGroups(work: Aggregate => Option[Work], minGain: Double) {

  def of(subplans: Seq[Aggregate]): Seq[SubplanGroup] =
    subplans.foldLeft(Vector.empty[SubplanGroup])(placed)

  private def placed(groups: Vector[SubplanGroup], subplan: Aggregate): Vector[SubplanGroup] = {
    val tries = groups.iterator.zipWithIndex.flatMap { case (group, i) =>
      withEqual(group, subplan).map(Right(_)).orElse(merged(group, subplan)).map(i -> _)
    }
    val (before, after) = tries.span(_._2.isLeft)
    val refusals = before.collect { case (i, Left(refused)) => i -> refused }.toSeq
    val noted = refusals.foldLeft(groups) { case (known, (i, refused)) =>
      known.updated(i, known(i).copy(refused = Some(refused)))
    }
    after.nextOption() match {
      case Some((i, Right(group))) => noted.updated(i, group)
      case _ =>
        val alone = work(subplan)
        noted :+ SubplanGroup(
          Vector(subplan -> subplan.output.indices),
          subplan,
          alone,
          alone,
          refusals.lastOption.map(_._2)
        )
    }
  }

  private def withEqual(group: SubplanGroup, subplan: Aggregate): Option[SubplanGroup] =
    group.members
      .collectFirst {
        case (known, columns) if known.canonicalized == subplan.canonicalized => columns
      }
      .map(columns => group.copy(members = group.members :+ (subplan -> columns)))

  /** None where Spark cannot merge them. */
  private def merged(
      group: SubplanGroup,
      subplan: Aggregate
  ): Option[Either[Refused, SubplanGroup]] =
    SparkMerge.of(group.plan, subplan).map { merge =>
      val together = work(merge.plan)
      val added = work(subplan)
      def sum(of: Option[Work]) = for (a <- of; b <- added) yield a + b
      val larger = SubplanGroup(
        group.members :+ (subplan -> merge.columns),
        merge.plan,
        sum(group.apart),
        together,
        group.refused
      )
      if (minGain == 0.0) Right(larger)
      else
        (sum(group.together), together) match {
          case (Some(before), Some(after)) =>
            val pays = after.seconds <= before.seconds * (1.0 - minGain)
            Either.cond(
              pays,
              larger,
              Refused(MergeSubplansByCost.CheaperApart, Some(before), Some(after))
            )
          case (before, after) => Left(Refused(Reason.NoStatistics, before, after))
        }
    }
}
