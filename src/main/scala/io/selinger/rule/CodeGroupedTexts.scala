package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  ExpectedWork,
  GuardedRule,
  Hook,
  Mode,
  NodeText,
  Origin,
  Outcome,
  Precondition,
  Reason,
  Remedy,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.{RelationNames, UnknownRows}
import org.apache.spark.sql.catalyst.analysis.UpdateAttributeNullability
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.{AGGREGATE, PLAN_EXPRESSION}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StringType
import scala.annotation.tailrec

/**
 * Groups rows by numbers in the place of texts, where the texts come from tables that are small beside the
 * rows. Numbers take less time to hash, to compare, to copy and to shuffle.
 *
 * Looks at aggregations by texts that joins have brought from tables of files. Fires when (each line is a
 * Precondition below, in this order):
 *   1. the plan is not a stream                              else STREAMING_PLAN
 *   2. the rows can be estimated                             else NO_STATISTICS
 *   3. the dictionaries of a table have at most
 *      aggregate.maxDictionaryBytes                          else TOO_MANY_TEXTS
 *   4. it saves at least aggregate.codedTextsMinGain         else TEXT_NUMBERS_SAVE_LITTLE
 *   5. no other part of the query computes the same join
 *      for something else                                    else SHARED_SUBPLAN
 * An aggregation without such texts is passed over.
 *
 * {{{
 *   SELECT name, sum(amount) FROM sales JOIN items ON item = id GROUP BY name
 *   Before:  Aggregate [name]              After:  Project [text of code AS name]
 *            +- Join (item = id)                   +- Aggregate [code]
 *               :- sales                              +- Join (item = id)
 *               +- items                                 :- sales
 *                                                        +- Project [id, code of name]
 *                                                           +- items
 * }}}
 *
 * The dictionary of a text is a sorted array of all its values in the table, made by a scalar subquery
 * before the query runs. A code is a place in it.
 * Correct because: different texts have different codes, and null has the code null, also in rows that outer
 * joins and grouping sets make up. So groups are the same. Codes compare as their texts do, by their bytes;
 * texts with collations are left alone. So window functions and sorts above may use the codes, too. The
 * table is one of files, without anything random, so it has the same texts when it is read for the second
 * time; if it has another one after all, since a file was replaced in between, the query fails. Nothing that
 * could raise an error is computed twice (TextTable).
 * Not done: texts of tables below another aggregation, a union or a generator; keys of other types; joins
 * by codes; cached tables, of whose texts it is not known how long they are; aggregations in subqueries; a
 * table whose join prunes partitions, since Spark does that only while both are the same plan. Nothing
 * where spark.sql.execution.reuseSubquery is off.
 * Cost: planning O(operators), and an estimate of each table. May lose where far fewer rows come than
 * estimated, since a dictionary takes two short stages.
 * Runs in experimental.extraOptimizations, last: joins have their order, and rules that compare aggregations
 * have run. A second run finds numbers as keys, and leaves aggregations alone that have any.
 * Conf: spark.selinger.codeGroupedTexts.enabled, spark.selinger.aggregate.codedTextsMinGain,
 * spark.selinger.aggregate.maxDictionaryBytes.
 * References: Binnig, Hildenbrand, Färber, Dictionary-based Order-preserving String Compression for Main
 * Memory Column Stores, SIGMOD 2009; Oracle's vector transformation groups by such codes of dimensions.
 */
