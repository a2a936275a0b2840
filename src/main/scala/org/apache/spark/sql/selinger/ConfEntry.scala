package org.apache.spark.sql.selinger

import org.apache.spark.internal.config.{ConfigEntry, TypedConfigBuilder}
import org.apache.spark.network.util.ByteUnit
import org.apache.spark.sql.internal.SQLConf

/**
 * A typed entry of Spark's SQL confs. Registered with Spark, so that `SET` refuses a value that
 * `check` does not accept, at once and with `message`. Spark keeps the builders to itself.
 */
final class ConfEntry[A] private (entry: ConfigEntry[A]) {
  def key: String = entry.key
  def doc: String = entry.doc
  def default: String = entry.defaultValueString

  /** The value in the session of the calling thread. */
  def value: A = SQLConf.get.getConf(entry)
}

object ConfEntry {

  private def builder(key: String, doc: String) =
    SQLConf.buildConf(key).doc(doc).version("0.1.0")

  private def checked[A](typed: TypedConfigBuilder[A], default: A)(
      check: A => Boolean,
      message: String): ConfEntry[A] =
    new ConfEntry(typed.checkValue(check, message).createWithDefault(default))

  def flag(key: String, default: Boolean, doc: String): ConfEntry[Boolean] =
    new ConfEntry(builder(key, doc).booleanConf.createWithDefault(default))

  def choice(key: String, default: String, among: Seq[String], doc: String): ConfEntry[String] =
    checked(builder(key, doc).stringConf, default)(
      among.contains,
      s"must be one of ${among.mkString(", ")}")

  def number(key: String, default: Double, doc: String)(
      check: Double => Boolean,
      message: String): ConfEntry[Double] =
    checked(builder(key, doc).doubleConf, default)(check, message)

  def count(key: String, default: Long, doc: String): ConfEntry[Long] =
    checked(builder(key, doc).longConf, default)(_ > 0, "must be greater than 0")

  def bytes(key: String, default: Long, doc: String): ConfEntry[Long] =
    checked(builder(key, doc).bytesConf(ByteUnit.BYTE), default)(_ >= 0, "must be 0 or greater")
}
