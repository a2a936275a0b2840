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
import io.selinger.estimate.plans.RelationNames
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
 *   3. the small side has few enough rows                 else TOO_MANY_KEYS
 *   4. footers of the large side have been read           else NO_STATISTICS
 *   5. they show row groups, or parts of these, without
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
 * broadcast joins that stream it, UNION ALL), or with those of the same key (an aggregation by it).
 * Nulls have no partner, and small sides drop theirs. Errors that skipped rows would have raised are the
 * reason for the second condition. Ranges are computed from the very table that the join probes.
 * Not done: joins that shuffle, since both sides of these are read at the same time; keys that are texts
 * or decimals; the scans of other file formats, which may apply such filters before they parse a row;
 * filters in place of the join's own work, since a range says nothing of single rows.
 * Cost: planning O(n log n) in the keys of the small side, once for each. Does not lose: nothing is
 * computed for rows that are read.
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
      val verdicts = built.targets.map(target => verdictOf(built, target))
      record(built, verdicts, mode)
      if (mode != Mode.On) built.physical
      else {
        verdicts.flatMap(_.filter).foldLeft[SparkPlan](built.physical) {
          case (join, (scan, filter)) => filtered(join, scan, filter)
        }
      }
  }

  private def verdictOf(built: BuiltJoin, target: Target): Verdict = {
    def declined(reason: Reason) = Verdict(Left(reason), target)
    if (!mayPush(target.at.scan.relation.fileFormat)) declined(FilterPushdownOff)
    else if (target.at.mayRaise) declined(Reason.MayRaise)
    else if (built.rows.forall(_ > mostKeys)) declined(TooManyKeys)
    else {
      val keys = built.keysAt(target.place)
      rowsWith(target.at, keys) match {
        case None => declined(Reason.NoStatistics)
        case Some(rows) if rows.kept > rows.rows * worthSkipping && !rows.canSkipMore =>
          declined(KeysInAllRowGroups).copy(rows = Some(rows))
        case Some(rows) => Verdict(Right(keys), target, Some(rows))
      }
    }
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
      val rows = shown.flatMap(_.rows).reduceOption(_ + _)
      Decision.recordLate(
        built.join,
        Decision(
          rule = PushJoinKeysIntoScan.id,
          node = NodeText.of(built.join),
          key = NodeText.key(built.join),
          outcome =
            if (pushed.isEmpty) Outcome.Declined
            else if (mode == Mode.On) Outcome.Changed
            else Outcome.Advised,
          reason = reason,
          phase = Phase.Adaptive,
          chosen = Option.when(pushed.nonEmpty)(
            pushed.map(_.description).distinct.mkString("; ")
          ),
          stock = Option.when(pushed.nonEmpty)("reads all of them"),
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
        Evidence("rows of the files", known.rows.toDouble, "rows", Origin.Exact),
        Evidence("rows of row groups with a key", known.kept.toDouble, "rows", Origin.Exact)
      )
    }
}

object PushJoinKeysIntoScan
    extends RuleDescription(
      "pushJoinKeysIntoScan",
      RuleKind.Adaptive,
      "Skips row groups and pages of Parquet and ORC files that hold no key of the small side of a " +
        "join, once that side is known."
    ) {

  override def hooks: Seq[Hook] = Seq(
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
    "The small side has too many rows to look at all of its keys between two stages.",
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
    "The small side has been read, and the scan of the large side skips row groups and pages that " +
      "hold none of its keys.",
    "Nothing to do."
  )

  override def reasons: Seq[Reason] = Seq(
    FilterPushdownOff,
    Reason.MayRaise,
    TooManyKeys,
    Reason.NoStatistics,
    KeysInAllRowGroups,
    JoinKeysPushed
  )

  override def example: String =
    "SELECT sum(s.amount) FROM sales s JOIN dates d ON s.sold = d.day WHERE d.year = 2000"

  // A limit of work: this many keys are sorted in some 20 ms, between two stages of the query.
  private val mostKeys = BigInt(200000)

  // A limit of work for readers, which compare each row group with each of the ranges.
  private val mostRanges = 8

  // Below it, less than 2 % of the rows could be skipped.
  private val worthSkipping = 0.98

  // On the broadcast itself, which all joins and re-plans of a query share.
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

    /** What to read with; none where no value of the column's type is a key. */
    def filter: Option[(FileSourceScanExec, Expression)] =
      keys.toOption.flatMap(filterOf(target.at.column, _)).map(target.at.scan -> _)

    def description: String = s"reads parts with keys in ${target.at.column.name} only"
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
      val seen = stage.broadcast.getTagValue(rangesTag).getOrElse(Map.empty)
      seen.getOrElse(
        place, {
          val ranges = KeyRanges.of(JoinTable.of(stage).values(buildKeys, place), mostRanges)
          stage.broadcast.setTagValue(rangesTag, seen.updated(place, ranges))
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
          // Spark itself ends a query early where a side is empty.
          if targets.nonEmpty && JoinTable.of(stage).hasKeys
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

  private def filterOf(column: Attribute, keys: KeyRanges): Option[Expression] = {
    val fitting = column.dataType match {
      case ByteType => keys.within(Byte.MinValue.toLong, Byte.MaxValue.toLong)
      case ShortType => keys.within(Short.MinValue.toLong, Short.MaxValue.toLong)
      case IntegerType | DateType => keys.within(Int.MinValue.toLong, Int.MaxValue.toLong)
      case _ => keys
    }
    fitting.ranges.map { range =>
      val (low, high) = (literal(range.low, column.dataType), literal(range.high, column.dataType))
      if (range.low == range.high) EqualTo(column, low)
      else And(GreaterThanOrEqual(column, low), LessThanOrEqual(column, high))
    }.reduceOption[Expression](Or(_, _))
  }

  private def literal(value: Long, kind: DataType): Literal = kind match {
    case ByteType => Literal(value.toByte)
    case ShortType => Literal(value.toShort)
    case IntegerType => Literal(value.toInt)
    case DateType => Literal(value.toInt, DateType)
    case _ => Literal(value)
  }

  private def filtered(
      join: SparkPlan,
      scan: FileSourceScanExec,
      filter: Expression
  ): SparkPlan = join.transformUp {
    case same: FileSourceScanExec if isSame(same, scan) && !same.dataFilters.contains(filter) =>
      val copied = same.copy(dataFilters = same.dataFilters :+ filter)
      copied.copyTagsFrom(same)
      ReducedRows.mark(copied)
      copied
  }

  /** The same scan, with or without filters that were pushed before. */
  private def isSame(one: FileSourceScanExec, other: FileSourceScanExec): Boolean =
    one.output.map(_.exprId) == other.output.map(_.exprId) && (one.relation eq other.relation)
}
