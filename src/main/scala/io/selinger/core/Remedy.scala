package io.selinger.core

/**
 * A Spark conf that would change a decision.
 *
 * @param value what to set it to; an empty one means that it must be unset, none that no value is known
 */
final case class Remedy(key: String, value: Option[String])

object Remedy {

  private val step = 0.01

  /** A share below `gain`, by which what was too little becomes enough; none where nothing is gained. */
  def below(gain: Double): Option[String] =
    Option.when(gain > 0.0) {
      val share = math.ceil(gain / step - 1.0) * step
      text(math.max(0.0, share))
    }

  /** A share of at least `gain`, by which what was enough becomes too little; none above 0.99. */
  def above(gain: Double): Option[String] = {
    val share = math.ceil(gain / step) * step
    Option.when(share < 0.995)(text(math.max(step, share)))
  }

  private def text(share: Double): String =
    BigDecimal(share)
      .setScale(2, BigDecimal.RoundingMode.HALF_UP)
      .bigDecimal
      .stripTrailingZeros
      .toPlainString
}
