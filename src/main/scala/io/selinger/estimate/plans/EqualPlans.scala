package io.selinger.estimate.plans

import io.selinger.core.{Decision, PassKey, PlanFact, PlanningPass}
import io.selinger.estimate.PlanEstimate
import io.selinger.stats.relations.{FileRelation, KeyColumns, UsedColumns}
import org.apache.spark.sql.catalyst.expressions.ExprId
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.internal.SQLConf
import scala.collection.mutable

/**
 * Estimates of one query's plans, found again for equal plans: for the parts that a rule has left
 * as they were, for the copies that Spark's rules make, and for the one that its planner works on.
 *
 * An estimate follows from the plan, from what is asked of its leaves (the columns that the whole
 * plan joins, groups or filters by), and from the session's settings. It is kept only where the leaves
 * stay the same while the query runs, and until statistics are cut short by lack of time: they may be
 * better in the next pass. A thread keeps the estimates of the query that it planned last.
 */
private[plans] final class EqualPlans {

  private val results = new PassKey[EqualPlans.Results]("estimates of equal plans", ofQuery = true)
  private val asked = new PassKey[Option[EqualPlans.Asked]]("columns asked for")

  def estimate(plan: LogicalPlan)(compute: => Option[PlanEstimate]): Option[PlanEstimate] =
    askedOf(plan).fold(compute) { columns =>
      val pass = PlanningPass.current
      val known = resultsOf(pass, CurrentSettings.current)
      known.of(plan, columns) match {
        case Some(result) =>
          result.tell(plan)
          result.estimate
        case None =>
          val estimate = compute
          // What was cut short before may be a part of this plan, and have been remembered.
          if (!pass.isCutShort) known.keep(plan, columns, estimate)
          estimate
      }
    }

  private def resultsOf(pass: PlanningPass, settings: Map[String, String]): EqualPlans.Results =
    pass.get(results).filter(_.settings == settings).getOrElse {
      val none = new EqualPlans.Results(settings)
      pass.put(results, none)
      none
    }

  /** `None` where a leaf may change before the query ends. */
  private def askedOf(plan: LogicalPlan): Option[EqualPlans.Asked] =
    PlanningPass.current.memo(asked, plan)(plan match {
      case leaf: LeafNode => Option.when(EqualPlans.lasts(leaf))(EqualPlans.askedOf(leaf))
      case _ =>
        plan.children.foldLeft(Option(EqualPlans.nothing)) { (all, child) =>
          for (others <- all; more <- askedOf(child)) yield others ++ more
        }
    })
}

/** What is set in the session, read once for each plan that a pass works on. */
private object CurrentSettings extends PlanFact[Map[String, String]] {
  override private[selinger] def unknown: Map[String, String] = SQLConf.get.getAllConfs
  override private[selinger] def compute(root: LogicalPlan): Map[String, String] = unknown
}

private object EqualPlans {

  /** Those columns of a plan's leaves of which the whole plan wants statistics. */
  private final case class Asked(keys: Set[ExprId], mentioned: Set[ExprId], used: Set[ExprId]) {
    def ++(other: Asked): Asked =
      Asked(keys ++ other.keys, mentioned ++ other.mentioned, used ++ other.used)
  }

  private val nothing = Asked(Set.empty, Set.empty, Set.empty)

  private def askedOf(leaf: LeafNode): Asked = {
    def those(wanted: Set[ExprId]) = leaf.output.iterator.map(_.exprId).filter(wanted).toSet
    Asked(those(KeyColumns.keys), those(KeyColumns.mentioned), those(UsedColumns.current))
  }

  /** Unlike a query stage, which ends, and a cache, which is filled. */
  private def lasts(leaf: LeafNode): Boolean = leaf match {
    case FileRelation(_) | _: LocalRelation | _: Range | _: OneRowRelation => true
    case _ => false
  }

  /**
   * @param leaves of the plan, in their order
   * @param told what rules on statistics have said of each
   */
  private final case class Result(
      columns: Asked,
      estimate: Option[PlanEstimate],
      told: Seq[Seq[Decision]]
  ) {

    /** Explain reads what was said from the leaves of the plan that is being planned. */
    def tell(plan: LogicalPlan): Unit = {
      val pass = PlanningPass.current
      for ((leaf, decisions) <- plan.collectLeaves().zip(told); made <- decisions)
        pass.inform(leaf, made)
    }
  }

  // A query has a hundred operators, of which rules try some variants; most of them share their parts.
  private val mostPlans = 1000

  private final class Results(val settings: Map[String, String]) {
    private val found = mutable.HashMap.empty[LogicalPlan, Result]

    def of(plan: LogicalPlan, columns: Asked): Option[Result] =
      found.get(plan).filter(_.columns == columns)

    def keep(plan: LogicalPlan, columns: Asked, estimate: Option[PlanEstimate]): Unit = {
      if (found.size >= mostPlans) found.clear()
      val told = plan.collectLeaves().map(PlanningPass.current.informed(_))
      found.update(plan, Result(columns, estimate, told))
    }
  }
}
