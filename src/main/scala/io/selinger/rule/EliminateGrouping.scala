package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedRule,
  Hook,
  NodeText,
  Outcome,
  Precondition,
  Reason,
  RootDecisions,
  RuleDescription,
  RuleKind
}
import io.selinger.estimate.plans.RelationNames
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.AGGREGATE
import org.apache.spark.sql.classic.SparkSession
import scala.collection.mutable.ArrayBuffer

/**
 * Leaves out DISTINCT, dropDuplicates and GROUP BY where each row is a group of its own, because it is
 * grouped by a proven key. Neither a hash table nor a shuffle is needed then.
 *
 * Looks at aggregations by columns that have almost as many distinct values as there are rows, by the
 * estimates of its tables. Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                              else STREAMING_PLAN
 *   2. no floating-point number is grouped by                else GROUPED_BY_FLOATS
 *   3. each function is known for a group of one row         else FUNCTION_NEEDS_GROUPS
 *   4. nothing that it computes can raise an error           else ERRORS_DEPEND_ON_PLAN
 *   5. it is not computed in several places, above joins or
 *      aggregations                                          else SHARED_SUBPLAN
 *   6. the columns are proven to be a key without nulls      else SINGLE_ROWS_NOT_PROVEN
 *
 * {{{
 *   SELECT DISTINCT id, name FROM items
 *   Before:  Aggregate [id, name]                      After:  Project [id, name]
 *            +- items                                          +- items
 * }}}
 *
 * Correct because: no two rows have the same values of the key, and none has a null there (all nulls
 * would be one group). So there are as many groups as rows, with the values of these. The first,
 * the largest and the smallest value of a group are then that of the row, a count is 1, or 0 of a null, and a
 * sum of integers or decimals is the value in a wider type. Sums of floating-point numbers turn
 * -0.0 into 0.0, and so do groups by them: these stay. Keys are proven by ProvenKeys. Filters and limits above
 * may be applied first then, and what nobody needs is not computed: nothing of it may raise errors.
 * Not done: other functions; functions of all rows without GROUP BY; keys of more than three columns.
 * Cost: planning O(n) for n operators below an aggregation; a column is read as EliminateJoins says. The same
 * rows are read, and nothing else is done. Could lose where rows were spread over more tasks by the shuffle, or
 * where Spark would compute them once for several places (5).
 * Runs in injectPreCBORule after EliminateJoins, which may leave a table alone below an aggregation. A second
 * run finds no aggregation.
 * Conf: spark.selinger.eliminateGrouping.enabled.
 */
final class EliminateGrouping(@annotation.unused session: SparkSession)
    extends GuardedRule(EliminateGrouping, SelingerConf.switches) {
  import EliminateGrouping._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    // Spark still looks for the aggregation at its root.
    case Subquery(_, true) => plan
    case _ if !plan.containsPattern(AGGREGATE) => plan
    // Which rows it takes depends on how these are spread.
    case _ if plan.exists(_.isInstanceOf[Sample]) => plan
    case _ =>
      val made = ArrayBuffer.empty[Decision]
      val query = new WholeQuery(plan)
      val result = plan.transformDown {
        case aggregate: Aggregate if !isLate => without(aggregate, query, made)
      }
      // Columns that only the functions needed go.
      RootDecisions.on(if (result eq plan) plan else TidyPlan(result), made.toSeq)
  }

  private def without(
      aggregate: Aggregate,
      query: WholeQuery,
      made: ArrayBuffer[Decision]
  ): LogicalPlan = {
    val ways = SingleRowGroups.of(aggregate)
    val judged = ways.to(LazyList).map(way =>
      way -> Precondition.firstUnmet(preconditions, Subject(way, query))
    )
    judged.find(_._2.isEmpty).orElse(judged.headOption).fold[LogicalPlan](aggregate) {
      case (groups, declined) =>
        val outcome = Outcome.of(declined, SelingerConf.switches.mode)
        made += decision(groups, outcome, declined)
        groups.rows.filter(_ => outcome == Outcome.Changed).getOrElse(aggregate)
    }
  }

  private def decision(
      groups: SingleRowGroups,
      outcome: Outcome,
      declined: Option[Reason]
  ): Decision = {
    val acts = declined.isEmpty
    Decision(
      rule = info.id,
      node = NodeText.of(groups.aggregate),
      key = NodeText.key(groups.aggregate),
      outcome = outcome,
      reason = declined.getOrElse(NotNeeded),
      chosen =
        Option.when(acts)(s"rows of ${RelationNames.of(groups.aggregate.child)} as they are"),
      stock = Option.when(acts)("grouped"),
      detail = Some(s"Key: ${groups.key.map(_.name).mkString(", ")}"),
      setting = Option.when(acts)(info.switch),
      settingTo = Option.when(acts)("false")
    )
  }
}

