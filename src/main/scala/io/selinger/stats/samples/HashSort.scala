package io.selinger.stats.samples

/** Sorts thousands of numbers by 32 of their bits, in linear time. */
private[samples] object HashSort {

  private val digitBits = 11

  /**
   * The first `count` of `keys` by the 32 bits from bit `from`, taken as a number without a sign; a
   * stable radix sort, beginning at the lowest digit, in three passes. `keys` is overwritten.
   */
  def sorted(keys: Array[Long], count: Int, from: Int): Array[Long] = {
    var source = keys
    var target = new Array[Long](count)
    var bit = 0
    while (bit < 32) {
      val bits = math.min(digitBits, 32 - bit)
      scatter(source, target, count, from + bit, bits)
      val done = target
      target = source
      source = done
      bit += bits
    }
    source
  }

  private def scatter(
      source: Array[Long],
      target: Array[Long],
      count: Int,
      shift: Int,
      bits: Int
  ): Unit = {
    val mask = (1L << bits) - 1
    val starts = new Array[Int]((1 << bits) + 1)
    var i = 0
    while (i < count) {
      starts(((source(i) >>> shift) & mask).toInt + 1) += 1
      i += 1
    }
    i = 1
    while (i < starts.length) {
      starts(i) += starts(i - 1)
      i += 1
    }
    i = 0
    while (i < count) {
      val digit = ((source(i) >>> shift) & mask).toInt
      target(starts(digit)) = source(i)
      starts(digit) += 1
      i += 1
    }
  }
}
