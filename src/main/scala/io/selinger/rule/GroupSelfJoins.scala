package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  ExpectedWork,
  GuardedRule,
  Hook,
  Origin,
  Outcome,
  Precondition,
  Quantity,
  Reason,
  Remedy,
  RootDecisions,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.{RelationNames, UnknownRows}
import org.apache.spark.sql.catalyst.expressions.aggregate.{Max, Min}
import org.apache.spark.sql.catalyst.expressions.{Exists, InSubquery}
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, LeftSemiOrAnti}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.{
  AGGREGATE,
  EXISTS_SUBQUERY,
  IN_SUBQUERY,
  LEFT_SEMI_OR_ANTI_JOIN
}
import org.apache.spark.sql.classic.SparkSession
import scala.collection.mutable.ArrayBuffer

/**
 * Groups a table by a key instead of joining it with itself, where the query only asks which keys have two
 * rows with different values: orders that were shipped from more than one warehouse, say.
 *
 * Looks at subqueries of IN and EXISTS, at right sides of semi, anti and existence joins, and at what DISTINCT,
 * MIN and MAX read: duplicates of rows do not matter there. Among inner joins it looks for two readings of one
 * table with the same filters, joined by equal columns and by `<>`, `<` or `>` between two values of one other
 * column. The query may use nothing of both but the equal columns. Fires when (each line is a Precondition
 * below, in this order):
 *   1. the plan is not a stream                              else STREAMING_PLAN
 *   2. none of the joins has a hint                          else HINT_OBEYED
 *   3. rows of both plans can be estimated                   else NO_STATISTICS
 *   4. grouping saves at least merge.minGain                 else GROUPING_SAVES_LITTLE
 * 3 and 4 do not matter where merge.minGain is 0.
 *
 * {{{
 *   … WHERE id IN (SELECT a.id FROM sales a JOIN sales b ON a.id = b.id AND a.store <> b.store)
 *   Before:  Project [id]                          After:  Project [id]
 *            +- Join (id = id, store <> store)             +- Filter (min < max)
 *               :- sales                                      +- Aggregate [id], [id, min(store), max(store)]
 *               +- sales                                         +- sales
 * }}}
 *
 * Correct because: a key has a pair of rows with different values just when the smallest of its values is less
 * than the largest. Nulls are equal to no key, and different from no value; min and max leave them out, too. Each
 * key comes once instead of once for each pair, which only what ignores duplicates may read. The keys
 * and the value are of types whose equal values have the same bits. Nothing is computed that was not before, but for
 * min and max, which raise no errors.
 * Not done: more than one column that differs, keys or values of floating-point numbers and of collated texts,
 * and expressions in their place; readings whose filters differ; a row that is compared with others by EXISTS,
 * which stays a semi join (see deduplicateSemiJoins); readings with a filter that Spark has made of another
 * join's keys (dynamic partition pruning, runtime filters).
 * Cost: planning O(n²) comparisons for n relations side by side. May lose where another table leaves few of the
 * keys, which would have been looked up before: it is estimated in the order written. And where the query has the
 * self-join elsewhere too, for more than its keys, Spark would have reused it.
 * Runs in injectPreCBORule, before orders of joins are chosen: the two readings may be joined with others first.
 * Plans of IN and EXISTS have been optimized by then; joins between their readings are found in any order. A
 * second run finds no pair.
 * Conf: spark.selinger.groupSelfJoins.enabled, spark.selinger.merge.minGain.
 */
