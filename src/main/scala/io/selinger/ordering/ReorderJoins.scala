package io.selinger.ordering

import io.selinger.conf.SelingerConf
import io.selinger.core.{GuardedRule, Hook, Reason, RuleDescription, RuleKind}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

/**
 * Joins in the order that costs least, where Spark joins in the order in which a query names its
 * tables: selective joins come before those that multiply rows.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                            else STREAMING_PLAN
 *   2. Spark's own join reordering is not switched on      else SPARK_REORDERS
 *   3. no column of a relation is computed by what can
 *      raise errors                                        else ERRORS_DEPEND_ON_PLAN
 *   4. no two relations have a column of the same id       else REPEATED_COLUMNS
 *   5. no product of two sides, where the user wants
 *      Spark to refuse these                               else CROSS_PRODUCT
 *   6. the rows of every relation can be estimated         else NO_STATISTICS
 *   7. conditions connect all relations                    else CROSS_PRODUCT
 * and where the order found costs less than the order written by more than estimates are worth, or by
 * a quarter of that where it costs no more even if every relation has as many rows as its upper bound
 * says, else ORDER_CHEAP_ENOUGH; ORDER_SHARED where it serves several regions together. Regions of two
 * relations have no order and are passed over.
 *
 * {{{
 *   SELECT … FROM sales JOIN inventory ON item JOIN dates ON sold_date WHERE dates.year = 2000
 *   Before:  Join (sold_date)                   After:  Join (item)
 *            :- Join (item)                             :- Join (sold_date)
 *            :  :- sales                                :  :- sales
 *            :  +- inventory                            :  +- Filter (year) +- dates
 *            +- Filter (year) +- dates                  +- inventory
 * }}}
 *
 * Correct because: joins of every type change places only as the conflict detector allows (see
 * ConflictDetector), which knows which of them keep, fill or drop rows, and whether a condition is
 * ever true of nulls; a conjunct of an inner join may be evaluated as soon as its columns are there.
 * Only conditions that cannot raise errors and always give the same answer take part
 * (RaisedErrors.isSafe). Hinted joins, NOT IN over nullable columns, conditions that may raise, filters
 * of what an outer join returns, and columns computed below one that fills them with nulls bound the
 * region (see JoinRegion). Equalities of inner joins are transitive where nothing must come before
 * them, so each equivalence class gives a join one key, and null keys match nothing under any of them.
 * LEFT JOIN with WHERE key IS NULL moves as the anti join that it is (AntiJoins).
 * IN and EXISTS become joins by Spark's own rule, earlier than it would apply it; what several of them
 * ask for alike stays as it is, so that Spark goes on to compute it once (SharedPlans).
 * What several regions join alike Spark computes once: their orders are compared together, too
 * (SharedOrders).
 * Not done: cross products between relations that conditions connect; an inner join's conjunct as a
 * filter above an outer join.
 * Cost: planning O(pairs) up to ordering.maxPairs; where joins share keys, at rough costs up to 60 times
 * as many; beyond, O(n³) up to a hundred relations, then greedy. Where orders of several regions are changed to share, all are
 * built a second time.
 * May lose when estimates mislead: the gain must exceed a margin that grows with doubt.
 * Runs in injectPreCBORule: once, after predicates have been pushed down and before Spark prunes
 * columns of scans. A second run finds the order written to be the cheapest.
 * Conf: spark.selinger.reorderJoins.enabled.  References: see JoinEnumerator; Selinger et al., 1979.
 *
 * @param sharingMs to compare orders of several regions in any case, even if the budget is used up
 */
final class ReorderJoins(
    session: SparkSession,
    sharingMs: Double = QueryOrders.leastSharingMs
) extends GuardedRule(ReorderJoins, SelingerConf.switches) {

  override protected def rewrite(plan: LogicalPlan): LogicalPlan =
    new QueryOrders(session, sharingMs).ordered(plan)
}

object ReorderJoins
    extends RuleDescription(
      "reorderJoins",
      RuleKind.Logical,
      "Puts joins of every type into the order that costs least."
    ) {

  override def hooks: Seq[Hook] = Seq(
    Hook.PreCbo(
      "Predicates have been pushed down by then, and Spark still prunes the scans of the new order."
    )(new ReorderJoins(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    Reason.SparkReorders,
    Reason.MayRaise,
    Reason.RepeatedColumns,
    Reason.CrossProduct,
    Reason.NoStatistics,
    Reason.JoinFixed,
    Reason.HintObeyed,
    Reason.NullAwareAntiJoin,
    Reason.SharedSubplan,
    Reason.OrderCheaper,
    Reason.OrderCheapEnough,
    Reason.OrderShared
  )

  override def example: String =
    "SELECT * FROM sales JOIN inventory ON sales.item = inventory.item " +
      "JOIN dates ON sales.sold = dates.day WHERE dates.year = 2000"
}
