package io.selinger

import io.selinger.conf.SelingerConf
import io.selinger.core.{Mode, RuleActivity}
import java.nio.file.{Files, Path, StandardCopyOption}
import java.util.concurrent.atomic.AtomicBoolean
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{
  HadoopFsRelation,
  InMemoryFileIndex,
  LogicalRelation
}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.slf4j.LoggerFactory
import scala.util.Using
import scala.util.control.NonFatal

/**
 * Plans some made-up queries once in the life of a JVM, in the background, when its first session
 * begins to be used. The first plan of a JVM takes seconds, most of which are spent on loading
 * classes, Spark's as well as ours; while a user's program reads the schemas of its tables, a thread of
 * its own can do that.
 *
 * The queries read a small Parquet file from our jar, so that footers and samples are warm as well. They
 * are planned and never run: no job is started, nothing is registered in the session. Rules of other
 * extensions see their plans, as those of any query. Whatever fails here concerns nobody, and the thread
 * ends when it is done.
 */
private[selinger] object WarmUp {

  private val log = LoggerFactory.getLogger("io.selinger")
  private val begun = new AtomicBoolean

  private val threadName = "selinger-warm-up"

  /**
   * Begins in the background, unless this JVM has done so before or the session does not want it. The
   * thread, if there is one.
   */
  def begin(session: SparkSession): Option[Thread] =
    quietly(Option.empty[Thread]) {
      Option.when(isWanted(session) && begun.compareAndSet(false, true)) {
        val thread = new Thread(() => quietly(())(plan(session)), threadName)
        thread.setDaemon(true)
        thread.start()
        thread
      }
    }

  /** By the settings of the session, which may not be the one of this thread yet. */
  private def isWanted(session: SparkSession): Boolean = {
    val conf = session.sessionState.conf
    SQLConf.withExistingConf(conf) {
      SelingerConf.WARM_UP.value && SelingerConf.switches.mode != Mode.Off &&
      // Where one path counts as many, Spark lists it by a job.
      conf.parallelPartitionDiscoveryThreshold > 0
    }
  }

  private def quietly[A](otherwise: A)(body: => A): A =
    try body
    catch {
      // No thread to be had is an error of the JVM.
      case error @ (NonFatal(_) | _: LinkageError | _: StackOverflowError | _: OutOfMemoryError) =>
        log.debug("Could not warm up, so the first query may be planned more slowly", error)
        otherwise
    }

  /** Plans each of the queries in this session, on the calling thread. */
  def plan(session: SparkSession): Unit = {
    val file = Files.createTempFile("selinger-warm-up", ".parquet")
    // A program may be shorter than this.
    file.toFile.deleteOnExit()
    try {
      Using.resource(getClass.getResourceAsStream(resource)) {
        Files.copy(_, file, StandardCopyOption.REPLACE_EXISTING)
      }
      val relation = relationOf(session, file)
      SQLConf.withExistingConf(settings(session)) {
        RuleActivity.uncounted {
          session.withActive(queries.foreach(planOne(session, relation, _)))
        }
      }
    } finally {
      val _ = Files.deleteIfExists(file)
    }
  }

  /** Those of the session, but our file is small, and that must not matter. */
  private def settings(session: SparkSession): SQLConf = {
    val conf = session.sessionState.conf.clone()
    conf.setConfString(SelingerConf.SMALL_TABLE_MAX_BYTES.key, "0")
    conf
  }

  private def planOne(session: SparkSession, relation: LogicalPlan, sql: String): Unit = {
    val parsed = CatalystSqlParser.parsePlan(sql).transformUpWithSubqueries {
      case UnresolvedRelation(Seq(`table`), _, _) => SubqueryAlias(table, relation)
    }
    val _ = session.sessionState.executePlan(parsed).executedPlan
  }

  private val resource = "warm-up.parquet"
  private val table = "t"

  /** Columns of the file. */
  val schema: StructType =
    StructType.fromDDL("id BIGINT, k INT, s STRING, d DATE, p DECIMAL(7, 2), v DOUBLE")

  // With the schema known, and one path of the local file system, Spark starts no job for it.
  private def relationOf(session: SparkSession, file: Path): LogicalPlan = {
    val paths = Seq(new HadoopPath(file.toUri))
    val index = new InMemoryFileIndex(session, paths, Map.empty, Some(schema))
    LogicalRelation(
      HadoopFsRelation(
        index,
        partitionSchema = new StructType(),
        dataSchema = schema,
        bucketSpec = None,
        fileFormat = new ParquetFileFormat(),
        options = Map.empty
      )(session)
    )
  }

  /** Between them they have most of what rules look at; what most queries have comes first. */
  val queries: Seq[String] = Seq(
    """SELECT a.s, sum(b.p) AS total FROM t a JOIN t b ON a.id = b.id
      |WHERE a.k < 7 AND b.d >= DATE'2020-01-01' GROUP BY a.s ORDER BY total DESC""".stripMargin,
    // An order of joins, its operators, and a partial aggregate below a join.
    """SELECT a.s, sum(b.p * b.k), avg(b.v), count(*)
      |FROM t a JOIN t b ON a.id = b.id JOIN t c ON b.k = c.k LEFT JOIN t e ON c.id = e.id
      |WHERE a.k < 7 AND a.s LIKE 'a%' AND b.d BETWEEN DATE'2020-01-01' AND DATE'2020-03-01'
      |GROUP BY a.s HAVING sum(b.p) > 10 ORDER BY 2 DESC LIMIT 10""".stripMargin,
    // Semi and anti joins, a set operation, a scalar subquery.
    """SELECT k, max(s), count(DISTINCT id) FROM t
      |WHERE id IN (SELECT id FROM t WHERE k = 3)
      |  AND NOT EXISTS (SELECT 1 FROM t x WHERE x.id = t.id AND x.k > 5)
      |  AND p > (SELECT 1.2 * avg(p) FROM t y WHERE y.k = t.k)
      |GROUP BY k UNION ALL SELECT k, s, id FROM t WHERE v IS NULL""".stripMargin,
    // Grouping sets, a filter of ranks.
    """SELECT * FROM (
      |  SELECT k, s, sum(p) AS total, rank() OVER (PARTITION BY k ORDER BY sum(p) DESC) AS place
      |  FROM t GROUP BY ROLLUP (k, s)
      |) WHERE place <= 3""".stripMargin
  )
}
