package io.selinger

import io.selinger.conf.SelingerConf
import io.selinger.core.BuildInfo
import io.selinger.explain.TableFunctions
import io.selinger.ordering.ReorderJoins
import io.selinger.rule.ShareEstimates
import io.selinger.stats.sketches.{RunFunctionsOnce, SketchFunctions}
import io.selinger.strategy.{AwaitBuildSide, SelectJoinOperator}
import io.selinger.transfer.{
  RefuseImportedScans,
  RefuseImportedWrites,
  ResolveImportedTables,
  TransferFunctions
}
import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.classic
import org.slf4j.LoggerFactory

/**
 * What `spark.sql.extensions=io.selinger.SelingerExtension` loads. Every injection is here.
 *
 * {{{
 *   SQL or DataFrame
 *     │  Spark: parse, analyse, push predicates down
 *     ▼
 *   ordering/  ReorderJoins         ← estimate/, cost/ as below
 *   rule/      ShareEstimates       ← estimate/; off unless asked for
 *     │  Spark: the rest of its optimizer
 *     ▼
 *   strategy/  SelectJoinOperator   ← estimate/ rows of both sides ← stats/ footers, stages
 *     │        AwaitBuildSide       ← cost/     time and memory of each operator
 *     │                             → exec/     what adaptive execution waits by
 *     ▼
 *   the query runs; after each stage Spark plans the rest again, through the same strategy,
 *   now with measured rows
 *     ▼
 *   explain/   reads the decisions that the plan carries
 *   transfer/  takes statistics out of a session, and into one that lacks the data
 * }}}
 */
class SelingerExtension extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit = {
    val inactive = SelingerExtension.unsupported(SPARK_VERSION)
    extensions.injectTableFunction(TableFunctions.status(inactive).description)
    inactive match {
      case Some(reason) => SelingerExtension.warnOnce(reason)
      case None => inject(extensions)
    }
  }

  private def inject(extensions: SparkSessionExtensions): Unit = {
    // Registers the settings, so that Spark refuses a bad value from the first SET on.
    require(SelingerConf.all.nonEmpty)
    extensions.injectTableFunction(TableFunctions.rules.description)
    extensions.injectTableFunction(TableFunctions.settings.description)
    TransferFunctions.all.foreach(function => extensions.injectTableFunction(function.description))
    // Before Spark looks names up: an unknown catalog would be an error already.
    extensions.injectHintResolutionRule(session => new ResolveImportedTables(classicOf(session)))
    // When a stage is about to run: several that fail at a time would hide what is wrong.
    extensions.injectQueryStageOptimizerRule(_ => RefuseImportedScans)
    // Before a command runs, which is as soon as it is analysed.
    extensions.injectCheckRule(_ => RefuseImportedWrites)
    SketchFunctions.all.foreach(extensions.injectTableFunction)
    // After everything is resolved, since a plan that is a command must be one from the start.
    extensions.injectPostHocResolutionRule(_ => RunFunctionsOnce)
    // Once a query, after Spark has pushed predicates down and before it plans its scans.
    extensions.injectPreCBORule(session => new ReorderJoins(classicOf(session)))
    // In the order found, and before the late rules that read sizes.
    extensions.injectPreCBORule(_ => new ShareEstimates.ForRules)
    // A strategy, because it runs before Spark's JoinSelection and again at each adaptive re-plan.
    extensions.injectPlannerStrategy(session => new SelectJoinOperator(classicOf(session)))
    // After it, because it begins the pass; Spark's strategies read sizes when both have been asked.
    extensions.injectPlannerStrategy(_ => new ShareEstimates.ForStrategies)
    // Each time adaptive execution has planned, with all shuffles there, and before it begins stages.
    extensions.injectQueryStagePrepRule(session => new AwaitBuildSide(classicOf(session)))
  }

  // Extensions are applied on the server, where every session is a classic one.
  private def classicOf(session: SparkSession): classic.SparkSession = session match {
    case known: classic.SparkSession => known
    case other => throw new IllegalStateException(s"not a classic Spark session: ${other.getClass}")
  }
}

object SelingerExtension {

  private val log = LoggerFactory.getLogger("io.selinger")
  @volatile private var warned = false

  /** Why this jar must keep its hands off this Spark, if it must. */
  private[selinger] def unsupported(version: String): Option[String] = {
    val line = version.split('.').take(2).mkString(".")
    if (line == BuildInfo.sparkLine) None
    else
      Some(
        s"this jar was built for Spark ${BuildInfo.sparkLine} and runs on Spark $version; " +
          s"use selinger-spark-$line.jar, if there is one, or another Spark"
      )
  }

  private def warnOnce(reason: String): Unit = synchronized {
    if (!warned) {
      warned = true
      log.warn(s"Selinger is not active: $reason. Queries run as without it.")
    }
  }
}
