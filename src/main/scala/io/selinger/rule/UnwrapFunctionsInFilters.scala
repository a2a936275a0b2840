package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedRule,
  Hook,
  Mode,
  NodeText,
  Outcome,
  Precondition,
  RaisedErrors,
  Reason,
  RootDecisions,
  RuleDescription,
  RuleKind
}
import io.selinger.estimate.plans.RelationNames
import io.selinger.estimate.predicates.Selectivity
import java.util.Locale
import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, RowLevelWrite}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, FileTable}
import org.apache.spark.sql.internal.SQLConf

/**
 * Turns predicates on functions of a column into ranges of the column, so that Spark pushes them into files
 * and skips row groups and stripes, and statistics of the column say how many rows are left.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                             else STREAMING_PLAN
 *   2. no condition before it in the filter can raise       else ERRORS_DEPEND_ON_PLAN
 * and, for each predicate:
 *   3. its arithmetic stays in the type for all values      else ARITHMETIC_MAY_OVERFLOW
 *   4. the clock is not changed at its boundaries           else CLOCK_CHANGE_AT_BOUNDARY
 *
 * {{{
 *   SELECT sum(pages) FROM visits WHERE year(day) = 2024 AND month(day) = 3
 *   Before:  Filter year(day) = 2024 AND month(day) = 3
 *            +- visits, reads all row groups
 *   After:   Filter day >= 2024-03-01 AND day < 2024-04-01
 *            +- visits, reads row groups that have such days
 * }}}
 *
 * These are understood, compared by =, <=>, <, <=, >, >=, <> or IN with literals, below AND, OR and NOT:
 *   - year(x) of dates and timestamps; below AND with one year also quarter(x) and month(x), and with one
 *     month also day(x)
 *   - trunc(d, unit), date_trunc(unit, t), cast(t AS date) in IN and <=> (Spark does the others)
 *   - date_add, date_sub, datediff with a number; sums, differences and products of a whole number and a
 *     literal
 *   - substr(s, 1, n), left(s, n)
 *
 * Correct because: the range has just the values for which the predicate is true (see ColumnPreimage,
 * LocalTimes, PrefixPredicate), and it is null just where the column is, as the predicate was. Neither
 * raises an error. Time zones are those that the analyser has put into the expressions. Rows that are
 * skipped in files do not reach the conditions of the filter: those before this one must not raise, those
 * after it have never seen these rows.
 * Not done: month(d) = 3 without a year, more ranges than 16, date_format, texts of dates, timestamps plus
 * intervals, decimals, floating-point numbers, products by 0 or less. Sums of dates beyond year 9999, and
 * boundaries before the Gregorian calendar (timestamps: before 1900), where legacy files have other days.
 * Columns of partitions, which Spark tests by any predicate. Sources other than files and cached tables:
 * they may compare by rules of their own. Conditions of joins and filters above other operators: what
 * can be pushed to a scan is a filter on top of it by then, and the rest would skip nothing. Files of
 * texts, whose readers leave out rows before they look for errors in other columns; Parquet under the rebase
 * mode EXCEPTION, which wants to find old days. Delta chooses its files in the same hook, so it sees the
 * ranges only where Selinger stands before it in spark.sql.extensions.
 * Cost: planning O(size of the conditions). Arithmetic and date_trunc read footers, which estimates
 * read, too. A range is not dearer to evaluate than the function.
 * Runs in injectPreCBORule: predicates have been pushed down, merged and inferred for other columns by
 * then, so that a year and its month are seen together, and Spark has not yet pushed filters into scans.
 * Before all other rules of that hook, whose estimates use the ranges. A second run finds no function.
 * Conf: spark.selinger.unwrapFunctionsInFilters.enabled.  References: UnwrapYearInComparison,
 * UnwrapDateTruncInComparison in Trino; UnwrapCastInBinaryComparison in Spark.
 */