final class CodeGroupedTexts(session: SparkSession)
    extends GuardedRule(CodeGroupedTexts, SelingerConf.switches) {
  import CodeGroupedTexts._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // Its aggregations may be needed by the query around it.
    case _: Subquery => plan
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    case _ if !plan.containsPattern(AGGREGATE) => plan
    // Each dictionary would be made in each place anew.
    case _ if !conf.subqueryReuseEnabled => plan
    case _ =>
      val query = new WholeQuery(plan)
      val result = new Aggregations(query, prunedBy(plan)).in(plan, Nil).decoded
      // Codes above an outer join may be null that are not below.
      if (result eq plan) plan else UpdateAttributeNullability(result)
  }

  /** Relations whose rows prune partitions. */
  private def prunedBy(plan: LogicalPlan): Seq[LogicalPlan] =
    plan
      .collectWithSubqueries {
        case operator if operator.containsPattern(PLAN_EXPRESSION) => operator
      }
      .flatMap(_.expressions.flatMap(_.collect { case pruning: DynamicPruningSubquery =>
        pruning.buildQuery.collectLeaves()
      }))
      .flatten

  private final class Aggregations(query: WholeQuery, pruning: Seq[LogicalPlan]) {

    private val cost = new GroupedInputCost(Cluster.of(session))

    /**
     * From below: what is grouped by codes already gives them to aggregations above. Not in subqueries:
     * they would wait for dictionaries, which need threads of the same pool.
     *
     * @param above operators above the plan, the nearest first
     */
    def in(plan: LogicalPlan, above: List[LogicalPlan]): CodedPlan = plan match {
      case aggregate: Aggregate =>
        val child = in(aggregate.child, aggregate :: above).decoded
        val below = if (child eq aggregate.child) aggregate else withChild(aggregate, child)
        decided(aggregate, below, above).getOrElse(CodedPlan.unchanged(below))
      case unary: UnaryNode =>
        val below = in(unary.child, unary :: above)
        val coded = if (below.owesCodes) below.under(unary) else None
        coded.getOrElse(CodedPlan.unchanged(unary.withNewChildren(Seq(below.decoded))))
      case other => CodedPlan.unchanged(other.mapChildren(in(_, other :: above).decoded))
    }

    private def withChild(aggregate: Aggregate, child: LogicalPlan): Aggregate = {
      val same = aggregate.copy(child = child)
      same.copyTagsFrom(aggregate)
      same
    }

    /** @param aggregate over codes, if there are any, where `written` is as the query has it */
    private def decided(
        written: Aggregate,
        aggregate: Aggregate,
        above: List[LogicalPlan]
    ): Option[CodedPlan] =
      if (isLate || CodedPlan.isGrouped(written)) None
      else
        Subject.of(written, aggregate, above, query, cost, pruning).flatMap { subject =>
          val unmet = Precondition.firstUnmet(preconditions, subject)
          val mode = SelingerConf.switches.mode
          val made = Option.when(unmet.isEmpty && mode == Mode.On)(subject.coded)
          val outcome = Outcome.of(unmet, mode)
          val root = made.fold(aggregate: LogicalPlan)(_.plan)
          Decision.record(root, decision(subject, outcome, unmet.getOrElse(Coded)))
          made
        }
  }

  private def decision(subject: Subject, outcome: Outcome, reason: Reason): Decision = {
    val acts = reason == Coded
    val remedy = remedyOf(reason, subject)
    Decision(
      rule = info.id,
      node = NodeText.of(subject.written),
      key = NodeText.key(subject.written),
      outcome = outcome,
      reason = reason,
      chosen = Option.when(acts)(s"numbers for texts of ${subject.tableNames}"),
      stock = Option.when(acts)("the texts"),
      detail = UnknownRows.detail(reason, subject.written),
      evidence = if (isOfCosts(reason)) subject.evidence else Nil,
      setting = remedy.map(_.key),
      settingTo = remedy.flatMap(_.value),
      work = subject.costs.filter(_ => acts).map { case (stock, chosen) =>
        ExpectedWork(stock, chosen)
      }
    )
  }

  private def remedyOf(reason: Reason, subject: Subject): Option[Remedy] = {
    val share = SelingerConf.CODED_TEXTS_MIN_GAIN.key
    reason match {
      case Coded =>
        Some(subject.gain.flatMap(Remedy.above) match {
          case Some(gain) => Remedy(share, Some(gain))
          case None => Remedy(info.switch, Some("false"))
        })
      case SavesLittle => Some(Remedy(share, subject.gain.flatMap(Remedy.below)))
      case TooLarge => Some(Remedy(SelingerConf.MAX_DICTIONARY_BYTES.key, None))
      case _ => None
    }
  }
}

