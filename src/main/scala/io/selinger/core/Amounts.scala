package io.selinger.core

import java.util.Locale

/** Numbers as people read them, the same in every locale: `64 MiB`, `26.6 M`, `102,000`. */
object Amounts {

  private val thousand = 1000.0

  /** In powers of 1024. */
  def bytes(value: Double): String = {
    val units = Seq("KiB", "MiB", "GiB", "TiB", "PiB")
    if (value < 1024.0) s"${whole(value)} B"
    else scaled(value / 1024.0, units, step = 1024.0)
  }

  /** Rows, files and other counts: in full below a million. */
  def count(value: Double): String =
    if (value < 1e6) String.format(Locale.ROOT, "%,d", Long.box(math.round(value)))
    else if (value >= 1e15) "more than 1,000 trillion"
    else scaled(value / 1e6, Seq("M", "billion", "trillion"), thousand)

  /** How many times as much one number is as another: `3.1`, `42`, `1,200`. */
  def factor(value: Double): String = {
    val shown =
      if (value < 9.95) BigDecimal(value).setScale(1, BigDecimal.RoundingMode.HALF_UP)
      else BigDecimal(value).round(new java.math.MathContext(2))
    if (value < 1e6) String.format(Locale.ROOT, "%,.1f", shown.bigDecimal).stripSuffix(".0")
    else "more than a million"
  }

  /** A size as a Spark conf takes it, at most `value`, at least one byte: `147k`. */
  def confBytes(value: Double): String = {
    val units = Seq("g" -> 1073741824.0, "m" -> 1048576.0, "k" -> 1024.0)
    units
      .find { case (_, size) => value >= 10 * size }
      .orElse(units.lastOption.filter(_ => value >= 1024.0))
      .fold(s"${math.max(1L, value.toLong)}b") { case (unit, size) =>
        s"${math.floor(value / size).toLong}$unit"
      }
  }

  /** Three digits that count, without an exponent. */
  def number(value: Double): String =
    if (value == 0.0 || value.isNaN || value.isInfinite) value.toString.stripSuffix(".0")
    else if (math.abs(value) >= 1e6) count(value)
    else {
      val places = math.max(0, 2 - math.floor(math.log10(math.abs(value))).toInt)
      tidy(BigDecimal(value).setScale(places, BigDecimal.RoundingMode.HALF_UP))
    }

  private def scaled(value: Double, units: Seq[String], step: Double): String =
    if (value >= step - 0.05 && units.size > 1) scaled(value / step, units.tail, step)
    else if (value >= 1e6) s"more than a million ${units.head}"
    else s"${tidy(BigDecimal(value).setScale(1, BigDecimal.RoundingMode.HALF_UP))} ${units.head}"

  private def tidy(value: BigDecimal): String = value.bigDecimal.stripTrailingZeros.toPlainString

  private def whole(value: Double): String = math.round(value).toString
}