final class GroupSelfJoins(session: SparkSession)
    extends GuardedRule(GroupSelfJoins, SelingerConf.switches) {
  import GroupSelfJoins._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    case _ if !plan.containsAnyPattern(patterns: _*) => plan
    case _ =>
      val search = new Search(plan.isStreaming, new GroupedInputCost(Cluster.of(session)))
      RootDecisions.on(search.in(plan), search.made)
  }

  private final class Search(isStreaming: Boolean, cost: GroupedInputCost) {
    private val decided = ArrayBuffer.empty[Decision]

    def made: Seq[Decision] = decided.toSeq

    def in(plan: LogicalPlan): LogicalPlan = plan.transformDown { case operator =>
      val asked = operator.transformExpressions {
        case in: InSubquery => in.copy(query = in.query.withNewPlan(grouped(in.query.plan)))
        case exists: Exists => exists.withNewPlan(grouped(exists.plan))
      }
      asked match {
        case join: Join if asksForMatch(join) => join.copy(right = grouped(join.right))
        case aggregate: Aggregate if ignoresDuplicates(aggregate) =>
          aggregate.copy(child = grouped(aggregate.child))
        case other => other
      }
    }

    /** A plan whose duplicates do not matter, with groups instead of self-joins. */
    private def grouped(plan: LogicalPlan): LogicalPlan =
      if (isLate) plan
      else KeyedSelfJoin.in(InnerRegion.of(plan)).find(acts(plan, _)).fold(plan) { found =>
        val result = TidyPlan(found.replacement)
        result.copyTagsFrom(plan)
        grouped(result)
      }

    /** Decides, and whether that changes the plan. */
    private def acts(plan: LogicalPlan, found: KeyedSelfJoin): Boolean = {
      val costs = compared(plan, found)
      val declined = Precondition.firstUnmet(preconditions, Subject(found, isStreaming, costs))
      val outcome = Outcome.of(declined, SelingerConf.switches.mode)
      val made = decision(found, outcome, declined, costs)
      decided += made
      // The root may be lost where IN becomes a join.
      if (outcome == Outcome.Changed) Decision.record(found.groups, made)
      outcome == Outcome.Changed
    }

    private def compared(plan: LogicalPlan, found: KeyedSelfJoin): Option[Costs] = {
      val groups = TidyPlan(found.groups)
      for {
        rows <- cost.rowsOf(groups.children.head)
        keys <- cost.rowsOf(groups)
        stock <- cost.computed(TidyPlan(plan))
        chosen <- cost.computed(TidyPlan(found.replacement))
        // Its shuffle, which the plan around it does not count.
        moved <- for (all <- cost.of(groups); own <- cost.computed(groups)) yield all - own
      } yield Costs(rows, keys, stock, chosen + moved)
    }
  }

  private def decision(
      found: KeyedSelfJoin,
      outcome: Outcome,
      declined: Option[Reason],
      costs: Option[Costs]
  ): Decision = {
    val table = RelationNames.ofLeaf(found.one)
    val keys = found.keys.map(_.name).mkString(", ")
    val acts = declined.isEmpty
    val remedy = declined match {
      case None =>
        val above = costs.flatMap(known => Remedy.above(known.gain))
        Some(above.fold(Remedy(info.switch, Some("false")))(gain =>
          Remedy(SelingerConf.MERGE_MIN_GAIN.key, Some(gain))
        ))
      case Some(SavesLittle) =>
        costs.map(known =>
          Remedy(SelingerConf.MERGE_MIN_GAIN.key, Remedy.below(known.gain))
        )
      case _ => None
    }
    Decision(
      rule = info.id,
      node = s"$table joined with itself by $keys",
      key = (found.keys :+ found.value).mkString(" "),
      outcome = outcome,
      reason = declined.getOrElse(Grouped),
      chosen = Option.when(acts)(s"$table grouped by $keys"),
      stock = Option.when(acts)("joined with itself"),
      detail =
        if (acts) Some(s"Values that differ: ${found.value.name}")
        else declined.flatMap(UnknownRows.detail(_, found.one)),
      evidence = costs.toSeq.flatMap(_.evidence),
      setting = remedy.map(_.key),
      settingTo = remedy.flatMap(_.value),
      work = costs.filter(_ => acts).map(known => ExpectedWork(known.stock, known.chosen))
    )
  }
}

object GroupSelfJoins
    extends RuleDescription(
      "groupSelfJoins",
      RuleKind.Logical,
      "Groups a table by a key instead of joining it with itself, where the query only asks which keys have two " +
        "rows with different values."
    ) {

  val Grouped: Reason = Reason(
    "SELF_JOIN_GROUPED",
    "The query joins the table with itself only to find the keys that have two rows with different values in " +
      "one column. So it is read once and grouped by the key, and the groups are kept whose smallest value " +
      "is less than the largest.",
    "Set spark.selinger.merge.minGain higher to do so less often."
  )

  val SavesLittle: Reason = Reason(
    "GROUPING_SAVES_LITTLE",
    "The keys that have two rows with different values could be found by grouping the table instead of joining it " +
      "with itself, but that would not save enough. Explain shows the costs of both.",
    "Set spark.selinger.merge.minGain lower to do so more often."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PreCbo(
      "IN and EXISTS are still expressions then, whose plans can be replaced, and the order of the joins around " +
        "the two readings has not been chosen."
    )(new GroupSelfJoins(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    Reason.HintObeyed,
    Reason.NoStatistics,
    SavesLittle,
    Grouped
  )

  override def example: String =
    "SELECT DISTINCT a.item FROM sales a JOIN sales b ON a.item = b.item AND a.sold <> b.sold"

  private val patterns =
    Seq(AGGREGATE, EXISTS_SUBQUERY, IN_SUBQUERY, LEFT_SEMI_OR_ANTI_JOIN)

  /**
   * @param rows of the table that pass its filters
   * @param keys that they have
   * @param stock seconds that it takes to join the table with itself
   * @param chosen the same to group it
   */
  private final case class Costs(
      rows: Quantity,
      keys: Quantity,
      stock: Double,
      chosen: Double
  ) {
    def gain: Double = if (stock > 0.0) math.max(0.0, 1.0 - chosen / stock) else 0.0

    def evidence: Seq[Evidence] = Seq(
      Evidence("rows to group", rows.value, "rows", rows.origin),
      Evidence("different keys", keys.value, "rows", keys.origin),
      Evidence("cost as written", stock, "s", Origin.Derived),
      Evidence("cost with groups", chosen, "s", Origin.Derived)
    )
  }

  private final case class Subject(
      found: KeyedSelfJoin,
      isStreaming: Boolean,
      costs: Option[Costs]
  )

  private def always: Boolean = SelingerConf.MERGE_MIN_GAIN.value == 0.0

  private val preconditions: Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.isStreaming),
    Precondition(Reason.HintObeyed)(_.found.region.hints.forall(_ == JoinHint.NONE)),
    Precondition(Reason.NoStatistics)(always || _.costs.isDefined),
    Precondition(SavesLittle)(
      always || _.costs.forall(_.gain >= SelingerConf.MERGE_MIN_GAIN.value)
    )
  )

  private def asksForMatch(join: Join): Boolean = join.joinType match {
    case LeftSemiOrAnti(_) | ExistenceJoin(_) => true
    case _ => false
  }

  /** Whether the same results come of rows that are repeated. */
  private def ignoresDuplicates(aggregate: Aggregate): Boolean =
    AggregatePush.functionsOf(aggregate).forall { function =>
      function.isDistinct || (function.aggregateFunction match {
        case _: Min | _: Max => true
        case _ => false
      })
    }
}