final class UnwrapFunctionsInFilters
    extends GuardedRule(UnwrapFunctionsInFilters, SelingerConf.switches) {
  import UnwrapFunctionsInFilters._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    case _ =>
      val changes = plan.collect { case filter: Filter if concerns(filter) => decide(filter, plan) }
      val changed = changes.filter(change => change.condition ne change.filter.condition)
      val result =
        if (changed.isEmpty || SelingerConf.switches.mode != Mode.On) plan
        else
          plan.transformDown { case filter: Filter =>
            changed.find(_.filter eq filter).fold(filter)(change =>
              filter.copy(condition = change.condition)
            )
          }
      // A filter is planned as a part of its scan.
      RootDecisions.on(result, changes.flatMap(_.decisions))
  }

  private def decide(filter: Filter, plan: LogicalPlan): Change = {
    val conjuncts = Selectivity.conjuncts(filter.condition)
    val unwrapping = new Unwrapping(filter.child)
    def unwrapped(these: Seq[Expression]) = unwrapping.conjuncts(these, Map.empty)
    // What can raise an error must get the rows that it gets without the rule.
    val safe = unwrapped(conjuncts).takeWhile(one => isSafe(one.after)).size
    // Conditions after that one must not be moved before it.
    val (first, rest) = (unwrapped(conjuncts.take(safe)), unwrapped(conjuncts.drop(safe)))
    def declined(these: Seq[Unwrapped], isFirst: Boolean) =
      Precondition
        .firstUnmet(preconditions, Subject(plan.isStreaming, isFirst))
        .filter(_ => these.exists(_.isChanged))
    val refusedFirst = declined(first, isFirst = true)
    val kept = if (refusedFirst.isEmpty) first else first.map(_.undone)
    val condition =
      if (!kept.exists(_.isChanged)) filter.condition
      else (kept.flatMap(_.result) ++ rest.map(_.before)).reduceLeft(And(_, _))
    val unchanged = Seq(
      refusedFirst.map(_ -> first),
      declined(rest, isFirst = false).map(_ -> rest)
    ).flatten.map { case (reason, these) =>
      decision(filter, Some(reason), these.filter(_.isChanged))
    }
    val refused = (first ++ rest).flatMap(one => one.refused.map(_ -> one)).groupBy(_._1).toSeq
      .sortBy(_._1.code)
      .map { case (reason, these) => decision(filter, Some(reason), these.map(_._2)) }
    val made =
      Option.when(kept.exists(_.isChanged))(decision(filter, None, kept.filter(_.isChanged)))
    Change(filter, condition, made.toSeq ++ unchanged ++ refused)
  }

  private def decision(
      filter: Filter,
      declined: Option[Reason],
      these: Seq[Unwrapped]
  ): Decision = {
    val acts = declined.isEmpty
    val columns = these.flatMap(_.before.references).map(_.name).distinct.mkString(", ")
    def text(conditions: Seq[Expression]) =
      NodeText.shorten(conditions.map(NodeText.readable).mkString(" AND "))
    val before = text(these.map(_.before))
    Decision(
      rule = info.id,
      node = NodeText.of(filter),
      key = s"${NodeText.key(filter)} ${filter.condition} ${declined.fold("")(_.code)}",
      outcome = Outcome.of(declined, SelingerConf.switches.mode),
      reason = declined.getOrElse(FunctionUnwrapped),
      chosen = Option.when(acts)(s"ranges of $columns"),
      stock = Option.when(acts)(s"functions of $columns"),
      // Literals are values of the query: only where explain shows them as well.
      detail = Some(if (acts) s"$before became ${text(these.flatMap(_.result))}" else before),
      setting = Option.when(acts)(info.switch),
      settingTo = Option.when(acts)("false"),
      title = Some(s"Filter of ${RelationNames.of(filter.child)}")
    )
  }
}

