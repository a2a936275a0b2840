package io.selinger

import io.selinger.conf.{SelingerConf, UnknownSettings}
import io.selinger.core.{BuiltFor, Hook, OpenPlanningPass, TellSmallTables}
import io.selinger.estimate.plans.Prefetch
import io.selinger.exec.PlanAggregatePerTask
import io.selinger.explain.TableFunctions
import io.selinger.ordering.ablation.Mechanism
import io.selinger.stats.sketches.{RunFunctionsOnce, SketchFunctions}
import io.selinger.transfer.{
  RefuseImportedScans,
  RefuseImportedWrites,
  ResolveImportedTables,
  TransferFunctions
}
import java.util.{Collections, WeakHashMap}
import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.SparkSessionExtensions
import org.slf4j.LoggerFactory

/**
 * What `spark.sql.extensions=io.selinger.SelingerExtension` loads. Rules come from the [[Registry]],
 * which says where Spark calls each of them, and why there; everything else is injected here.
 *
 * {{{
 *   SQL or DataFrame
 *     │  Spark: parse, analyse, push predicates down
 *     ▼
 *   rule/      rules on filters, joins and aggregations  ← estimate/ rows, stats/ keys, cost/
 *   ordering/  the order of joins                          ← the same
 *     │  Spark: the rest of its optimizer
 *     ▼
 *   rule/      rules that need semi and anti joins, or what all others have made (late batch)
 *     ▼
 *   strategy/  operators of joins and aggregations, shuffles  ← estimate/ rows ← stats/ footers, stages
 *     │                                                       ← cost/ time and memory of each operator
 *     │                                                       → exec/ operators that Spark lacks
 *     ▼
 *   the query runs; after each stage Spark plans the rest again, through the same strategy,
 *   now with measured rows
 *     ▼
 *   explain/   reads the decisions that the plan carries
 *   transfer/  takes statistics out of a session, and into one that lacks the data
 * }}}
 */
final class SelingerExtension(registry: Registry) extends (SparkSessionExtensions => Unit) {

  /** Called by Spark, with the class name from `spark.sql.extensions`. */
  def this() = this(Registry.all)

  /** Once for each session, though `spark.sql.extensions` may name it twice. */
  override def apply(extensions: SparkSessionExtensions): Unit =
    if (SelingerExtension.extended.add(extensions)) inject(extensions)

  private def inject(extensions: SparkSessionExtensions): Unit = {
    val inactive = BuiltFor.unsupported(SPARK_VERSION)
    // Where the rest is not loaded, nobody can say what a setting is.
    lazy val unknown =
      new UnknownSettings(registry.settings.map(_.key) :+ Mechanism.setting)
    def unknownSettings = if (inactive.isEmpty) unknown.described else Nil
    extensions.injectTableFunction(TableFunctions.status(inactive, unknownSettings).description)
    inactive match {
      case Some(reason) => SelingerExtension.warnOnce(reason)
      case None =>
        injectFunctions(extensions)
        extensions.injectCheckRule { session =>
          // Called once for each session, when it analyses something for the first time.
          val _ = WarmUp.begin(Hook.classicOf(session))
          unknown.warn
        }
        injectImportedTables(extensions)
        injectRules(extensions)
    }
  }

  private def injectFunctions(extensions: SparkSessionExtensions): Unit = {
    // Asking for them registers the settings, so that Spark refuses a bad value from the first SET on.
    val settings = registry.settings
    extensions.injectTableFunction(TableFunctions.rules(registry.rules).description)
    extensions.injectTableFunction(TableFunctions.settings(settings).description)
    TransferFunctions.all.foreach(function => extensions.injectTableFunction(function.description))
    SketchFunctions.all.foreach(extensions.injectTableFunction)
    // After everything is resolved, since a plan that is a command must be one from the start.
    extensions.injectPostHocResolutionRule(_ => RunFunctionsOnce)
  }

  /** Relations that exist as statistics only; no rules, since they work whatever is switched off. */
  private def injectImportedTables(extensions: SparkSessionExtensions): Unit = {
    // Before Spark looks names up: an unknown catalog would be an error already.
    extensions.injectHintResolutionRule(session =>
      new ResolveImportedTables(Hook.classicOf(session))
    )
    // When a stage is about to run: several that fail at a time would hide what is wrong.
    extensions.injectQueryStageOptimizerRule(_ => RefuseImportedScans)
    // Before a command runs, which is as soon as it is analysed.
    extensions.injectCheckRule(_ => RefuseImportedWrites)
  }

  private def injectRules(extensions: SparkSessionExtensions): Unit = {
    // The one place where a pass of Spark's planner is opened: before any strategy looks at a plan.
    extensions.injectPlannerStrategy(_ => OpenPlanningPass)
    extensions.injectPlannerStrategy(_ => new TellSmallTables(SelingerConf.switches))
    extensions.injectOptimizerRule(session => new Prefetch(Hook.classicOf(session)))
    for (rule <- registry.rules; hook <- rule.hooks) hook.inject(extensions)
    // What a rule has put into a plan is planned whatever is switched off by then.
    extensions.injectPlannerStrategy(_ => PlanAggregatePerTask)
  }
}

object SelingerExtension {

  private val log = LoggerFactory.getLogger("io.selinger")
  @volatile private var warned = false

  // Spark makes one for the first session of an application, and all sessions have it.
  private val extended = Collections.synchronizedSet(
    Collections.newSetFromMap(new WeakHashMap[SparkSessionExtensions, java.lang.Boolean])
  )

  private def warnOnce(reason: String): Unit = synchronized {
    if (!warned) {
      warned = true
      log.warn(s"Selinger is not active: $reason. Queries run as without it.")
    }
  }
}
