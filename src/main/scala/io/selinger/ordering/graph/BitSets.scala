package io.selinger.ordering.graph

/**
 * Sets of relations below 64, each by its bits, numbered from 0 in the order in which they come: a hash
 * table without objects, since a search looks up hundreds of thousands of them. The empty set is none.
 */
private[ordering] final class BitSets {
  private var keys = new Array[Long](1024)
  private var numbers = new Array[Int](1024)
  private var inOrder = new Array[Long](1024)
  private var count = 0

  def size: Int = count

  def contains(bits: Long): Boolean = keys(slot(bits)) == bits

  /** The set of a number. */
  def bits(number: Int): Long = inOrder(number)

  /** The number of a set that was added. */
  def apply(bits: Long): Int = numbers(slot(bits))

  /** Its number, which is the next one if it is new. */
  def add(bits: Long): Int = {
    val at = slot(bits)
    if (keys(at) == bits) numbers(at)
    else {
      keys(at) = bits
      numbers(at) = count
      if (count == inOrder.length) inOrder = java.util.Arrays.copyOf(inOrder, count * 2)
      inOrder(count) = bits
      count += 1
      if (count * 2 > keys.length) grow()
      count - 1
    }
  }

  private def slot(bits: Long): Int = {
    val mask = keys.length - 1
    var at = ((bits * 0x9e3779b97f4a7c15L) >>> 32).toInt & mask
    while (keys(at) != 0L && keys(at) != bits) at = (at + 1) & mask
    at
  }

  private def grow(): Unit = {
    keys = new Array[Long](keys.length * 2)
    numbers = new Array[Int](keys.length)
    (0 until count).foreach { i =>
      val at = slot(inOrder(i))
      keys(at) = inOrder(i)
      numbers(at) = i
    }
  }
}