object UnwrapFunctionsInFilters
    extends RuleDescription(
      "unwrapFunctionsInFilters",
      RuleKind.Logical,
      "Compares a column with a range instead of a function of it (year(d) = 2000), so that row groups are skipped."
    ) {

  val FunctionUnwrapped: Reason = Reason(
    "FUNCTION_UNWRAPPED",
    "This filter compares a function of a column. It keeps just the rows whose column is in a range, and " +
      "Spark can push a range into files, and skip the parts of them that have no such values. Only by " +
      "timestamps of the type INT96, which Spark writes to Parquet unless " +
      "spark.sql.parquet.outputTimestampType says otherwise, nothing is skipped.",
    "Nothing to do."
  )

  val MayOverflow: Reason = Reason(
    "ARITHMETIC_MAY_OVERFLOW",
    "This filter computes with a column, or cuts times down to a unit. For values at the ends of the type " +
      "that fails or wraps around, and nothing proves that the column has none. For such values a range " +
      "would keep other rows.",
    "Compare the column itself. For Parquet and ORC files, footers can prove what values cannot exceed " +
      "(not for timestamps of the type INT96): keep spark.selinger.readFooterStatistics.enabled on."
  )

  val ClockChange: Reason = Reason(
    "CLOCK_CHANGE_AT_BOUNDARY",
    "In the time zone of the session, the clock is changed near a boundary of this predicate. So the rows " +
      "that it keeps may not be one continuous range of timestamps.",
    "Compare the timestamp itself with the boundaries that you want."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PreCbo(
      "Predicates have been pushed down and merged by then, and Spark has not yet pushed them into scans."
    )(_ => new UnwrapFunctionsInFilters)
  )

  override def reasons: Seq[Reason] =
    Seq(Reason.StreamingPlan, Reason.MayRaise, MayOverflow, ClockChange, FunctionUnwrapped)

  override def example: String =
    "SELECT sum(pages) FROM visits WHERE year(day) = 2024 AND month(day) = 3"

  /** What becomes of a filter. */
  private final case class Change(
      filter: Filter,
      condition: Expression,
      decisions: Seq[Decision]
  )

  /** @param isFirst whether all conditions before are safe */
  private final case class Subject(isStreaming: Boolean, isFirst: Boolean)

  private val preconditions: Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.isStreaming),
    Precondition(Reason.MayRaise)(_.isFirst)
  )

  private def concerns(filter: Filter): Boolean = filter.condition.exists { value =>
    ColumnPreimage.isFunction(value) || PrefixPredicate.isFunction(value)
  }

  /** Subqueries are computed before the filter is, or become joins above it. */
  private def isSafe(condition: Expression): Boolean = {
    val lookedUp = condition.collect { case in: InSubquery => in.values }.flatten
    lookedUp.forall(RaisedErrors.isSafe) && RaisedErrors.isSafe(condition.transform {
      case _: InSubquery => Literal.TrueLiteral
      case subquery: PlanExpression[_] => Literal(null, subquery.dataType)
    })
  }

  /**
   * A condition of a conjunction before and after.
   *
   * @param result nothing, where another condition of the conjunction says as much
   */
  private[rule] final case class Unwrapped(
      before: Expression,
      result: Option[Expression],
      refused: Seq[Reason] = Nil
  ) {
    def isChanged: Boolean = !result.exists(_ eq before)

    def after: Expression = result.getOrElse(Literal.TrueLiteral)

    def undone: Unwrapped = copy(result = Some(before))
  }

  /** @param plan whose rows are filtered */
  private[rule] final class Unwrapping(plan: LogicalPlan) {

    /** Each condition of a conjunction, unwrapped. */
    def conjuncts(
        conditions: Seq[Expression],
        outer: Map[Expression, KnownPeriod]
    ): Seq[Unwrapped] = {
      val periods = withMonths(withYears(outer, conditions), conditions)
      val ranges = conditions.map(rangesOf(_, periods))
      val found = ranges.collect { case Some(Right(known)) => known }
      // By column, all that is known of it, if it can be written.
      val together = found.groupBy(_.column.exprId).flatMap { case (id, these) =>
        ColumnPredicate.of(these.reduceLeft((one, other) =>
          one.copy(ranges = one.ranges.meet(other.ranges))
        )).map(id -> _)
      }
      val first = conditions.indices.reverse.flatMap(place =>
        ranges(place).collect { case Right(known) => known.column.exprId -> place }
      ).toMap
      conditions.zip(ranges).zipWithIndex.map {
        case ((condition, Some(Right(known))), place) =>
          together.get(known.column.exprId) match {
            case None => Unwrapped(condition, Some(condition))
            case written if first(known.column.exprId) == place => Unwrapped(condition, written)
            case _ => Unwrapped(condition, None)
          }
        case ((condition, Some(Left(refusal))), _) =>
          Unwrapped(condition, Some(condition), refusal.reason.toSeq)
        case ((condition, None), _) => inside(condition, periods)
      }
    }

    /** A condition that is no comparison by itself. */
    private def inside(condition: Expression, periods: Map[Expression, KnownPeriod]): Unwrapped =
      condition match {
        case and: And =>
          val all = conjuncts(Selectivity.conjuncts(and), periods)
          both(and, all, _ => all.flatMap(_.result).reduceLeft(And(_, _)))
        case Or(left, right) =>
          val all = Seq(left, right).map(inside(_, periods, alone = true))
          both(condition, all, sides => Or(sides(0), sides(1)))
        case Not(child) =>
          both(condition, Seq(inside(child, periods, alone = true)), sides => Not(sides.head))
        case _ =>
          val found = PrefixPredicate.of(condition, isStored).orElse(nullSafe(condition, periods))
          Unwrapped(condition, Some(found.getOrElse(condition)))
      }

    private def inside(
        condition: Expression,
        periods: Map[Expression, KnownPeriod],
        alone: Boolean
    ): Unwrapped = condition match {
      case _: And => inside(condition, periods)
      case _ if alone => conjuncts(Seq(condition), periods).head
      case _ => inside(condition, periods)
    }

    private def both(
        before: Expression,
        parts: Seq[Unwrapped],
        make: Seq[Expression] => Expression
    ): Unwrapped = Unwrapped(
      before,
      Some(if (parts.exists(_.isChanged)) make(parts.map(_.after)) else before),
      parts.flatMap(_.refused)
    )

    /** What a comparison of a function asks of its column; none where it is no such comparison. */
    private def rangesOf(
        condition: Expression,
        periods: Map[Expression, KnownPeriod]
    ): Option[Either[Refusal, ColumnRanges]] = condition match {
      case Comparison(value, wanted) if ColumnPreimage.isFunction(value) =>
        Some(new ColumnPreimage(plan, isStored, periods).of(value, wanted))
      case _ => None
    }

    private def nullSafe(condition: Expression, periods: Map[Expression, KnownPeriod]) =
      condition match {
        case EqualNullSafe(value, literal) if !literal.eq(value) =>
          for {
            found <- rangesOf(EqualTo(value, literal), periods)
            known <- found.toOption
            predicate <- ColumnPredicate.of(known)
          } yield And(IsNotNull(known.column), predicate)
        case _ => None
      }

    private def withYears(
        outer: Map[Expression, KnownPeriod],
        conditions: Seq[Expression]
    ): Map[Expression, KnownPeriod] = outer ++ conditions.collect {
      case Comparison(Year(day), wanted) =>
        wanted.single
          .filter(year => year >= 1583 && year <= 9999)
          .map(year => day.canonicalized -> KnownPeriod(year.toInt, None))
    }.flatten

    private def withMonths(
        years: Map[Expression, KnownPeriod],
        conditions: Seq[Expression]
    ): Map[Expression, KnownPeriod] = years ++ conditions.collect {
      case Comparison(Month(day), wanted) =>
        for {
          month <- wanted.single
          if month >= 1 && month <= 12
          known <- years.get(day.canonicalized)
        } yield day.canonicalized -> known.copy(month = Some(month.toInt))
    }.flatten

    // Columns of files and cached tables, of which Spark skips parts if the filter is on top of them.
    private lazy val stored: AttributeSet = AttributeSet(plan match {
      case LogicalRelation(files: HadoopFsRelation, output, _, _, _)
          if skips(files.fileFormat.getClass) =>
        outside(output, files.partitionSchema.fieldNames.toSeq)
      case relation: DataSourceV2Relation =>
        relation.table match {
          case files: FileTable if skips(files.fallbackFileFormat) =>
            outside(
              relation.output,
              files.partitioning.toSeq.flatMap(_.references).flatMap(_.fieldNames)
            )
          case _ => Nil
        }
      case cached: InMemoryRelation => cached.output
      case _ => Nil
    })

    // Readers of texts leave out rows before they look for errors in their other columns. Readers of Parquet
    // may have to find old days, and then to fail.
    private def skips(format: Class[_]): Boolean =
      classOf[OrcFileFormat].isAssignableFrom(format) ||
        (classOf[ParquetFileFormat].isAssignableFrom(format) && readsAllDays)

    private def readsAllDays: Boolean =
      Seq(SQLConf.PARQUET_REBASE_MODE_IN_READ, SQLConf.PARQUET_INT96_REBASE_MODE_IN_READ)
        .forall(mode => SQLConf.get.getConf(mode).toString != "EXCEPTION")

    private def outside(output: Seq[AttributeReference], partitions: Seq[String]) = {
      val names = partitions.map(_.toLowerCase(Locale.ROOT)).toSet
      output.filterNot(column => names(column.name.toLowerCase(Locale.ROOT)))
    }

    private def isStored(column: Attribute): Boolean = stored.contains(column)
  }

  /** Comparisons of a value with literals, by the values that they want. */
  private object Comparison {
    def unapply(condition: Expression): Option[(Expression, ValueRanges)] = condition match {
      case Not(Comparison(value, wanted)) =>
        CountedType.domain(value.dataType).map(all => value -> wanted.complement(all))
      case In(value, list) if list.nonEmpty =>
        val values = list.map(literal)
        Option.when(values.forall(_.isDefined) && hasDomain(value))(
          value -> ValueRanges.of(values.flatten.map(one => ValueRange(one, one)))
        )
      case InSet(value, set) if set.nonEmpty =>
        val values = set.toSeq.map(CountedType.valueOf)
        Option.when(values.forall(_.isDefined) && hasDomain(value))(
          value -> ValueRanges.of(values.flatten.map(one => ValueRange(one, one)))
        )
      case comparison: BinaryComparison =>
        (literal(comparison.left), literal(comparison.right)) match {
          case (None, Some(number)) => wanted(comparison, comparison.left, number, turned = false)
          case (Some(number), None) => wanted(comparison, comparison.right, number, turned = true)
          case _ => None
        }
      case _ => None
    }

    private def hasDomain(value: Expression) = CountedType.domain(value.dataType).isDefined

    private def literal(value: Expression): Option[BigInt] = value match {
      case Literal(number, ofType) if CountedType.domain(ofType).isDefined =>
        CountedType.valueOf(number)
      case _ => None
    }

    private def wanted(
        comparison: BinaryComparison,
        value: Expression,
        number: BigInt,
        turned: Boolean
    ): Option[(Expression, ValueRanges)] = CountedType.domain(value.dataType).flatMap { all =>
      val (below, above) =
        (ValueRanges.of(all.low, number - 1), ValueRanges.of(number + 1, all.high))
      val (upTo, from) = (ValueRanges.of(all.low, number), ValueRanges.of(number, all.high))
      val ranges = comparison match {
        case _: EqualTo => Some(ValueRanges.of(number, number))
        case _: LessThan => Some(if (turned) above else below)
        case _: LessThanOrEqual => Some(if (turned) from else upTo)
        case _: GreaterThan => Some(if (turned) below else above)
        case _: GreaterThanOrEqual => Some(if (turned) upTo else from)
        // It is not null where the value is.
        case _ => None
      }
      ranges.map(value -> _)
    }
  }
}
