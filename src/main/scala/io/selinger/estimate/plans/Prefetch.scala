package io.selinger.estimate.plans

import io.selinger.conf.SelingerConf
import io.selinger.core.{Guard, LargestTable, Mode, PassKey, PlanningPass, RuleActivity}
import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.imported.UseImportedStatistics
import io.selinger.stats.relations.FileRelation
import java.util.concurrent.{ConcurrentLinkedQueue, TimeUnit}
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf
import org.slf4j.LoggerFactory
import scala.util.control.NonFatal

/**
 * Begins to read footers and samples of the tables of a query, several tables at a time, while Spark
 * still optimizes it. Rules that need them later find them, or wait for what is left of the reading.
 * No plan is changed, and the stores are filled within the same limits as when a rule asks. A read that
 * has begun is waited for and not done twice (see BoundedReads).
 *
 * Only tables in plans with joins or groups are read, and no small ones: rules ask for these. Spark calls
 * this in its operator batch, the first place at which filters stand at their tables, as often as plans
 * change there. Each table is read ahead once for a query.
 */
final class Prefetch(session: SparkSession) extends Rule[LogicalPlan] {
  import Prefetch._

  override val ruleName: String = "io.selinger.prefetch"

  override def apply(plan: LogicalPlan): LogicalPlan = {
    // Without a tracker each call would be a query of its own.
    quietly(if (isOn && QueryPlanningTracker.get.isDefined && plan.exists(asksForRows)) begin(plan))
    plan
  }

  private def begin(plan: LogicalPlan): Unit = {
    val pass = PlanningPass.optimizing(plan)
    val begun = pass.get(tables).getOrElse(Set.empty)
    val fresh = scans(plan, Nil).filterNot(scan => begun(scan.relation.source))
    if (fresh.nonEmpty && !Guard.isSmall(SelingerConf.switches, LargestTable.current)) {
      val sources = fresh.map(_.relation.source).toSet
      pass.put(tables, begun ++ sources)
      // Small files first, as rules ask for them.
      val left = new ConcurrentLinkedQueue[Scan]()
      fresh.sortBy(_.relation.bytes).foreach(left.add)
      val conf = SQLConf.get
      val until =
        System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(SelingerConf.PLANNING_BUDGET_MS.value)
      (1 to sources.size.min(mostThreads)).foreach { _ =>
        // Made for one query and not kept: it has this user's credentials, and ends with the reading.
        val thread = new Thread(() => quietly(read(plan, left, conf, until)), threadName)
        thread.setDaemon(true)
        thread.start()
      }
    }
  }

  private def read(
      plan: LogicalPlan,
      left: ConcurrentLinkedQueue[Scan],
      conf: SQLConf,
      until: Long
  ): Unit =
    SQLConf.withExistingConf(conf)(session.withActive(RuleActivity.uncounted {
      val _ = PlanningPass.start().workOn(plan)
      def next = if (System.nanoTime() < until) left.poll() else null
      Iterator.continually(next).takeWhile(_ != null).foreach { scan =>
        FileFacts.of(scan.relation, scan.predicates, scan.predicates)
      }
    }))
}

object Prefetch {

  private val logger = LoggerFactory.getLogger("io.selinger")

  private[plans] val threadName = "selinger-prefetch"

  private val mostThreads = Runtime.getRuntime.availableProcessors.max(2).min(8)

  // Those that this query has begun with.
  private val tables = new PassKey[Set[AnyRef]]("tables that are read ahead")

  private final case class Scan(relation: FileRelation, predicates: Seq[Expression])

  private def isOn: Boolean =
    SelingerConf.switches.mode != Mode.Off && SelingerConf.PREFETCH.value

  private def asksForRows(plan: LogicalPlan): Boolean = plan match {
    case _: Join => true
    case aggregate: Aggregate => aggregate.groupingExpressions.nonEmpty
    case _ => false
  }

  /** The tables below `plan`, each with the predicates that Spark has pushed to it so far. */
  private def scans(plan: LogicalPlan, above: Seq[Expression]): Seq[Scan] = plan match {
    case Filter(condition, child) =>
      scans(child, above ++ Selectivity.conjuncts(condition))
    case Project(_, child) => scans(child, above)
    case leaf: LeafNode if UseImportedStatistics.forLeaf(leaf).isEmpty =>
      leaf match {
        case FileRelation(relation) =>
          val scan = Scan(relation, above.filter(_.references.subsetOf(leaf.outputSet)))
          // A filter that Spark infers later may leave out most partitions.
          val isWhole = relation.partitionSchema.nonEmpty &&
            relation.partitionFilters(scan.predicates).isEmpty
          if (isWhole) Nil else Seq(scan)
        case _ => Nil
      }
    case other => other.children.flatMap(child => scans(child, Nil))
  }

  private def quietly(body: => Unit): Unit =
    try body
    catch {
      // The rule that asks for the same meets the same, and says what it was. No thread to be had is an
      // error of the JVM.
      case error @ (NonFatal(_) | _: LinkageError | _: StackOverflowError | _: OutOfMemoryError) =>
        logger.debug("Could not read ahead, so the query may be planned more slowly", error)
    }
}