object EliminateGrouping
    extends RuleDescription(
      "eliminateGrouping",
      RuleKind.Logical,
      "Leaves out DISTINCT, dropDuplicates and GROUP BY where each row is a group of its own, because it is " +
        "grouped by a proven key."
    ) {

  val NotNeeded: Reason = Reason(
    "GROUPING_NOT_NEEDED",
    "It is proven that no two rows have the same values of the key named below, and none has a null in it. So " +
      "each row is a group of its own, and is returned as it is.",
    "Nothing to do. You may leave DISTINCT or dropDuplicates out of the query, as long as the key holds."
  )

  val NotProven: Reason = Reason(
    "SINGLE_ROWS_NOT_PROVEN",
    "The columns named below may tell all rows apart. If that were proven, rows would not have to be grouped: " +
      "no two rows may have the same values of them, and none may have a null.",
    "Nothing to do if there are duplicates or nulls. Otherwise run selinger.declare_key, after each change of " +
      "the files: it checks the key in a job, whatever the size of the table. Or, if the table is not too " +
      "large to be read while the query is planned, set spark.selinger.keys.maxRows above its rows, and " +
      "spark.selinger.stats.sampling.budgetMs higher if reading them takes longer. Both work for columns of " +
      "Parquet and ORC files, of integers, decimals, dates, timestamps without time zone, and texts without a " +
      "collation."
  )

  val GroupedByFloats: Reason = Reason(
    "GROUPED_BY_FLOATS",
    "The columns named below may tell all rows apart, but the query also groups by a floating-point number. A " +
      "group shows 0.0 where its row has -0.0, so rows are not returned as they are.",
    "Nothing to do."
  )

  val NeedsGroups: Reason = Reason(
    "FUNCTION_NEEDS_GROUPS",
    "The columns named below may tell all rows apart, but the query has a function that Selinger does not " +
      "compute of a single row. It does for first, last, max, min, max_by, min_by, count, for sums of integers " +
      "and decimals, and for averages of integers.",
    "Nothing to do."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PreCbo(
      "Joins that are not needed are left out by then, and the estimates for orders of joins take place without " +
        "the aggregation."
    )(new EliminateGrouping(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    GroupedByFloats,
    NeedsGroups,
    Reason.MayRaise,
    Reason.SharedSubplan,
    NotProven,
    NotNeeded
  )

  override def example: String = "SELECT DISTINCT id, name FROM items"

  private final case class Subject(groups: SingleRowGroups, query: WholeQuery) {

    def mayRaise: Boolean = groups.mayRaise || query.testsUnsafely(groups.aggregate)

    /** Whether Spark would compute rows once for several places, since it shuffles them there. */
    def isShared: Boolean = {
      val costs = groups.aggregate.child.exists {
        case _: Join | _: Aggregate | _: Window => true
        case _ => false
      }
      costs && query.times(groups.aggregate) > 1
    }
  }

  private val preconditions: Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.query.isStreaming),
    Precondition(GroupedByFloats)(_.groups.showsRows),
    Precondition(NeedsGroups)(_.groups.rows.isDefined),
    Precondition(Reason.MayRaise)(!_.mayRaise),
    Precondition(Reason.SharedSubplan)(!_.isShared),
    Precondition(NotProven)(_.groups.isProven)
  )
}
