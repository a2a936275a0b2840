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
import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import scala.collection.mutable.ArrayBuffer

/**
 * Leaves out joins whose result the query does not need: a join by a key of a table of which it uses no
 * column neither repeats rows nor, as an outer join, removes any. Views that join all dimensions of a fact
 * table, of which a query uses a few, are the usual case.
 *
 * Looks at outer joins of which the query uses only the side whose rows all stay, and at inner and semi
 * joins with all rows of a Parquet or ORC table of which it uses no column but the key. Fires when (each
 * line is a Precondition below, in this order):
 *   1. the plan is not a stream                              else STREAMING_PLAN
 *   2. the join has no hint                                  else HINT_OBEYED
 *   3. nothing that is left out can raise an error           else ERRORS_DEPEND_ON_PLAN
 *   4. of an outer or inner join: each row is proven to have
 *      one match at most                                     else KEY_NOT_PROVEN
 *   5. of an inner or semi join: each row whose key is not
 *      null is proven to have a match                        else MATCH_NOT_PROVEN
 *   6. no other part of the query has the join and needs it  else SHARED_SUBPLAN
 *
 * {{{
 *   SELECT s.id FROM sales s LEFT JOIN items i ON s.item = i.id
 *   Before:  Project [id]                              After:  Project [id]
 *            +- Join LeftOuter (item = id)                     +- sales
 *               :- sales
 *               +- items
 * }}}
 *
 * Correct because: an outer join returns exactly one row for a row with at most one match, whatever else
 * its condition says, and an inner join does so for a row with exactly one. Keys are proven (ProvenKeys)
 * by GROUP BY and DISTINCT, and through filters and joins; or by reading the columns of a table in full,
 * in all of its files, now or in a job before (DeclaredKey). Rows whose key is null match nothing, however many they are: an inner join becomes
 * a filter that drops them. That each row has a match is proven where the table's key has all whole
 * numbers of a range, and the footers of the other side do not leave it. Equal floating-point numbers and
 * collated texts may be stored differently, and what a timestamp is depends on the session: these are
 * proven by GROUP BY only. Columns of either side that only the join needed are not computed any more;
 * they must not raise errors.
 * Not done: inner joins with other conditions, or with tables that are filtered; full outer joins; joins
 * below TABLESAMPLE; tables of Spark's second data source interface, which is not planned yet.
 * Cost: planning O(n × depth) for n operators; for each such join a column of the table is read, once for
 * each version of its files (at most a million values by default), within the time for
 * samples. Could lose where two parts of a query have the same join, which Spark would compute once, and
 * only one of them uses its columns: precondition 6; of a subquery only its own parts are seen.
 * Runs in injectPreCBORule, when unused columns have been pruned, and before orders of joins are chosen.
 * It repeats itself until it finds no such join, so a second run finds none.
 * Conf: spark.selinger.eliminateJoins.enabled, spark.selinger.keys.maxRows.
 */
final class EliminateJoins(@annotation.unused session: SparkSession)
    extends GuardedRule(EliminateJoins, SelingerConf.switches) {
  import EliminateJoins._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    case _ if !plan.exists(_.isInstanceOf[Join]) => plan
    case _ =>
      val (result, made) = repeated(plan)
      RootDecisions.on(result, made)
  }

  /** Leaves out joins until there are none; each time, columns that only these needed are pruned. */
  private def repeated(plan: LogicalPlan): (LogicalPlan, Seq[Decision]) = {
    val (left, made) = once(plan, Set.empty)
    val changes = made.filter(_.outcome == Outcome.Changed)
    if (changes.isEmpty) (plan, made)
    else {
      val (result, others) = repeated(TidyPlan(left))
      (result, changes ++ others)
    }
  }

  /**
   * Leaves out joins, but for those that stay in another part of the query: it may need the same rows.
   *
   * @param staying what joins compare that stay
   */
  private def once(plan: LogicalPlan, staying: Set[Compared]): (LogicalPlan, Seq[Decision]) = {
    val elimination = new Elimination(plan.isStreaming, staying)
    val left = elimination.within(plan)
    val removed = elimination.removed
    def stays(join: Join) = !removed.exists(_ eq join)
    lazy val others =
      plan.collectWithSubqueries {
        case join: Join if stays(join) => Compared.by(join)
      }.flatten.toSet
    val found = removed.flatMap(Compared.by).filter(others).toSet
    if (found.isEmpty) (left, elimination.made) else once(plan, staying ++ found)
  }

  private final class Elimination(isStreaming: Boolean, staying: Set[Compared]) {
    private val decided = ArrayBuffer.empty[Decision]
    private val leftOut = ArrayBuffer.empty[Join]

    def made: Seq[Decision] = decided.toSeq
    def removed: Seq[Join] = leftOut.toSeq

    /** The plan without unneeded joins; it has the needed columns, and perhaps fewer others. */
    def below(plan: LogicalPlan, needed: AttributeSet): LogicalPlan = plan match {
      case join: Join =>
        without(join, needed) match {
          case Some(rows) => below(rows, needed)
          case None => join.mapChildren(below(_, needed ++ join.references))
        }
      // What only a join above needed that is left out.
      case Project(list, child) =>
        val used = list.filter(needed.contains)
        val rows = below(child, AttributeSet(used.flatMap(_.references)))
        if (used.size == list.size) plan.withNewChildren(Seq(rows)) else Project(used, rows)
      case _: Aggregate | _: Expand => plan.mapChildren(below(_, plan.references))
      case _: Filter | _: Sort | _: GlobalLimit | _: LocalLimit | _: Offset |
          _: RepartitionOperation | _: Window | _: WindowGroupLimit =>
        plan.mapChildren(below(_, needed ++ plan.references))
      // Which rows it takes depends on how these are spread.
      case _: Sample => plan
      case _ => plan.mapChildren(within)
    }

    /**
     * The plan with all its columns in their order. Where nothing has changed, they are not looked at: a
     * column that Spark takes for unresolved has no id.
     */
    def within(plan: LogicalPlan): LogicalPlan = {
      val rows = below(plan, plan.outputSet)
      if ((rows eq plan) || rows.output.map(_.exprId) == plan.output.map(_.exprId)) rows
      else Project(plan.output, rows)
    }

    private def without(join: Join, needed: AttributeSet): Option[LogicalPlan] =
      if (isLate) None
      else {
        val ways = UnneededJoin.of(join, needed).map { way =>
          way -> Precondition.firstUnmet(preconditions, Subject(way, isStreaming, staying))
        }
        ways.find(_._2.isEmpty).orElse(ways.headOption).flatMap { case (way, declined) =>
          decided += decision(way, declined)
          Option.when(declined.isEmpty) {
            leftOut += join
            way.replacement
          }
        }
      }
  }

  private def decision(found: UnneededJoin, declined: Option[Reason]): Decision = {
    val acts = declined.isEmpty
    Decision(
      rule = info.id,
      node = NodeText.of(found.join),
      key = NodeText.key(found.join),
      outcome = Outcome.of(declined, SelingerConf.switches.mode),
      reason = declined.getOrElse(NotNeeded),
      chosen = Option.when(acts)(s"${RelationNames.of(found.removed)} left out"),
      stock = Option.when(acts)("joined"),
      setting = Option.when(acts)(info.switch),
      settingTo = Option.when(acts)("false"),
      title = Some(RelationNames.titleOf(found.join))
    )
  }
}

