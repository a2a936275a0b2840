package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  GuardedPhysicalRule,
  Hook,
  Mode,
  NodeText,
  Origin,
  Outcome,
  Phase,
  Reason,
  ReducedRows,
  RuleDescription,
  RuleKind
}
import io.selinger.estimate.plans.{RelationNames, UnknownRows}
import io.selinger.stats.{KeyRanges, RowsWithKeys}
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.stats.relations.FileRelation
import org.apache.spark.sql.catalyst.expressions.{
  And,
  Attribute,
  EqualTo,
  Expression,
  GreaterThanOrEqual,
  LessThanOrEqual,
  Literal,
  Or,
  PlanExpression
}
import org.apache.spark.sql.catalyst.plans.{InnerLike, JoinType, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.datasources.FileFormat
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{ByteType, DataType, DateType, IntegerType, LongType, ShortType}

/**
 * Lets a scan skip those row groups and pages that hold no key of the small side of a join, once that
 * side has been broadcast and before the scan begins: the days of one year in a table of sales, say.
 *
 * Looks at a broadcast hash join of which the small side has been built, and whose keys are columns of
 * a Parquet or ORC scan in the same stage. Fires when (each line is tested in this order):
 *   1. Spark may push filters into files of that format   else FILTER_PUSHDOWN_OFF
 *   2. no expression between scan and join can raise an
 *      error                                              else ERRORS_DEPEND_ON_PLAN
 *   3. no subquery has the same join: without the filter,
 *      Spark would compute it once for both               else SHARED_SUBPLAN
 *   4. the small side has few enough rows                 else TOO_MANY_KEYS
 *   5. footers of the large side have been read           else NO_STATISTICS
 *   6. they show row groups, or parts of these, without
 *      a key                                              else KEYS_IN_ALL_ROW_GROUPS
 *
 * {{{
 *   SELECT sum(s.amount) FROM sales s JOIN dates d ON s.sold = d.day WHERE d.year = 2000
 *   Before:  BroadcastHashJoin [sold = day]     After:  BroadcastHashJoin [sold = day]
 *            :- Scan sales                              :- Scan sales, PushedFilters: [sold >= 730, sold <= 1095]
 *            +- BroadcastQueryStage                     +- BroadcastQueryStage
 * }}}
 *
 * Correct because: the filter is handed to the reader only, which may skip rows that do not satisfy it
 * and need not. Such rows have no partner in the join, which drops rows without one: it is an inner or
 * a left semi join. Between scan and join each row is handled by itself (filters, projections, other
 * broadcast joins that stream it, UNION ALL). Aggregations that were moved below the join group by its
 * key, and as written they see only rows with a partner.
 * Nulls have no partner, and small sides drop theirs. Errors that skipped rows would have raised are the
 * reason for the second condition. Ranges are computed from the very table that the join probes.
 * Not done: joins that shuffle, since both sides of these are read at the same time; keys that are texts
 * or decimals; the scans of other file formats, which may apply such filters before they parse a row;
 * filters in place of the join's own work, since a range says nothing of single rows.
 * Cost: planning O(n log n) in the keys of the small side, once for each. Nothing is computed for rows
 * that are read. Parts of one plan that Spark computes once stay the same, as they are planned together;
 * subqueries are planned apart from the query, and what they share with it is left alone.
 * Runs in injectQueryStagePrepRule, at each adaptive re-plan: a broadcast that has just finished causes
 * one, and only after it Spark starts the stage that reads the large side. A second run on its result
 * changes nothing, because a filter that a scan has is not added again.
 * Conf: spark.selinger.pushJoinKeysIntoScan.enabled.  References: the dynamic filters of Trino, the
 * dynamic file pruning of Databricks, the join filter pushdown of DuckDB.
 */
final class PushJoinKeysIntoScan(@annotation.unused session: SparkSession)
    extends GuardedPhysicalRule(PushJoinKeysIntoScan, SelingerConf.switches) {
  import PushJoinKeysIntoScan._

  override protected def prepare(plan: SparkPlan, mode: Mode): SparkPlan = plan.transformUp {
    case join @ UnbuiltJoin(logical) =>
      Decision.expectAt(logical)
      join
    case BuiltJoin(built) =>
      val verdicts = built.targets.flatMap(target => verdictOf(built, target))
      record(built, verdicts, mode)
      if (mode == Mode.On) filtered(built.physical, verdicts.flatMap(_.filter)) else built.physical
  }

  /** None where no value of the column's type is a key: there is nothing to look for. */
  private def verdictOf(built: BuiltJoin, target: Target): Option[Verdict] = {
    def declined(reason: Reason) = Some(Verdict(Left(reason), target))
    if (!mayPush(target.at.scan.relation.fileFormat)) declined(FilterPushdownOff)
    else if (target.at.mayRaise) declined(Reason.MayRaise)
    else if (Subqueries.isShared(built.join)) declined(Reason.SharedSubplan)
    else if (built.rows.forall(_ > mostKeys(target))) declined(TooManyKeys)
    else {
      val keys = fitting(built.keysAt(target.place), target.at.column.dataType)
      if (keys.ranges.isEmpty) None
      else
        rowsWith(target.at, keys) match {
          case None => declined(Reason.NoStatistics)
          case Some(rows) if rows.kept > rows.rows * worthSkipping && !rows.canSkipMore =>
            Some(Verdict(Left(KeysInAllRowGroups), target, Some(rows)))
          case Some(rows) => Some(Verdict(Right(keys), target, Some(rows)))
        }
    }
  }

  /** Looking at keys must be little work beside reading the rows. */
  private def mostKeys(target: Target): BigInt = {
    val rows = rowsWith(target.at, KeyRanges.all).fold(0.0)(_.rows)
    fewKeys.max(mostKeysOfAny.min(BigInt((rows * keysPerRow).toLong)))
  }

  private def rowsWith(at: ScanColumn, keys: KeyRanges): Option[RowsWithKeys] =
    for {
      link <- at.scan.logicalLink
      // It is linked to the filters and projections that Spark planned it with.
      relation <- link.collectLeaves().collectFirst { case FileRelation(relation) => relation }
      partitions = at.scan.partitionFilters.filterNot(_.exists(_.isInstanceOf[PlanExpression[_]]))
      rows <- ReadFooterStatistics.rowsWith(relation, partitions, at.column, keys)
    } yield rows

  private def record(built: BuiltJoin, verdicts: Seq[Verdict], mode: Mode): Unit = {
    val pushed = verdicts.filter(_.keys.isRight)
    val shown = if (pushed.isEmpty) verdicts.take(1) else pushed
    shown.headOption.foreach { first =>
      val reason = first.keys.left.getOrElse(JoinKeysPushed)
      // Several keys may be columns of one scan.
      val rows = shown
        .groupBy(verdict => System.identityHashCode(verdict.target.at.scan))
        .values
        .flatMap(_.flatMap(_.rows).minByOption(_.kept))
        .reduceOption(_ + _)
      Decision.recordLate(
        built.join,
        Decision(
          rule = PushJoinKeysIntoScan.id,
          node = NodeText.of(built.join),
          key = NodeText.key(built.join),
          outcome = if (pushed.isEmpty) Outcome.Declined else Outcome.acting(mode),
          reason = reason,
          phase = Phase.Adaptive,
          chosen = Option.when(pushed.nonEmpty)(
            pushed.map(_.description).distinct.mkString("; ")
          ),
          stock = Option.when(pushed.nonEmpty)("all parts"),
          detail = Option.when(reason == Reason.NoStatistics)(
            first.target.at.scan.logicalLink.map(UnknownRows.text)
          ).flatten,
          evidence = evidence(built, rows),
          setting = reason match {
            case JoinKeysPushed => Some(PushJoinKeysIntoScan.switch)
            case FilterPushdownOff => Some(first.target.pushdownKey)
            case _ => None
          },
          settingTo = reason match {
            case JoinKeysPushed => Some("false")
            case FilterPushdownOff => Some("true")
            case _ => None
          },
          title = Some(RelationNames.titleOf(built.join)),
          sides = Some(RelationNames.sidesOf(built.join))
        )
      )
    }
  }

  private def evidence(built: BuiltJoin, rows: Option[RowsWithKeys]): Seq[Evidence] =
    built.rows.map(n => Evidence("rows of the small side", n.toDouble, "rows", Origin.Measured))
      .toSeq ++ rows.toSeq.flatMap { known =>
      Seq(
        Evidence("rows of the files", known.rows, "rows", known.origin),
        Evidence("rows of row groups with a key", known.kept, "rows", known.origin)
      )
    }
}

object PushJoinKeysIntoScan
    extends RuleDescription(
      "pushJoinKeysIntoScan",
      RuleKind.Adaptive,
      "Skips the parts of Parquet and ORC files that hold no key of the small side of a join, when " +
        "that side has been read."
    ) {

  override def hooks: Seq[Hook] = Seq(
    Hook.EachPlan(
      "Which joins a query shares with its subqueries can be seen only from the root of the plan.",
      this,
      SelingerConf.switches
    )(Subqueries.markShared),
    Hook.StagePreparation(
      "The small side has been broadcast by then, and the scan of the large side has not begun."
    )(new PushJoinKeysIntoScan(_))
  )

  val FilterPushdownOff: Reason = Reason(
    "FILTER_PUSHDOWN_OFF",
    "Spark has been told not to push filters into files of this format, so no keys are pushed " +
      "either.",
    "Set spark.sql.parquet.filterPushdown or spark.sql.orc.filterPushdown to true if files may be " +
      "filtered."
  )

  val TooManyKeys: Reason = Reason(
    "TOO_MANY_KEYS",
    "The small side has more than 200,000 rows, and the large side is not many times as large, or the " +
      "small side has more than 5 million. Looking at all of its keys would delay the next stage.",
    "Nothing to do."
  )

  val KeysInAllRowGroups: Reason = Reason(
    "KEYS_IN_ALL_ROW_GROUPS",
    "Every row group of the large side may hold a key of the small side, so none can be skipped.",
    "If the table is often joined this way, write it sorted by the join key: then each row group " +
      "holds few of the keys."
  )

  val JoinKeysPushed: Reason = Reason(
    "JOIN_KEYS_PUSHED",
    "The small side has been read, and the scan of the large side skips the parts of its files that " +
      "hold none of its keys.",
    "Nothing to do."
  )

  override def reasons: Seq[Reason] = Seq(
    FilterPushdownOff,
    Reason.MayRaise,
    Reason.SharedSubplan,
    TooManyKeys,
    Reason.NoStatistics,
    KeysInAllRowGroups,
    JoinKeysPushed
  )

  override def example: String =
    "SELECT sum(s.amount) FROM sales s JOIN dates d ON s.sold = d.day WHERE d.year = 2000"

  // So many keys are sorted in some 20 ms, between two stages of the query.
  private val fewKeys = BigInt(200000)

  // A key is looked at in some 0.2 µs by the driver, and a row is read in about as much by a task.
  private val keysPerRow = 0.05

  // They are in the driver's memory meanwhile, 8 bytes each.
  private val mostKeysOfAny = BigInt(5000000)

  // A limit of work for readers, which compare each row group with each of the ranges.
  private val mostRanges = 8

  // Below it, less than 2 % of the rows could be skipped.
  private val worthSkipping = 0.98

  // On the stage, which is the same at each re-plan, and belongs to one plan only.
  private val rangesTag = TreeNodeTag[Map[Int, KeyRanges]]("selinger.keyRanges")

  /** @param place of the key among those of the join */
  private final case class Target(place: Int, at: ScanColumn) {
    def pushdownKey: String = at.scan.relation.fileFormat match {
      case _: OrcFileFormat => SQLConf.ORC_FILTER_PUSHDOWN_ENABLED.key
      case _ => SQLConf.PARQUET_FILTER_PUSHDOWN_ENABLED.key
    }
  }

  private final case class Verdict(
      keys: Either[Reason, KeyRanges],
      target: Target,
      rows: Option[RowsWithKeys] = None
  ) {

    /** What to read with. */
    def filter: Option[(FileSourceScanExec, Expression)] =
      keys.toOption.map(ranges => target.at.scan -> filterOf(target.at.column, ranges))

    def description: String =
      s"reads only parts that may hold a key (column ${target.at.column.name})"
  }

  /** A join whose small side is there: rows of the other without a partner are dropped. */
  private final case class BuiltJoin(
      physical: BroadcastHashJoinExec,
      join: Join,
      stage: BroadcastQueryStageExec,
      buildKeys: Seq[Expression],
      targets: Seq[Target]
  ) {

    val rows: Option[BigInt] = stage.computeStats().flatMap(_.rowCount)

    def keysAt(place: Int): KeyRanges = {
      val seen = stage.getTagValue(rangesTag).getOrElse(Map.empty)
      seen.getOrElse(
        place, {
          val ranges = KeyRanges.of(JoinTable.of(stage).values(buildKeys, place), mostRanges)
          stage.setTagValue(rangesTag, seen.updated(place, ranges))
          ranges
        }
      )
    }
  }

  /** A join whose small side is still to come. */
  private object UnbuiltJoin {
    def unapply(plan: SparkPlan): Option[Join] = plan match {
      case join: BroadcastHashJoinExec if !join.children.exists(isBuilt) => linkOf(join)
      case _ => None
    }
  }

  private def isBuilt(side: SparkPlan): Boolean = side match {
    case stage: BroadcastQueryStageExec => stage.isMaterialized
    case _ => false
  }

  private def linkOf(plan: SparkPlan): Option[Join] =
    plan.logicalLink.collect { case join: Join => join }

  private object BuiltJoin {
    def unapply(plan: SparkPlan): Option[BuiltJoin] = plan match {
      case physical: BroadcastHashJoinExec if dropsWithoutPartner(physical.joinType) =>
        for {
          join <- linkOf(physical)
          sides = new JoinSidesByUse(physical)
          stage <- Option(sides.build).collect {
            case stage: BroadcastQueryStageExec if isBuilt(stage) => stage
          }
          targets = targetsOf(sides)
          if targets.nonEmpty
        } yield BuiltJoin(physical, join, stage, sides.buildKeys, targets)
      case _ => None
    }

    private def dropsWithoutPartner(joinType: JoinType): Boolean = joinType match {
      case _: InnerLike | LeftSemi => true
      case _ => false
    }

    private def targetsOf(sides: JoinSidesByUse): Seq[Target] =
      for {
        (key, place) <- sides.probeKeys.zipWithIndex
        if isWhole(key.dataType)
        at <- ScanColumn.below(sides.probe, key)
        if isSkipping(at.scan.relation.fileFormat)
        // The join evaluates all its keys for all rows.
        isSafe = sides.probeKeys.forall(ScanColumn.isSafe)
      } yield Target(place, at.copy(mayRaise = at.mayRaise || !isSafe))

  }

  /** Types whose values are whole numbers to the reader and to Spark. */
  private def isWhole(kind: DataType): Boolean = kind match {
    case ByteType | ShortType | IntegerType | LongType | DateType => true
    case _ => false
  }

  /** Formats whose readers use a filter to skip parts of a file, and for nothing else. */
  private def isSkipping(format: FileFormat): Boolean = format match {
    case _: ParquetFileFormat | _: OrcFileFormat => true
    case _ => false
  }

  private def mayPush(format: FileFormat): Boolean = format match {
    case _: ParquetFileFormat => SQLConf.get.parquetFilterPushDown
    case _: OrcFileFormat => SQLConf.get.orcFilterPushDown
    case _ => false
  }

  /** Those keys that a column can hold. */
  private def fitting(keys: KeyRanges, kind: DataType): KeyRanges = kind match {
    case ByteType => keys.within(Byte.MinValue.toLong, Byte.MaxValue.toLong)
    case ShortType => keys.within(Short.MinValue.toLong, Short.MaxValue.toLong)
    case IntegerType | DateType => keys.within(Int.MinValue.toLong, Int.MaxValue.toLong)
    case _ => keys
  }

  private def filterOf(column: Attribute, keys: KeyRanges): Expression =
    keys.ranges.map { range =>
      val (low, high) = (literal(range.low, column.dataType), literal(range.high, column.dataType))
      if (range.low == range.high) EqualTo(column, low)
      else And(GreaterThanOrEqual(column, low), LessThanOrEqual(column, high))
    }.reduce[Expression](Or(_, _))

  private def literal(value: Long, kind: DataType): Literal = kind match {
    case ByteType => Literal(value.toByte)
    case ShortType => Literal(value.toShort)
    case IntegerType => Literal(value.toInt)
    case DateType => Literal(value.toInt, DateType)
    case _ => Literal(value)
  }

  /** The scans with these filters, as far as they do not have them. */
  private def filtered(
      join: SparkPlan,
      filters: Seq[(FileSourceScanExec, Expression)]
  ): SparkPlan = if (filters.isEmpty) join
  else join.transformUp { case scan: FileSourceScanExec =>
    val own = filters.collect { case (of, filter) if of eq scan => filter }
    val missing = own.filterNot(scan.dataFilters.contains)
    if (missing.isEmpty) scan
    else {
      val copied = scan.copy(dataFilters = scan.dataFilters ++ missing)
      copied.copyTagsFrom(scan)
      ReducedRows.mark(copied)
      copied
    }
  }
}
