package io.selinger.ordering.graph

/**
 * Relations of a region, by number, as bits: one word holds up to 64 of them, an array what is
 * beyond, so that small regions pay nothing for large ones.
 *
 * @param high words from the 65th relation on, the last of them not zero
 */
final class RelationSet private (private val low: Long, private val high: Array[Long]) {
  import RelationSet._

  def isEmpty: Boolean = low == 0L && high.length == 0

  def nonEmpty: Boolean = !isEmpty

  def size: Int = {
    var count = java.lang.Long.bitCount(low)
    var i = 0
    while (i < high.length) {
      count += java.lang.Long.bitCount(high(i))
      i += 1
    }
    count
  }

  /** The first 64 relations as bits. */
  def bits: Long = low

  def contains(relation: Int): Boolean = (word(relation >> 6) & (1L << relation)) != 0L

  def |(other: RelationSet): RelationSet =
    if (high.length == 0 && other.high.length == 0) small(low | other.low)
    else combined(other, math.max(high.length, other.high.length), _ | _)

  def &(other: RelationSet): RelationSet =
    if (high.length == 0 || other.high.length == 0) small(low & other.low)
    else combined(other, math.min(high.length, other.high.length), _ & _)

  def without(other: RelationSet): RelationSet =
    if (high.length == 0) small(low & ~other.low)
    else combined(other, high.length, (a, b) => a & ~b)

  def within(other: RelationSet): Boolean =
    (low & ~other.low) == 0L && {
      var i = 0
      while (i < high.length && (high(i) & ~other.word(i + 1)) == 0L) i += 1
      i == high.length
    }

  def meets(other: RelationSet): Boolean =
    (low & other.low) != 0L || {
      val words = math.min(high.length, other.high.length)
      var i = 0
      while (i < words && (high(i) & other.high(i)) == 0L) i += 1
      i < words
    }

  /** The relation with the least number; of no use on the empty set. */
  def lowest: Int =
    if (low != 0L) java.lang.Long.numberOfTrailingZeros(low)
    else {
      val i = high.indexWhere(_ != 0L)
      (i + 1) * 64 + java.lang.Long.numberOfTrailingZeros(high(i))
    }

  /** The least number of those that both have; -1 if there is none. */
  def lowestShared(other: RelationSet): Int =
    if ((low & other.low) != 0L) java.lang.Long.numberOfTrailingZeros(low & other.low)
    else {
      val words = math.min(high.length, other.high.length)
      var i = 0
      while (i < words && (high(i) & other.high(i)) == 0L) i += 1
      if (i == words) -1
      else (i + 1) * 64 + java.lang.Long.numberOfTrailingZeros(high(i) & other.high(i))
    }

  /** Whether some member has a property; without a list of them, for the searches' inner loops. */
  def exists(holds: Int => Boolean): Boolean = {
    var found = false
    var i = 0
    while (i <= high.length && !found) {
      var rest = word(i)
      while (rest != 0L && !found) {
        found = holds(i * 64 + java.lang.Long.numberOfTrailingZeros(rest))
        rest &= rest - 1
      }
      i += 1
    }
    found
  }

  def foreach(visit: Int => Unit): Unit = {
    val _ = exists { member =>
      visit(member)
      false
    }
  }

  def members: IndexedSeq[Int] = {
    val found = new Array[Int](size)
    var next = 0
    foreach { member =>
      found(next) = member
      next += 1
    }
    scala.collection.immutable.ArraySeq.unsafeWrapArray(found)
  }

  private def word(i: Int): Long =
    if (i == 0) low else if (i <= high.length) high(i - 1) else 0L

  private def combined(other: RelationSet, words: Int, op: (Long, Long) => Long): RelationSet = {
    val all = new Array[Long](words)
    var last = 0
    var i = 0
    while (i < words) {
      all(i) = op(word(i + 1), other.word(i + 1))
      if (all(i) != 0L) last = i + 1
      i += 1
    }
    new RelationSet(
      op(low, other.low),
      if (last == 0) none else if (last == words) all else all.take(last)
    )
  }

  override def equals(other: Any): Boolean = other match {
    case set: RelationSet => low == set.low && java.util.Arrays.equals(high, set.high)
    case _ => false
  }

  override def hashCode: Int = {
    var mixed = low * 0x9e3779b97f4a7c15L
    var i = 0
    while (i < high.length) {
      mixed = (mixed ^ high(i)) * 0x9e3779b97f4a7c15L
      i += 1
    }
    (mixed >>> 32).toInt
  }

  override def toString: String = members.mkString("{", ",", "}")
}

object RelationSet {

  private val none = Array.empty[Long]

  val empty: RelationSet = new RelationSet(0L, none)

  private def small(bits: Long): RelationSet =
    if (bits == 0L) empty else new RelationSet(bits, none)

  /** Relations below 64, of which the bits are set. */
  def ofBits(bits: Long): RelationSet = small(bits)

  def single(relation: Int): RelationSet =
    if (relation < 64) small(1L << relation)
    else {
      val words = new Array[Long](relation >> 6)
      words((relation >> 6) - 1) = 1L << relation
      new RelationSet(0L, words)
    }

  /** Relations 0 to `count - 1`. */
  def first(count: Int): RelationSet =
    if (count < 64) small((1L << count) - 1)
    else {
      val words = Array.tabulate(count >> 6) { i =>
        val left = count - (i + 1) * 64
        if (left >= 64) -1L else (1L << left) - 1
      }
      new RelationSet(-1L, if (count % 64 == 0) words.init else words)
    }

  def of(relations: IterableOnce[Int]): RelationSet =
    relations.iterator.foldLeft(empty)((set, i) => set | single(i))

  def union(sets: IterableOnce[RelationSet]): RelationSet = sets.iterator.foldLeft(empty)(_ | _)
}
