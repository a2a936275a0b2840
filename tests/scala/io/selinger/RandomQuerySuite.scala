package io.selinger

import io.selinger.conf.SelingerConf
import io.selinger.ordering.ReorderJoins
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.testing.{Answer, Grid, Plans, RandomQueries, SharedSession, Tables}
import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

/**
 * Law 1 on random queries under random settings: some that are always the same, and some that are new
 * at each run. `SELINGER_SEED` repeats a run; the seed of a failure is in its message.
 */
class RandomQuerySuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  // Settings and values that they may take; each query gets a random subset.
  private val settings: Seq[(String, Seq[String])] = Seq(
    SelingerConf.BROADCAST_MAX_BYTES.key -> Seq("1", "20k", "1g"),
    SelingerConf.BROADCAST_TOTAL_SHARE.key -> Seq("0.000001", "0.5"),
    SelingerConf.HASH_MEMORY_SHARE.key -> Seq("0.0001", "1.0"),
    SelingerConf.HASH_MEMORY_MARGIN.key -> Seq("1", "100"),
    SelingerConf.JOIN_MIN_GAIN.key -> Seq("0.25", "0.9"),
    SelingerConf.ORDER_MIN_GAIN.key -> Seq("0", "0.9"),
    SelingerConf.ORDER_MAX_PAIRS.key -> Seq("1"),
    SelingerConf.CBO_WEIGHT.key -> Seq("0", "0.3", "1"),
    SelingerConf.FOOTER_MAX_FILES.key -> Seq("1"),
    "spark.sql.join.preferSortMergeJoin" -> Seq("true", "false"),
    "spark.sql.autoBroadcastJoinThreshold" -> Seq("-1", "1000", "1000000"),
    "spark.sql.sources.useV1SourceList" -> Seq(""),
    "spark.sql.cbo.enabled" -> Seq("true"),
    "spark.sql.shuffle.partitions" -> Seq("1", "5")
  )

  // Settings that leave little to change, so they are rarer.
  private val brakes: Seq[(String, Seq[String])] = Seq(
    ReadFooterStatistics.switch -> Seq("false"),
    ReorderJoins.switch -> Seq("false"),
    SelingerConf.MODE.key -> Seq("advise")
  )

  private def some(
      random: Random,
      among: Seq[(String, Seq[String])],
      share: Double
  ): Seq[(String, String)] =
    among.collect {
      case (key, values) if random.nextDouble() < share =>
        key -> values(random.nextInt(values.size))
    }

  // Beside the minute of fuzzing that `make test` has.
  private val (known, fresh) = if (Grid.isWhole) (80, 40) else (12, 8)

  test(s"random queries answer as stock Spark does (new ones of seed ${Grid.seed})") {
    Tables.register(spark)
    val changed = changedOf(20240229L, known) + changedOf(Grid.seed, fresh)
    info(s"$changed of ${known + fresh} queries ran another plan")
    assert(changed >= (known + fresh) / 4)
  }

  private def changedOf(seed: Long, queries: Int): Int = {
    val random = new Random(seed)
    val generator = new RandomQueries(seed)
    (1 to queries).count { i =>
      val text = generator.next()
      val common = Seq(
        "spark.sql.shuffle.partitions" -> "2",
        "spark.sql.adaptive.enabled" -> random.nextBoolean().toString,
        "spark.sql.sources.fileCompressionFactor" -> (if (random.nextInt(5) == 0) "1"
                                                      else "1000000")
      )
      val chosen = some(random, settings, 0.2) ++ some(random, brakes, 0.05)
      def run = { val df = spark.sql(text); (Answer.of(df), Plans.joins(df)) }
      val (expected, stockJoins) = withConf(common :+ (SelingerConf.MODE.key -> "off"): _*)(run)
      val (found, joins) = withConf(common ++ chosen: _*)(run)
      Answer.difference(expected, found).foreach { difference =>
        fail(s"query $i of seed $seed: $difference\n$text\n${(common ++ chosen).mkString("\n")}")
      }
      joins != stockJoins
    }
  }
}
