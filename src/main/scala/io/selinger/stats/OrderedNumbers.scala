package io.selinger.stats

/** Values of one type that compare as whole numbers do: whole numbers, days, times, short decimals. */
trait OrderedNumbers {

  def length: Int

  def isNull(i: Int): Boolean

  /** The number that value `i` compares as; of nulls it says nothing. */
  def number(i: Int): Long

  /** The number that a value of the same type compares as; none for other values. */
  def numberOf(value: Any): Option[Long]
}
