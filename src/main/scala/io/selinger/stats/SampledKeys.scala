package io.selinger.stats

import com.google.common.cache.{Cache, CacheBuilder}
import io.selinger.stats.SampledKeys.Meeting
import java.util.concurrent.ConcurrentHashMap
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import scala.util.hashing.byteswap64

/**
 * Columns of those sampled rows of a relation that predicates have left, row by row and as hashes:
 * what two samples need to be joined, and what tells how many combinations several columns have.
 *
 * Hashes have 32 bits, four bytes a value: among two samples of 10,000 rows with no common value,
 * one pair in forty joins would be taken for equal.
 *
 * @param source the same for samples of the same rows
 * @param places of the rows within their sample; a relation is compared with itself between rows
 *   of even and of odd places, since a sampled row is no evidence of another one like it
 * @param columns hashes by the column's place
 * @param nulls whether the row's value is null, by the column's place
 * @param kinds values of one kind are equal if and only if their hashes are, up to collisions
 * @param ordered columns whose rows are in some order: two samples of such columns meet, or do not,
 *   by chance of where they were taken
 * @param complete whether these are all rows of the relation
 * @param neighbours hashes of values in pairs of rows next to each other, nulls as zero, by the
 *   column's place
 * @param all the same of all rows of the sample, where predicates have left only some of them
 * @param groups row groups that the sample is from
 * @param covered rows that it was spread over
 */
final class SampledKeys private (
    val source: String,
    places: Array[Int],
    columns: Map[Int, Array[Int]],
    nulls: Map[Int, java.util.BitSet],
    kinds: Map[Int, DataType],
    ordered: Set[Int],
    val complete: Boolean,
    neighbours: Map[Int, Array[Int]],
    all: Option[SampledKeys],
    val groups: Int,
    val covered: Long
) {

  /** The same of all rows of the sample, whatever predicates have left of them. */
  def whole: SampledKeys = all.getOrElse(this)

  val rows: Int = places.length

  /** Driver memory once each column has been counted, in bytes. */
  def bytes: Long = 500L + 4L * rows + columns.size * (300L + 13L * rows) +
    neighbours.valuesIterator.map(4L * _.length).sum + all.fold(0L)(_.bytes)

  def has(column: Int): Boolean = columns.contains(column)

  def kindOf(column: Int): Option[DataType] = kinds.get(column)

  /** Whether rows with equal values can be looked for in the sample of another relation. */
  def canMeet(column: Int): Boolean = complete || !ordered(column)

  private val dependencies = new ConcurrentHashMap[(Int, Int), Boolean]()

  /**
   * Whether rows with the same value in `column` have the same value in `other`, as all lines of an
   * order have one customer; `false` where the sample has too few rows to tell.
   */
  def determines(column: Int, other: Int): Boolean =
    dependencies.computeIfAbsent(
      (column, other),
      _ => agree(column, other) || neighboursAgree(column, other)
    )

  /**
   * Share of rows whose value is not that of the row before, a null counting as a value: there are no
   * more values than runs of equal ones. `None` where too few rows were sampled with the next one.
   */
  def changing(column: Int): Option[Double] =
    neighbours.get(column).map(_.grouped(2).toSeq).filter(_.size >= SampledKeys.leastPairs).map {
      pairs => (pairs.count(pair => pair.head != pair.last) + 1.0) / pairs.size
    }

  /** Of a large relation no order is sampled twice, but its lines may lie side by side. */
  private def neighboursAgree(column: Int, other: Int): Boolean =
    (for (keys <- neighbours.get(column); values <- neighbours.get(other)) yield {
      var (pairs, alike, same, agreeing, i) = (0, 0, 0, 0, 0)
      while (i < keys.length) {
        val complete =
          keys(i) != 0 && keys(i + 1) != 0 && values(i) != 0 && values(i + 1) != 0
        if (complete) {
          val (one, agrees) = (keys(i) == keys(i + 1), values(i) == values(i + 1))
          pairs += 1
          if (agrees) alike += 1
          if (one) same += 1
          if (one && agrees) agreeing += 1
        }
        i += 2
      }
      // Rows side by side are alike in many columns: that is the chance to compare with.
      same >= SampledKeys.leastNeighbours && pairs - alike >= SampledKeys.leastNeighbours && {
        val chance = alike.toDouble / pairs
        (agreeing.toDouble / same - chance) / (1.0 - chance) >= SampledKeys.leastAgreement
      }
    }).getOrElse(false)

  private def agree(column: Int, other: Int): Boolean = {
    val (keys, values, absent) = (columns(column), columns(other), nulls(column))
    // Rows by key: a sort of whole numbers with the row in their lower half.
    val sorted = Array.tabulate(rows)(row => (keys(row).toLong << 32) | row)
    java.util.Arrays.sort(sorted)
    var (neighbours, agreeing, i) = (0, 0, 1)
    while (i < rows) {
      val (before, row) = (sorted(i - 1), sorted(i))
      if (before >> 32 == row >> 32 && !absent.get(row.toInt)) {
        neighbours += 1
        if (values(before.toInt) == values(row.toInt)) agreeing += 1
      }
      i += 1
    }
    neighbours >= SampledKeys.leastNeighbours && {
      val chance = SampledKeys.repeats(values)
      val beyond = (agreeing.toDouble / neighbours - chance) / (1.0 - chance)
      chance < 0.99 && beyond >= SampledKeys.leastAgreement
    }
  }

  private val counted = new ConcurrentHashMap[Seq[Int], KeyCounts]()

  /** How often each combination of values occurs; rows with a null among them are left out. */
  def counts(wanted: Seq[Int]): KeyCounts = counted.computeIfAbsent(wanted, _ => count(wanted))

  private def count(wanted: Seq[Int]): KeyCounts = {
    val (hashes, absent) = (wanted.map(columns).toArray, wanted.map(nulls).toArray)
    val keys = new Array[Long](rows)
    var (row, present) = (0, 0)
    while (row < rows) {
      var (column, hash, isNull) = (0, 17L, false)
      while (column < hashes.length && !isNull) {
        isNull = absent(column).get(row)
        hash = byteswap64(hash * 31 + hashes(column)(row))
        column += 1
      }
      if (!isNull) {
        // The lowest bit keeps the half that the row belongs to, beside its neighbours of equal key.
        keys(present) = (hash << 1) | (places(row) & 1L)
        present += 1
      }
      row += 1
    }
    val found = java.util.Arrays.copyOf(keys, present)
    java.util.Arrays.sort(found)
    KeyCounts(found)
  }

  // Queries that join two relations ask for the same numbers, as long as both are kept.
  private val meetings: Cache[SampledKeys, ConcurrentHashMap[(Seq[Int], Seq[Int]), Meeting]] =
    CacheBuilder.newBuilder().weakKeys().build()

  /** How often the values in `columns` are those in `others` of a row of `other`. */
  def meeting(columns: Seq[Int], other: SampledKeys, others: Seq[Int]): Meeting =
    meetings
      .get(other, () => new ConcurrentHashMap())
      .computeIfAbsent((columns, others), _ => SampledKeys.compare(this, columns, other, others))
}

