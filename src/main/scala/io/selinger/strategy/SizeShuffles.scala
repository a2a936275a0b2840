package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  Guard,
  GuardedPhysicalRule,
  Hook,
  LargestTable,
  Mode,
  NodeText,
  Origin,
  Outcome,
  Precondition,
  Reason,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.UnknownRows
import io.selinger.stats.relations.QueryStages
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning,
  Partitioning,
  RangePartitioning
}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ValidateRequirements}
import org.apache.spark.sql.internal.SQLConf

/**
 * Shuffles small data into fewer partitions than Spark's default of 200. Each task that writes a shuffle
 * then makes fewer blocks, and each task that reads it fetches fewer. Spark merges small partitions
 * too, but only after they have been written.
 *
 * Fires on a plan with shuffles of its own when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                          else STREAMING_PLAN
 *   2. the user has not set the number of partitions     else SHUFFLE_PARTITIONS_SET
 *   3. Spark may merge partitions                        else COALESCING_OFF
 *   4. the bytes of each shuffle can be estimated        else NO_STATISTICS
 *   5. fewer partitions hold the largest of them         else PARTITIONS_NEEDED
 *   6. no other operator relies on the number            else PARTITIONING_FIXED
 *
 * {{{
 *   SELECT customer, sum(amount) FROM sales GROUP BY customer
 *   Before:  HashAggregate final                  After:  HashAggregate final
 *            +- Exchange hash(customer), 200              +- Exchange hash(customer), 16
 *               +- HashAggregate partial                     +- HashAggregate partial
 *                  +- sales                                     +- sales
 * }}}
 *
 * The number: the smallest one gives each core four partitions, and is at least 16. It is doubled until
 * partitions of `spark.sql.adaptive.advisoryPartitionSizeInBytes` hold eight times the bytes that are
 * expected. Spark would merge partitions up to that size anyway, and what it measures is compressed.
 *
 * All shuffles of a plan get the same number, that of the largest. So what is joined stays partitioned
 * alike, and what is shuffled twice in the same way is still shuffled once. Adaptive execution plans a
 * subquery by itself; one that may share a shuffle with the query, or with another subquery, gets
 * the same number as these.
 *
 * Correct because: rows with the same key go to the same partition whatever the number is, and a global
 * sort orders rows across partitions of any number. Operators that need their inputs partitioned alike
 * are checked by Spark's own ValidateRequirements. A shuffle is left out only where its input
 * is partitioned by the same expressions into the same number: each row is where it would be sent.
 * Not done: REPARTITION hints and other shuffles that the query asks for; stateful operators; numbers by
 * what finished stages have measured, since what has run has its number, and a join needs one number.
 * Where all tables of a query are small (see LargestTable), the bytes of their files say enough, unless a join
 * may multiply their rows: then the number stays.
 * Cost: planning O(n), the estimates of what is shuffled. May lose if far more rows come than
 * expected: partitions are then larger than Spark's target, and their sorts may spill. Hash tables
 * that cannot spill are chosen by measured partitions, or by all rows of a side. With fewer partitions
 * one holds more keys; where one is much larger than the others, Spark still splits it.
 * Runs in injectQueryStagePrepRule, after Spark has added shuffles, before awaitBuildSide, which looks for
 * equal ones. At each re-plan Spark adds the remaining shuffles anew, with 200 partitions. They
 * get the number of the first plan, which its logical operators carry. In between, Spark finds
 * 16 partitions on one side of a join and 200 on the other, and shuffles again what has been shuffled: with
 * equal numbers this shuffle is not needed, and is left out. A second run finds no such number.
 * Conf: spark.selinger.sizeShuffles.enabled.  References: the shuffle partitions that Databricks
 * computes from the plan and the size of its input (`spark.sql.shuffle.partitions=auto`).
 */
