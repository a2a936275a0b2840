package org.apache.spark.sql.selinger

import java.util.Locale
import org.apache.spark.internal.config.{ConfigBuilder, ConfigEntry, TypedConfigBuilder}
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

  /** The default of a typed conf, ours or Spark's, if it has one. */
  def defaultOf(key: String): Option[String] =
    Option(
      ConfigEntry.findEntry(key)
    ).map(_.defaultValueString).filterNot(_ == ConfigEntry.UNDEFINED)

  private def builder(key: String, doc: String) =
    SQLConf.buildConf(key).doc(doc).version("0.1.0")

  // Another class loader of this JVM may have loaded the jar before; Spark knows one entry a key.
  private def entry[A](key: String)(create: => ConfigEntry[A]): ConfEntry[A] =
    new ConfEntry(ConfigEntry.findEntry(key) match {
      case null => create
      case known => known.asInstanceOf[ConfigEntry[A]]
    })

  private def checked[A](key: String, doc: String, default: A)(
      typed: ConfigBuilder => TypedConfigBuilder[A]
  )(
      check: A => Boolean,
      message: String
  ): ConfEntry[A] =
    entry(key)(typed(builder(key, doc)).checkValue(check, message).createWithDefault(default))

  def flag(key: String, default: Boolean, doc: String): ConfEntry[Boolean] =
    entry(key)(builder(key, doc).booleanConf.createWithDefault(default))

  def choice(key: String, default: String, among: Seq[String], doc: String): ConfEntry[String] =
    checked(key, doc, default)(_.stringConf.transform(_.toLowerCase(Locale.ROOT)))(
      among.contains,
      s"must be one of ${among.mkString(", ")}"
    )

  def text(key: String, default: String, doc: String): ConfEntry[String] =
    entry(key)(builder(key, doc).stringConf.createWithDefault(default))

  def number(key: String, default: Double, doc: String)(
      check: Double => Boolean,
      message: String
  ): ConfEntry[Double] =
    checked(key, doc, default)(_.doubleConf)(check, message)

  def count(key: String, default: Long, doc: String): ConfEntry[Long] =
    checked(key, doc, default)(_.longConf)(_ > 0, "must be greater than 0")

  def amount(key: String, default: Long, doc: String): ConfEntry[Long] =
    checked(key, doc, default)(_.longConf)(_ >= 0, "must be 0 or greater")

  /** @param default as a user would write it, such as `64m` */
  def bytes(key: String, default: String, doc: String): ConfEntry[Long] = entry(key)(
    builder(key, doc)
      .bytesConf(ByteUnit.BYTE)
      .checkValue(_ >= 0, "must be 0 or greater")
      .createWithDefaultString(default)
  )
}
