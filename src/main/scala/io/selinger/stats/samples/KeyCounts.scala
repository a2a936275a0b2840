package io.selinger.stats.samples

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
    var (i, odd) = (from, 0)
    while (i < until) {
      odd += (sorted(i) & 1L).toInt
      i += 1
    }
    Occurrences(until - from - odd, odd)
  }

  /** Where the key that begins at `from` ends. */
  private[stats] def end(from: Int): Int = {
    val key = sorted(from) >> 1
    var i = from + 1
    while (i < sorted.length && sorted(i) >> 1 == key) i += 1
    i
  }

  /** Distinct keys, and those of them that occur once. */
  lazy val distinct: (Int, Int) = {
    val counts = sizes
    (counts.length, counts.count(_ == 1))
  }

  /** Rows of each key. */
  private def sizes: Array[Int] = {
    val found = Array.newBuilder[Int]
    var i = 0
    while (i < sorted.length) {
      val next = end(i)
      found += next - i
      i = next
    }
    found.result()
  }

  /** The sum of their squares: pairs of equal keys, each row with itself among them. */
  lazy val squares: Double = sizes.map(rows => rows.toDouble * rows).sum

  /** Rows of the most frequent key, of that and the next one, and so on. */
  private lazy val mostFrequent: Array[Int] = {
    val counts = sizes
    java.util.Arrays.sort(counts)
    counts.reverse.scanLeft(0)(_ + _).tail
  }

  /** Rows that so many keys have at most. */
  def ofMostFrequent(keys: Double): Double =
    if (mostFrequent.isEmpty || keys < 1.0) 0.0
    else mostFrequent(math.min(mostFrequent.length.toDouble, keys).toInt - 1).toDouble
}

object KeyCounts {

  /** Calls `found` with the occurrences of each key that both have. */
  def common(left: KeyCounts, right: KeyCounts)(found: (Occurrences, Occurrences) => Unit): Unit = {
    var (i, j) = (0, 0)
    while (i < left.sorted.length && j < right.sorted.length) {
      val (leftKey, rightKey) = (left.sorted(i) >> 1, right.sorted(j) >> 1)
      val (leftEnd, rightEnd) =
        (if (leftKey <= rightKey) left.end(i) else i, if (rightKey <= leftKey) right.end(j) else j)
      if (leftKey == rightKey) found(left.occurrences(i, leftEnd), right.occurrences(j, rightEnd))
      i = leftEnd
      j = rightEnd
    }
  }
}