/** One of the columns. */
final case class SampledKey(rows: SampledKeys, column: Int) {
  def kind: Option[DataType] = rows.kindOf(column)
  def canMeet: Boolean = rows.canMeet(column)
}

object SampledKeys {

  // Rows with a value that another row of the sample has as well.
  private val leastNeighbours = 30

  // Neighbours of which a share is taken.
  private val leastPairs = 100

  // Beyond chance (Cohen's kappa): what is meant to be one value may be null or late in places.
  private val leastAgreement = 0.9

  /**
   * @param sample the relation's
   * @param left places of the rows that are left, by row group
   * @param kinds types of the columns that could be read, by their places
   * @param ordered see [[SampledKeys]]
   */
  def of(
      source: String,
      sample: RelationSample,
      left: Seq[IndexedSeq[Int]],
      kinds: Map[Int, DataType],
      ordered: Set[Int],
      complete: Boolean
  ): SampledKeys = {
    def everything = of(source, sample, sample.all, kinds, ordered, complete)
    val partial = left.map(_.size) != sample.sizes
    val starts = sample.sizes.scanLeft(0)(_ + _)
    val places = left.zip(starts).flatMap { case (rows, start) => rows.map(_ + start) }.toArray
    val read = kinds.collect { case (column, kind) if isKey(kind) => column -> kindOf(kind) }
    val values = read.keys.map { column =>
      val chunks = sample.columns(column).chunks
      column -> left.zip(chunks).flatMap { case (rows, chunk) => rows.map(chunk) }.toArray
    }.toMap
    new SampledKeys(
      source,
      places,
      values.map { case (column, cells) => column -> cells.map(hashOf) },
      values.map { case (column, cells) =>
        val absent = new java.util.BitSet(cells.length)
        cells.indices.foreach(row => if (cells(row) == null) absent.set(row))
        column -> absent
      },
      read,
      ordered,
      complete,
      read.keys.map(column =>
        column -> sample.columns(column).neighbours.map(hashOf).toArray
      ).toMap,
      Option.when(partial)(everything),
      sample.sizes.count(_ > 0),
      sample.covered
    )
  }

