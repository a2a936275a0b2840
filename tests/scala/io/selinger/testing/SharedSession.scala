package io.selinger.testing

import io.selinger.SelingerExtension
import io.selinger.conf.SelingerConf
import io.selinger.core.PlanningPass
import io.selinger.explain.SelingerExplain
import io.selinger.rule.EliminateGrouping
import java.nio.file.{Files, Path}
import java.util.Comparator
import org.apache.spark.sql.{DataFrame, SparkSession => ApiSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.catalog.TemporaryViewRelation
import org.apache.spark.sql.catalyst.rules.RuleExecutor
import org.apache.spark.sql.classic.SparkSession
import org.scalatest.{BeforeAndAfterEach, Suite}

/**
 * The one Spark of all suites. Its session has the extension and raises what goes wrong in it. Temporary
 * views that a test creates or replaces are as before after it.
 */
trait SharedSession extends BeforeAndAfterEach { this: Suite =>

  protected def spark: SparkSession = SharedSession.selinger

  /** Holds in all sessions of the suite: [[SharedSession.interpreted]], if its rules make no operators. */
  protected def ofSuite: Seq[(String, String)] = Nil

  private var viewsBefore = Map.empty[String, TemporaryViewRelation]

  override protected def beforeEach(): Unit = {
    SharedSession.use(spark)
    PlanningPass.start()
    // Spark adds up the times of all rules it has ever run, before and after each batch of rules.
    RuleExecutor.resetMetrics()
    ofSuite.foreach { case (key, value) => spark.conf.set(key, value) }
    viewsBefore = SharedSession.views(spark)
    super.beforeEach()
  }

  override protected def afterEach(): Unit =
    try super.afterEach()
    finally {
      ofSuite.foreach { case (key, _) => spark.conf.unset(key) }
      SharedSession.restore(spark, viewsBefore)
    }

  /** Runs `body` with these confs and puts the former values back. */
  protected def withConf[A](settings: (String, String)*)(body: => A): A =
    SharedSession.withConf(spark, settings)(body)

  /** What Spark answers under these settings without any rule; the plan is interpreted. */
  protected def stockAnswer(settings: (String, String)*)(query: => DataFrame): Answer = {
    val off = SelingerConf.MODE.key -> "off"
    withConf(settings ++ SharedSession.interpreted :+ off: _*)(Answer.of(query))
  }

  /**
   * Settings of the ways in which Spark runs a plan, adaptively or not, compiled or interpreted: its
   * default, and in a short run for every second key one of the others, for each key another one.
   */
  protected def waysToRun(key: Any): Seq[Seq[(String, String)]] = {
    val ways = for {
      adaptive <- Seq("true", "false")
      code <- Seq(SharedSession.compiled, SharedSession.interpreted)
    } yield code :+ ("spark.sql.adaptive.enabled" -> adaptive)
    Grid.firstAndSome(ways, key)
  }

  protected def withFolder[A](body: Path => A): A = {
    val folder = Files.createTempDirectory("selinger-test")
    try body(folder)
    finally SharedSession.delete(folder)
  }

  /** A session on the same Spark that loads just these extensions. */
  protected def withSession[A](extensions: (SparkSessionExtensions => Unit)*)(
      body: SparkSession => A
  ): A = {
    val session = SharedSession.create(extensions)
    ofSuite.foreach { case (key, value) => session.conf.set(key, value) }
    SharedSession.use(session)
    try body(session)
    finally SharedSession.use(spark)
  }
}

object SharedSession {

  // Spark reads this in places that have no session. Pages of the usual 64 MiB would hide what hash
  // tables take, and fill the heap of the tests.
  System.setProperty("spark.buffer.pageSize", "1m")

  private val patient = 60000L

  /** Spark without the extension. */
  lazy val stock: SparkSession = create(Nil)

  lazy val selinger: SparkSession = create(Seq(new SelingerExtension))

  /** Code is generated, or the query fails. */
  val compiled: Seq[(String, String)] = Seq(
    "spark.sql.codegen.wholeStage" -> "true",
    "spark.sql.codegen.factoryMode" -> "CODEGEN_ONLY"
  )

  /** Groups of one row stay groups, also by a proven key. */
  val grouped: Seq[(String, String)] = Seq(SelingerConf.switchOf(EliminateGrouping).key -> "false")

  /** No code is generated: to compile it takes longer than a small query runs. */
  val interpreted: Seq[(String, String)] = Seq(
    "spark.sql.codegen.wholeStage" -> "false",
    "spark.sql.codegen.factoryMode" -> "NO_CODEGEN",
    // The interpreter clears a cache of common expressions for each row.
    "spark.sql.subexpressionElimination.enabled" -> "false"
  )

  /** Runs `body` on stock Spark with the settings that the session `like` has now. */
  def onStock[A](like: SparkSession)(body: SparkSession => A): A = {
    val ours = like.conf.getAll.filter { case (key, _) => stock.conf.isModifiable(key) }
    withConf(stock, ours.toSeq)(body(stock))
  }

  /** Runs `body` with these confs in a session and puts the former values back. */
  def withConf[A](session: SparkSession, settings: Seq[(String, String)])(body: => A): A = {
    val conf = session.conf
    // What is set, rather than what applies: a default that is put back counts as set by the user.
    val before = conf.getAll
    try {
      settings.foreach { case (key, value) => conf.set(key, value) }
      body
    } finally settings.map(_._1).foreach { key =>
        before.get(key).fold(conf.unset(key))(conf.set(key, _))
      }
  }

  /** Runs `body`, after which the temporary views of a session are as before. */
  def withViews[A](session: SparkSession)(body: => A): A = {
    val before = views(session)
    try body
    finally restore(session, before)
  }

  private def views(session: SparkSession): Map[String, TemporaryViewRelation] = {
    val catalog = session.sessionState.catalog
    catalog.getTempViewNames().flatMap(name => catalog.getRawTempView(name).map(name -> _)).toMap
  }

  private def restore(session: SparkSession, before: Map[String, TemporaryViewRelation]): Unit = {
    val catalog = session.sessionState.catalog
    val now = views(session)
    now.keySet.diff(before.keySet).foreach(catalog.dropTempView)
    before.foreach { case (name, view) =>
      if (!now.get(name).exists(_ eq view)) {
        catalog.createTempView(name, view, overrideIfExists = true)
      }
    }
  }

  private def create(extensions: Seq[SparkSessionExtensions => Unit]): SparkSession = {
    val builder = SparkSession
      .builder()
      .master("local[2]")
      .appName("selinger-tests")
      .config("spark.ui.enabled", false)
      // Or each class name that generated code mentions is asked for over the network.
      .config("spark.sql.artifact.isolation.enabled", false)
      .config("spark.log.level", "OFF")
      // Spark describes each plan for its UI, in the longest form unless it is told otherwise.
      .config("spark.sql.ui.explainMode", "simple")
      .config("spark.driver.host", "localhost")
      .config("spark.hadoop.fs.file.impl", classOf[QuickLocalFileSystem].getName)
      // What is sent stays in this process.
      .config("spark.broadcast.compress", false)
      .config("spark.broadcast.checksum", false)
      .config("spark.shuffle.compress", false)
      .config("spark.sql.shuffle.partitions", 4L)
      .config("spark.sql.session.timeZone", "UTC")
      .config("spark.sql.warehouse.dir", warehouse.toString)
      .config("spark.sql.extendedExplainProviders", classOf[SelingerExplain].getName)
      .config("spark.selinger.failOnError", true)
      // Its plans would be made beside those of the first tests.
      .config(SelingerConf.WARM_UP.key, false)
      // What a test sees must not be read at another time by another thread.
      .config(SelingerConf.PREFETCH.key, false)
      // Or nothing would be decided on the tables of the tests.
      .config(SelingerConf.SMALL_TABLE_MAX_BYTES.key, 0L)
      // On data as small as that of tests all operators cost about the same.
      .config("spark.selinger.join.minGain", 0.0)
      // What a test sees must not depend on how fast the machine is.
      .config(SelingerConf.PLANNING_BUDGET_MS.key, patient)
      .config(SelingerConf.FOOTER_BUDGET_MS.key, patient)
      .config(SelingerConf.SAMPLING_BUDGET_MS.key, patient)
    builder.withExtensions(_.injectPreCBORule(_ => BeforeCbo))
    extensions.foreach(builder.withExtensions)
    MissingClasses.remember()
    val session = builder.create()
    // Spark's UI, which nobody sees here, has this listener add up metrics: a fifth of the processor time.
    session.sharedState.statusStore.listener.foreach(session.sparkContext.removeSparkListener)
    session
  }

  private def use(session: SparkSession): Unit = {
    ApiSession.setDefaultSession(session)
    ApiSession.setActiveSession(session)
  }

  private lazy val warehouse: Path = {
    val folder = Files.createTempDirectory("selinger-warehouse")
    sys.addShutdownHook(delete(folder))
    folder
  }

  private def delete(folder: Path): Unit = {
    val paths = Files.walk(folder)
    try paths.sorted(Comparator.reverseOrder[Path]()).forEach(path => Files.delete(path))
    finally paths.close()
  }
}
