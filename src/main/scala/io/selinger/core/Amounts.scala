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
    else scaled(value / 1e6, Seq("M", "G", "T"), thousand)

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