object CodeGroupedTexts
    extends RuleDescription(
      "codeGroupedTexts",
      RuleKind.Logical,
      "Groups rows by numbers in the place of texts that come from small tables."
    ) {

  val Coded: Reason = Reason(
    "TEXTS_GROUPED_BY_NUMBERS",
    "The texts that the query groups by come from small tables. The different texts are collected and " +
      "numbered first, rows are grouped by the numbers, and the texts are put back at the end.",
    "Set spark.selinger.aggregate.codedTextsMinGain higher to do so less often."
  )

  val SavesLittle: Reason = Reason(
    "TEXT_NUMBERS_SAVE_LITTLE",
    "The texts that the query groups by could be numbered first, and rows grouped by the numbers. After the " +
      "time for collecting the texts is subtracted, that would save little or nothing.",
    "Set spark.selinger.aggregate.codedTextsMinGain lower to do so more often."
  )

  val TooLarge: Reason = Reason(
    "TOO_MANY_TEXTS",
    "The different texts that the query groups by take too much memory to be numbered first: each task would " +
      "hold all texts of a table.",
    "Set spark.selinger.aggregate.maxDictionaryBytes higher if tasks have memory for more texts."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.LateBatch(
      "It runs last: other rules look for equal aggregations, and would not recognise one that has numbers."
    )(new CodeGroupedTexts(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    Reason.NoStatistics,
    TooLarge,
    SavesLittle,
    Reason.SharedSubplan,
    Coded
  )

  override def example: String =
    "SELECT i.name, i.color, sum(s.amount) FROM sales s JOIN items i ON s.item = i.id " +
      "GROUP BY i.name, i.color"

  private def always: Boolean = SelingerConf.CODED_TEXTS_MIN_GAIN.value == 0.0

  private def isOfCosts(reason: Reason): Boolean =
    Seq(TooLarge, SavesLittle, Coded).contains(reason)

  /** A table with the texts of it that are grouped by, over the input of the aggregation. */
  private final case class Source(table: TextTable, keys: Seq[Expression])

  /**
   * An aggregation by texts of tables.
   *
   * @param written as the query has it
   * @param aggregate the same, over what has been changed below
   * @param above operators above it, the nearest first
   * @param known texts that have codes already
   */
  private final class Subject(
      val written: Aggregate,
      aggregate: Aggregate,
      above: List[LogicalPlan],
      sources: Seq[Source],
      known: Seq[Expression],
      query: WholeQuery,
      cost: GroupedInputCost
  ) {

    def isStreaming: Boolean = query.isStreaming

    def isShared: Boolean = query.isSharedBeyondAlike(written)

    /** Bytes of the dictionaries of a table. */
    private def bytesOf(source: Source): Option[Double] =
      ExpressionSets
        .all(source.table.texts.map(cost.dictionaryBytes(source.table.alone, _)))
        .map(_.sum)

    private lazy val fitting: Seq[Source] =
      sources.filter(bytesOf(_).exists(_ <= SelingerConf.MAX_DICTIONARY_BYTES.value.toDouble))

    def fits: Boolean = known.nonEmpty || fitting.nonEmpty

    def isEstimated: Boolean =
      (known.nonEmpty || sources.exists(bytesOf(_).isDefined)) && (always || costs.isDefined)

    /** What a table saves, and what it takes. */
    private def savingOf(source: Source): Option[(Double, Double)] =
      for {
        saved <- cost.textKeys(aggregate, source.keys)
        added <- cost.dictionaries(source.table.alone, source.table.texts.size)
      } yield (saved, added)

    private def pays(source: Source): Boolean =
      savingOf(source).exists { case (saved, added) => saved > added }

    private lazy val chosen: Seq[Source] =
      if (always) fitting
      else {
        val paying = fitting.filter(pays)
        // For what is told of it.
        if (paying.isEmpty && known.isEmpty) fitting else paying
      }

    /** Seconds with texts, and with numbers. */
    lazy val costs: Option[(Double, Double)] =
      for {
        whole <- cost.of(aggregate)
        ofTexts <- cost.textKeys(aggregate, known ++ chosen.flatMap(_.keys))
        added <- ExpressionSets.all(
          chosen.map(source => cost.dictionaries(source.table.alone, source.table.texts.size))
        )
        again <- if (isJoinedByTexts(above, textIds)) cost.moved(aggregate) else Some(0.0)
      } yield (whole + ofTexts, whole + added.sum + again)

    private def textIds: Set[ExprId] = {
      val keys = known ++ chosen.flatMap(_.keys)
      aggregate.aggregateExpressions
        .filter(result => ExpressionSets.has(keys, ExpressionSets.unnamed(result)))
        .map(_.exprId)
        .toSet
    }

    /** Whether a join above compares texts: groups by numbers must then be shuffled by the texts. */
    @tailrec
    private def isJoinedByTexts(operators: List[LogicalPlan], texts: Set[ExprId]): Boolean =
      operators match {
        case Project(list, _) :: more =>
          val passed = list.filter(_.references.exists(column => texts.contains(column.exprId)))
          isJoinedByTexts(more, passed.map(_.exprId).toSet)
        case Join(_, _, _, condition, _) :: _ =>
          condition.exists(_.references.exists(column => texts.contains(column.exprId)))
        // What a window saves, that sorts by numbers, was measured to be more than such a shuffle.
        case (_: Aggregate | _: Window) :: _ => false
        case (_: UnaryNode) :: more => isJoinedByTexts(more, texts)
        case _ => false
      }

    def gain: Option[Double] = costs.map { case (stock, coded) => 1.0 - coded / stock }

    def tableNames: String = {
      val tables = chosen.map(source => RelationNames.of(source.table.rows)).distinct.mkString(", ")
      if (known.isEmpty) tables
      else if (tables.isEmpty) "the groups below"
      else s"$tables and of the groups below"
    }

    def coded: CodedPlan = {
      val keys = known ++ chosen.flatMap(_.keys)
      val read = aggregate.groupingExpressions.filterNot(ExpressionSets.has(keys, _)) ++
        aggregate.aggregateExpressions.map(withoutKeys(_, keys))
      CodedPlan.grouped(
        aggregate,
        CodedInput.of(aggregate.child, keys, AttributeSet(read.flatMap(_.references)))
      )
    }

    /** A result without keys but in its functions, which read the texts themselves. */
    private def withoutKeys(result: Expression, keys: Seq[Expression]): Expression = result match {
      case function: AggregateExpression => function
      case key if ExpressionSets.has(keys, key) => Literal(null, key.dataType)
      case other => other.mapChildren(withoutKeys(_, keys))
    }

    def evidence: Seq[Evidence] =
      cost.rowsOf(aggregate.child).map(rows =>
        Evidence("rows to group", rows.value, "rows", rows.origin)
      ).toSeq ++
        ExpressionSets.all(chosen.map(bytesOf)).filter(_.nonEmpty).map(all =>
          Evidence("size of the numbered texts", all.sum, "bytes", Origin.Derived)
        ) ++
        costs.toSeq.flatMap { case (stock, coded) =>
          Seq(
            Evidence("cost with texts", stock, "s", Origin.Derived),
            Evidence("cost with numbers", coded, "s", Origin.Derived)
          )
        }
  }

  private object Subject {

    /** None where no text comes from a table that could be read once more. */
    def of(
        written: Aggregate,
        aggregate: Aggregate,
        above: List[LogicalPlan],
        query: WholeQuery,
        cost: GroupedInputCost,
        pruning: Seq[LogicalPlan]
    ): Option[Subject] = {
      val texts = aggregate.groupingExpressions.filter(isText).distinctBy(_.canonicalized)
      val origins = texts.flatMap(text => CodedInput.origin(aggregate.child, text).map(text -> _))
      val known = origins.collect { case (text, CodedInput.HasCode) => text }
      val ofTables = origins.collect { case (text, CodedInput.OfTable(rows, below)) =>
        (text, rows, below)
      }
      val sources = ofTables.map(_._2).distinctBy(System.identityHashCode).map { rows =>
        val own = ofTables.filter(_._2 eq rows)
        Source(TextTable(rows, ExpressionSets.distinct(own.map(_._3))), own.map(_._1))
      }
      val usable = sources.filterNot { source =>
        source.table.rows.collectLeaves().exists(leaf => pruning.exists(_.sameResult(leaf)))
      }
      Option.when(usable.nonEmpty || known.nonEmpty)(
        new Subject(written, aggregate, above, usable, known, query, cost)
      )
    }

    /** Whether a key is a text whose equal values have the same bytes, and that is ordered by its bytes. */
    private def isText(key: Expression): Boolean = key match {
      case column: Attribute => column.dataType == StringType
      case _ => false
    }
  }

  private val preconditions: Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.isStreaming),
    Precondition(Reason.NoStatistics)(_.isEstimated),
    Precondition(TooLarge)(_.fits),
    Precondition(SavesLittle)(subject =>
      always || subject.gain.exists(_ >= SelingerConf.CODED_TEXTS_MIN_GAIN.value)
    ),
    // Takes longer to find out.
    Precondition(Reason.SharedSubplan)(!_.isShared)
  )
}