final class SizeShuffles(session: SparkSession)
    extends GuardedPhysicalRule(SizeShuffles, SelingerConf.switches) {
  import SizeShuffles._

  override protected def prepare(plan: SparkPlan, mode: Mode): SparkPlan = {
    val shuffles = plan.collect { case Sizable(exchange, _) => exchange }
    if (shuffles.isEmpty) plan
    else if (plan.exists(_.isInstanceOf[QueryStageExec])) {
      // What was decided first holds until the query ends.
      if (mode == Mode.On) numberOf(plan).map(resized(plan, _)).filter(isValid).getOrElse(plan)
      else plan
    } else decided(plan, shuffles, mode)
  }

  private def decided(
      plan: SparkPlan,
      shuffles: Seq[ShuffleExchangeExec],
      mode: Mode
  ): SparkPlan = {
    val subject = new Subject(plan, shuffles)
    val unmet = Precondition.firstUnmet(preconditions, subject)
    linksOf(plan).headOption.foreach(root =>
      Decision.record(root, decision(root, subject, unmet, mode))
    )
    if (unmet.isDefined || mode != Mode.On) {
      linksOf(plan).foreach(_.unsetTagValue(numberTag))
      plan
    } else {
      linksOf(plan).foreach(_.setTagValue(numberTag, subject.number))
      subject.result
    }
  }

  /** The shuffles of a plan, and what is known of them. */
  private final class Subject(val plan: SparkPlan, val shuffles: Seq[ShuffleExchangeExec]) {

    private val cluster = Cluster.of(session)

    lazy val isStream: Boolean = linksOf(plan).exists(_.isStreaming)

    private lazy val shared: Option[Shared] =
      linksOf(plan).flatMap(_.getTagValue(sharedTag)).headOption

    /** Of the largest shuffle; none where nothing is known of one of them. */
    lazy val size: Option[ShuffleSize] = shared match {
      case Some(known) => known.size
      case None if whole.exists(hasSmallTables) => whole.flatMap(ShuffleSize.ofSmallTables)
      case None => largest(shuffles.map(ShuffleSize.of(_, cluster)))
    }

    private def whole: Option[LogicalPlan] = linksOf(plan).headOption

    def whose: String = if (shared.isDefined) " of the query and its subqueries" else ""

    lazy val number: Int = size.fold(default)(numberFor(_, smallest))

    lazy val result: SparkPlan = resized(plan, number)

    /** Tasks that Spark makes at least when it merges partitions, and some to share among cores. */
    private def smallest: Int = Seq(
      fewest,
      cluster.slots * partitionsPerCore,
      session.sparkContext.defaultParallelism,
      SQLConf.get.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM).getOrElse(1)
    ).max
  }

  private val preconditions: Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.isStream),
    Precondition(PartitionsSet)(_ => setByUser.isEmpty),
    Precondition(CoalescingOff)(_ => SQLConf.get.getConf(SQLConf.COALESCE_PARTITIONS_ENABLED)),
    Precondition(Reason.NoStatistics)(_.size.isDefined),
    Precondition(PartitionsNeeded)(_.number < default),
    Precondition(PartitioningFixed)(subject => isValid(subject.result))
  )

  private def decision(
      root: LogicalPlan,
      subject: Subject,
      unmet: Option[Reason],
      mode: Mode
  ): Decision = {
    val count = subject.shuffles.size
    val text = if (count == 1) "1 shuffle" else s"$count shuffles"
    val reason = unmet.getOrElse(Fewer)
    Decision(
      rule = info.id,
      node = text,
      key = s"shuffles of ${NodeText.key(root)}",
      outcome = Outcome.of(unmet, mode),
      reason = reason,
      chosen = Option.when(unmet.isEmpty)(s"${subject.number} partitions"),
      stock = Option.when(unmet.isEmpty)(s"$default"),
      detail =
        UnknownRows.detail(reason, subject.shuffles.flatMap(s => linksOf(s.child).headOption): _*),
      evidence = reason match {
        case Fewer | PartitionsNeeded => evidence(subject)
        case _ => Nil
      },
      setting = reason match {
        case Fewer => Some(info.switch)
        case PartitionsSet => setByUser
        case CoalescingOff => Some(SQLConf.COALESCE_PARTITIONS_ENABLED.key)
        case _ => None
      },
      settingTo = reason match {
        case Fewer => Some("false")
        case PartitionsSet => Some("")
        case CoalescingOff => Some("true")
        case _ => None
      },
      title = Some(text)
    )
  }

  private def evidence(subject: Subject): Seq[Evidence] =
    subject.size.toSeq.map { size =>
      Evidence(
        s"expected in the largest shuffle${subject.whose}",
        size.expected,
        "bytes",
        size.origin
      )
    } :+ Evidence(
      s"room in ${subject.number} partitions",
      subject.number * target,
      "bytes",
      Origin.Exact
    )
}