  /** Chance that two of these are equal. */
  private def repeats(values: Array[Int]): Double = {
    val sorted = values.clone()
    java.util.Arrays.sort(sorted)
    val ends = (1 to sorted.length).filter(i => i == sorted.length || sorted(i) != sorted(i - 1))
    ends.zip(0 +: ends).map { case (end, start) =>
      val share = (end - start).toDouble / sorted.length
      share * share
    }.sum
  }

  // Floating-point keys have several zeros and not-a-numbers, and are rare; collated texts are
  // equal without being the same.
  private def isKey(kind: DataType): Boolean = kind match {
    case StringType | ByteType | ShortType | IntegerType | LongType | BooleanType => true
    case DateType | TimestampType | TimestampNTZType | _: DecimalType => true
    case _ => false
  }

  /** Whole numbers of all widths are one kind, for Spark widens them to compare them. */
  private def kindOf(kind: DataType): DataType = kind match {
    case ByteType | ShortType | IntegerType => LongType
    case other => other
  }

  private def hashOf(value: Any): Int = value match {
    case null => 0
    case text: UTF8String => text.hashCode
    case number: Byte => hashOf(number.toLong)
    case number: Short => hashOf(number.toLong)
    case number: Int => hashOf(number.toLong)
    case number: Long => (byteswap64(number) >>> 32).toInt
    case other => other.hashCode
  }

  /**
   * Pairs of equal keys among two samples.
   *
   * @param pairs found
   * @param possible pairs of rows that were compared
   * @param variance of `pairs`, were the rows sampled anew
   */
  final case class Meeting(pairs: Double, possible: Double, variance: Double)

  private def compare(
      left: SampledKeys,
      leftColumns: Seq[Int],
      right: SampledKeys,
      rightColumns: Seq[Int]
  ): Meeting = {
    val (ours, theirs) = (left.counts(leftColumns), right.counts(rightColumns))
    val halved = left.source == right.source && !(left.complete && right.complete)
    var (pairs, variance) = (0.0, 0.0)
    KeyCounts.common(ours, theirs) { (a, b) =>
      val more =
        if (halved) a.even.toDouble * b.odd + a.odd.toDouble * b.even
        else a.all.toDouble * b.all
      pairs += more
      variance += more * ((if (left.complete) 0 else b.all) + (if (right.complete) 0 else a.all))
    }
    val possible =
      if (halved)
        ours.total.even.toDouble * theirs.total.odd + ours.total.odd.toDouble * theirs.total.even
      else ours.total.all.toDouble * theirs.total.all
    Meeting(pairs, possible, variance)
  }
}

/** Occurrences in the two halves of a sample. */
final case class Occurrences(even: Int, odd: Int) {
  def all: Int = even + odd
}

/** How often each key occurs, from sorted hashes whose lowest bit says which half they are from. */
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
    var (i, values, once) = (0, 0, 0)
    while (i < sorted.length) {
      val next = end(i)
      values += 1
      if (next == i + 1) once += 1
      i = next
    }
    (values, once)
  }

  /** Rows of the most frequent key, of that and the next one, and so on. */
  private lazy val mostFrequent: Array[Int] = {
    val found = Array.newBuilder[Int]
    var i = 0
    while (i < sorted.length) {
      val next = end(i)
      found += next - i
      i = next
    }
    val counts = found.result()
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
      val (ours, theirs) = (left.sorted(i) >> 1, right.sorted(j) >> 1)
      val (nextOurs, nextTheirs) =
        (if (ours <= theirs) left.end(i) else i, if (theirs <= ours) right.end(j) else j)
      if (ours == theirs) found(left.occurrences(i, nextOurs), right.occurrences(j, nextTheirs))
      i = nextOurs
      j = nextTheirs
    }
  }
}