object EliminateJoins
    extends RuleDescription(
      "eliminateJoins",
      RuleKind.Logical,
      "Leaves out joins with tables of which a query uses no column, where that changes no row."
    ) {

  val NotNeeded: Reason = Reason(
    "JOIN_NOT_NEEDED",
    "The query uses no column of this table, except perhaps the key that it is joined by. It is proven " +
      "that the join repeats no row, and removes none but those with a null key, which a filter still " +
      "removes. So the table need not be joined.",
    "Nothing to do."
  )

  val KeyNotProven: Reason = Reason(
    "KEY_NOT_PROVEN",
    "The query uses no column of this table, so the join could be left out if it repeated no row. But " +
      "it is not proven that the columns that the table is joined by have no duplicates.",
    "Nothing to do if there are duplicates. Otherwise run selinger.declare_key, after each change of the " +
      "files: it checks the key in a job, whatever the size of the table. Or, if the table is not too large to be read while the query is " +
      "planned, set spark.selinger.keys.maxRows above its rows, and " +
      "spark.selinger.stats.sampling.budgetMs higher if reading them takes longer. Both work for Parquet " +
      "and ORC files that are read by their paths or from a table without partitions, and for keys of " +
      "integers, decimals, dates, timestamps without time zone, and texts without a collation."
  )

  val MatchNotProven: Reason = Reason(
    "MATCH_NOT_PROVEN",
    "The query uses no column of this table, so the join could be left out if it removed no row. But it " +
      "is not proven that each row has a match. It is proven only for keys of integers, if the " +
      "table has all numbers from its smallest to its largest key, and if the footers of the other side " +
      "show that its values lie between these.",
    "Use LEFT JOIN if rows without a match shall stay, or leave the table out of the query. If the table has " +
      "all these numbers, and more rows than spark.selinger.keys.maxRows, run selinger.declare_key."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PreCbo(
      "Spark has pruned columns by then, so it shows which tables are used, and Selinger has not yet " +
        "chosen orders of joins."
    )(new EliminateJoins(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    Reason.HintObeyed,
    Reason.MayRaise,
    KeyNotProven,
    MatchNotProven,
    Reason.SharedSubplan,
    NotNeeded
  )

  override def example: String = "SELECT s.amount FROM sales s LEFT JOIN items i ON s.item = i.id"

  /** @param staying what joins compare that stay in the query */
  private final case class Subject(
      found: UnneededJoin,
      isStreaming: Boolean,
      staying: Set[Compared]
  )

  private val preconditions: Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.isStreaming),
    Precondition(Reason.HintObeyed)(_.found.join.hint == JoinHint.NONE),
    Precondition(Reason.MayRaise)(!_.found.mayRaise),
    Precondition(KeyNotProven)(_.found.findsOneAtMost),
    Precondition(MatchNotProven)(_.found.losesNone),
    Precondition(Reason.SharedSubplan)(subject =>
      subject.staying.isEmpty || !Compared.by(subject.found.join).exists(subject.staying)
    )
  )
}
