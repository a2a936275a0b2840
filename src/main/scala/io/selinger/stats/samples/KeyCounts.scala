package io.selinger.stats.samples

import java.util.stream.IntStream

/** Occurrences in the two halves of a sample. */
final case class Occurrences(even: Int, odd: Int) {
  def all: Int = even + odd
}

/**
 * How often each key occurs.
 *
 * @param sorted hashes, those of equal keys together, whose lowest bit says which half they are from
 */
final case class KeyCounts(sorted: Array[Long]) {

  lazy val total: Occurrences = occurrences(0, sorted.length)

  /** Occurrences in a part of the hashes. */
  private[stats] def occurrences(from: Int, until: Int): Occurrences = {
    var i = from
    var odd = 0
    while (i < until) {
      odd += (sorted(i) & 1L).toInt
      i += 1
    }
    Occurrences(until - from - odd, odd)
  }

  /** Where the key that begins at `from` ends. */
  private def end(from: Int): Int = {
    val key = sorted(from) >> 1
    var i = from + 1
    while (i < sorted.length && sorted(i) >> 1 == key) i += 1
    i
  }

  private lazy val (sizes: Array[Int], keysOfSize: Array[Int]) = bySize

  /**
   * The numbers of rows that keys have, the largest first, and how many keys have each: few numbers,
   * though there may be many keys. In a method of its own, for profiles show that the JVM goes on
   * interpreting a loop inside a lazy value.
   */
  private def bySize: (Array[Int], Array[Int]) = {
    val keys = new Array[Int](sorted.length + 1)
    var (from, largest) = (0, 0)
    while (from < sorted.length) {
      val next = end(from)
      keys(next - from) += 1
      largest = math.max(largest, next - from)
      from = next
    }
    val found = IntStream.rangeClosed(-largest, -1).map(-_).filter(keys(_) > 0).toArray
    (found, found.map(keys(_)))
  }

  /** Distinct keys, and those of them that occur once. */
  def distinct: (Int, Int) =
    (keysOfSize.sum, if (sizes.lastOption.contains(1)) keysOfSize.last else 0)

  /** Pairs of equal keys, each row with itself among them. */
  lazy val squares: Double =
    sizes.indices.map(i => keysOfSize(i) * sizes(i).toDouble * sizes(i)).sum

  /** Rows that so many keys have at most. */
  def ofMostFrequent(keys: Double): Double = {
    var rows = 0.0
    var left = math.floor(keys)
    var i = 0
    while (i < sizes.length && left > 0.0) {
      val taken = math.min(left, keysOfSize(i).toDouble)
      rows += taken * sizes(i)
      left -= taken
      i += 1
    }
    rows
  }
}

object KeyCounts {

  /** Calls `found` with the occurrences of each key that both have. */
  def common(left: KeyCounts, right: KeyCounts)(found: (Occurrences, Occurrences) => Unit): Unit = {
    val ofLeft = left.sorted
    val ofRight = right.sorted
    var i = 0
    var j = 0
    while (i < ofLeft.length && j < ofRight.length) {
      val leftKey = ofLeft(i) >> 1
      val rightKey = ofRight(j) >> 1
      if (leftKey < rightKey) i += 1
      else if (leftKey > rightKey) j += 1
      else {
        val leftEnd = left.end(i)
        val rightEnd = right.end(j)
        found(left.occurrences(i, leftEnd), right.occurrences(j, rightEnd))
        i = leftEnd
        j = rightEnd
      }
    }
  }
}
