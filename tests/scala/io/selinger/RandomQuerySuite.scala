package io.selinger

import io.selinger.conf.SelingerConf
import io.selinger.ordering.ReorderJoins
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.testing.{Answer, Plans, RandomQueries, SharedSession, Tables}
import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

/**
 * Law 1 on random queries under random settings. `SELINGER_SEED` repeats a run; the seed of a failure
 * is in its message.
 */
class RandomQuerySuite extends AnyFunSuite with SharedSession {

  private val seed = sys.env.get("SELINGER_SEED").map(_.toLong).getOrElse(20240229L)
  private val queries = 80

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

  private val random = new Random(seed)

  private def some(among: Seq[(String, Seq[String])], share: Double): Seq[(String, String)] =
    among.collect {
      case (key, values) if random.nextDouble() < share =>
        key -> values(random.nextInt(values.size))
    }

  test(s"$queries random queries answer as stock Spark does (seed $seed)") {
    Tables.register(spark)
    val generator = new RandomQueries(seed)
    val changed = (1 to queries).count { i =>
      val text = generator.next()
      val common = Seq(
        "spark.sql.shuffle.partitions" -> "2",
        "spark.sql.adaptive.enabled" -> random.nextBoolean().toString,
        "spark.sql.sources.fileCompressionFactor" -> (if (random.nextInt(5) == 0) "1"
                                                      else "1000000")
      )
      val chosen = some(settings, 0.2) ++ some(brakes, 0.05)
      def run = { val df = spark.sql(text); (Answer.of(df), Plans.joins(df)) }
      val (expected, stockJoins) = withConf(common :+ (SelingerConf.MODE.key -> "off"): _*)(run)
      val (found, joins) = withConf(common ++ chosen: _*)(run)
      Answer.difference(expected, found).foreach { difference =>
        fail(s"query $i of seed $seed: $difference\n$text\n${(common ++ chosen).mkString("\n")}")
      }
      joins != stockJoins
    }
    info(s"$changed of $queries queries ran another plan")
    assert(changed >= queries / 4)
  }
}