object SizeShuffles
    extends RuleDescription(
      "sizeShuffles",
      RuleKind.Adaptive,
      "Shuffles data that is expected to be small into fewer partitions than Spark's default of 200.",
      paysOnSmallTables = true
    ) {

  override def hooks: Seq[Hook] = Seq(
    Hook.EachPlan(
      "Which shuffles a query may share with its subqueries can be seen only from the root of the plan.",
      this,
      SelingerConf.switches
    )(markShared),
    Hook.StagePreparation(
      "All shuffles of the plan are there by then, and none of them has begun."
    )(new SizeShuffles(_))
  )

  val PartitionsSet: Reason = Reason(
    "SHUFFLE_PARTITIONS_SET",
    "The number of shuffle partitions has been set, in the session or in Spark's configuration, so that " +
      "number is used.",
    "Unset spark.sql.shuffle.partitions and spark.sql.adaptive.coalescePartitions.initialPartitionNum " +
      "to let Selinger choose a number for each query."
  )

  val CoalescingOff: Reason = Reason(
    "COALESCING_OFF",
    "spark.sql.adaptive.coalescePartitions.enabled is false, so Spark must not merge partitions, and " +
      "their number stays.",
    "Set spark.sql.adaptive.coalescePartitions.enabled to true if fewer partitions are welcome."
  )

  val PartitionsNeeded: Reason = Reason(
    "PARTITIONS_NEEDED",
    "The largest shuffle may be large enough to need all of Spark's partitions, or there are enough cores " +
      "to use them all, so the number stays.",
    "Nothing to do."
  )

  val PartitioningFixed: Reason = Reason(
    "PARTITIONING_FIXED",
    "A shuffle is joined with data whose partitions are fixed, for example by a REPARTITION hint, so all " +
      "shuffles of this query keep Spark's number.",
    "Remove the hint if it is not needed."
  )

  val Fewer: Reason = Reason(
    "FEWER_PARTITIONS",
    "Even the largest shuffle is expected to be small. In Spark's number of partitions, most of its blocks " +
      "would be tiny, so all shuffles here get fewer partitions.",
    "Set spark.sql.shuffle.partitions to use a number of your own."
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    PartitionsSet,
    CoalescingOff,
    Reason.NoStatistics,
    PartitionsNeeded,
    PartitioningFixed,
    Fewer
  )

  override def example: String = "SELECT customer, sum(amount) FROM sales GROUP BY customer"

  // Enough to share the work evenly among cores when some partitions are larger than others. Set by
  // hand, and not measured: fewer partitions than that save nothing more that shows.
  private val partitionsPerCore = 4
  private val fewest = 16

  // On logical operators: the number of partitions that the plan got before it began to run.
  private val numberTag = TreeNodeTag[Int]("selinger.shufflePartitions")

  /** @param size of the largest shuffle that plans which share some may have; none if unknown */
  private final case class Shared(size: Option[ShuffleSize])

  // On the logical operators of these plans.
  private val sharedTag = TreeNodeTag[Shared]("selinger.sharedShuffles")

  private def default: Int = SQLConf.get.numShufflePartitions

  private def target: Double =
    SQLConf.get.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES).toDouble

  private def setByUser: Option[String] = Seq(
    SQLConf.SHUFFLE_PARTITIONS.key,
    SQLConf.COALESCE_PARTITIONS_INITIAL_PARTITION_NUM.key
  ).find(SQLConf.get.contains)

  /** The smallest number, doubled until partitions of Spark's target size have room for the bytes. */
  private[strategy] def numberFor(size: ShuffleSize, smallest: Int): Int = {
    val needed = size.withMargin / math.max(1.0, target)
    val numbers = Iterator.iterate(smallest.toDouble)(_ * 2).takeWhile(_ < default)
    numbers.find(_ >= needed).fold(default)(_.toInt)
  }

  private def largest(sizes: Seq[Option[ShuffleSize]]): Option[ShuffleSize] =
    if (sizes.contains(None)) None
    else sizes.flatten.maxByOption(_.withMargin)

  /** A shuffle that Spark has added with its default number of partitions, and the same with another. */
  private object Sizable {
    def unapply(plan: SparkPlan): Option[(ShuffleExchangeExec, Int => Partitioning)] = plan match {
      case SparkShuffle(exchange) =>
        exchange.outputPartitioning match {
          case hash: HashPartitioning if hash.numPartitions == default =>
            Some((exchange, n => hash.copy(numPartitions = n)))
          case range: RangePartitioning if range.numPartitions == default =>
            Some((exchange, n => range.copy(numPartitions = n)))
          case _ => None
        }
      case _ => None
    }
  }

  private def resized(plan: SparkPlan, number: Int): SparkPlan = plan.transformUp {
    case Sizable(exchange, partitioned) =>
      val smaller = exchange.copy(outputPartitioning = partitioned(number))
      if (
        SparkShuffle.isPartitionedAs(smaller.outputPartitioning, smaller.child.outputPartitioning)
      ) {
        smaller.child
      } else smaller
  }

  private def isValid(plan: SparkPlan): Boolean = ValidateRequirements.validate(plan)

  /** The logical operators that a plan runs, root first; leaves may belong to other queries too. */
  private def linksOf(plan: SparkPlan): Seq[LogicalPlan] =
    plan.collect(Function.unlift((node: SparkPlan) => node.logicalLink)).filter(_.children.nonEmpty)

  private def numberOf(plan: SparkPlan): Option[Int] =
    linksOf(plan).flatMap(_.getTagValue(numberTag)).headOption

  /** What the operators of a plan may have shuffled. */
  private def mayShuffle(plan: LogicalPlan): Seq[LogicalPlan] = plan.collect {
    case _: Project | _: Filter | _: Union | _: LocalLimit | _: GlobalLimit => Nil
    // All of its rows come to one partition.
    case Aggregate(Nil, _, _, _) => Nil
    case other => other.children
  }.flatten

  /**
   * Marks the operators of a query and its subqueries where some of these plans may share a shuffle,
   * before each is planned by itself: Spark shares it only if it has the same number of
   * partitions in both. Which joins need no shuffle is not known here, so all are counted.
   */
  private def markShared(root: LogicalPlan): Unit = {
    // Where nothing will be decided, nothing is looked for.
    val subqueries = if (setByUser.isEmpty) Subqueries.within(root) else Nil
    if (subqueries.nonEmpty && !QueryStages.begun(root) && !root.exists(isMarked)) {
      // Of subqueries that are the same, Spark runs one.
      val shuffles = (root +: subqueries.distinctBy(_.canonicalized)).map(mayShuffle)
      val plans = shuffles.map(_.map(_.canonicalized).toSet)
      val isAnyShared = plans.flatten.groupBy(identity).values.exists(_.size > 1)
      if (isAnyShared) {
        val size =
          if (hasSmallTables(root)) None else largest(shuffles.flatten.map(ShuffleSize.of(_)))
        val shared = Shared(size)
        (root +: subqueries).foreach(_.foreach { node =>
          if (node.children.nonEmpty) node.setTagValue(sharedTag, shared)
        })
      }
    }
  }

  private def hasSmallTables(plan: LogicalPlan): Boolean =
    Guard.isSmall(SelingerConf.switches, LargestTable.of(plan))

  private def isMarked(node: LogicalPlan): Boolean = node.getTagValue(sharedTag).isDefined
}
