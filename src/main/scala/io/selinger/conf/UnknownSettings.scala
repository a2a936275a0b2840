package io.selinger.conf

import java.util.concurrent.ConcurrentHashMap
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.SetCommand
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.unsafe.types.UTF8String
import org.slf4j.LoggerFactory

/**
 * Keys below `spark.selinger.` that are no settings, in most cases because they are mistyped: Spark
 * accepts any key, and so nothing would tell that they do nothing.
 *
 * @param known every key that Selinger reads
 */
final class UnknownSettings(known: => Seq[String]) {

  private lazy val keys = known.toSet

  /** Those of the session of the calling thread, each with the setting that was probably meant. */
  def described: Seq[String] = unknown(SQLConf.get.getAllConfs.keys.toSeq).sorted.map(describe)

  /** Logs each once, as soon as a query or a `SET` comes. For Spark's check rules; changes nothing. */
  val warn: LogicalPlan => Unit = { plan =>
    val set = plan match {
      case SetCommand(Some((key, Some(_)))) => Seq(key)
      case _ => Nil
    }
    for (
      key <- unknown(set ++ SQLConf.get.getAllConfs.keys)
      if UnknownSettings.warned.size < UnknownSettings.mostWarned &&
        UnknownSettings.warned.add(key)
    ) UnknownSettings.log.warn(s"Selinger has no setting ${describe(key)}. It does nothing.")
  }

  private def unknown(all: Seq[String]) =
    all.filter(key => key.startsWith(UnknownSettings.prefix) && !keys(key)).distinct

  private def describe(key: String) =
    key + nearest(key).fold("")(setting => s" (did you mean $setting?)")

  /** The closest key, unless all are far from it: half of its characters may be wrong. */
  private[conf] def nearest(key: String): Option[String] = {
    def distance(setting: String) =
      UTF8String.fromString(key.toLowerCase(java.util.Locale.ROOT))
        .levenshteinDistance(UTF8String.fromString(setting.toLowerCase(java.util.Locale.ROOT)))
    val own = key.length - UnknownSettings.prefix.length
    keys.toSeq.map(setting => (distance(setting), setting)).minOption.collect {
      case (far, setting) if far <= math.max(1, own / 2) => setting
    }
  }
}

object UnknownSettings {
  private val log = LoggerFactory.getLogger("io.selinger")
  private val prefix = "spark.selinger."

  // By key, for all sessions of this JVM.
  private val warned = ConcurrentHashMap.newKeySet[String]()
  private val mostWarned = 100
}
