package io.selinger.stats.samples

import com.google.common.cache.{Cache, CacheBuilder}
import io.selinger.stats.{ColumnSample, RelationSample}
import io.selinger.stats.samples.SampledKeys.Meeting
import java.util.concurrent.ConcurrentHashMap
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import scala.util.hashing.byteswap64

/**
 * Sampled values of a column as hashes of 32 bits, four bytes a value: among two samples of 10,000
 * rows with no common value, one pair in forty joins would be taken for equal.
 *
 * @param kind values of one kind are equal if and only if their hashes are, up to collisions
 * @param hashes by the row's place in the sample, nulls as zero
 * @param nulls places of the rows without a value
 * @param neighbours hashes of values in pairs of rows next to each other
 */
final case class HashedColumn(
    kind: DataType,
    hashes: Array[Int],
    nulls: java.util.BitSet,
    neighbours: Array[Int]
) {

  /**
   * Rows with a value, ascending by its hash. Whatever predicates leave of a sample is in this order
   * without being sorted.
   */
  lazy val order: Array[Int] = {
    // A sort of whole numbers with the row in their lower half.
    val sorted = new Array[Long](hashes.length - nulls.cardinality)
    var (row, next) = (0, 0)
    while (row < hashes.length) {
      if (!nulls.get(row)) {
        sorted(next) = (hashes(row).toLong << 32) | row.toLong
        next += 1
      }
      row += 1
    }
    java.util.Arrays.sort(sorted)
    sorted.map(_.toInt)
  }

  /** Driver memory, in bytes. */
  def bytes: Long = 200L + 4L * (2 * hashes.length + neighbours.length) + nulls.size / 8
}

object HashedColumn {

  /** `None` where equal values may have different hashes. */
  def of(column: ColumnSample, kind: DataType): Option[HashedColumn] = Option.when(isKey(kind)) {
    val values = column.chunks.iterator.flatten.toArray
    val absent = new java.util.BitSet(values.length)
    values.indices.foreach(row => if (values(row) == null) absent.set(row))
    HashedColumn(
      widened(kind),
      values.map(hashOf),
      absent,
      column.neighbours.iterator.map(hashOf).toArray
    )
  }

  // Floating-point keys have several zeros and not-a-numbers, and are rare; collated texts are
  // equal without being the same.
  private def isKey(kind: DataType): Boolean = kind match {
    case StringType | ByteType | ShortType | IntegerType | LongType | BooleanType => true
    case DateType | TimestampType | TimestampNTZType | _: DecimalType => true
    case _ => false
  }

  /** Whole numbers of all widths are one kind, for Spark widens them to compare them. */
  private def widened(kind: DataType): DataType = kind match {
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
}

/**
 * Columns of those sampled rows of a relation that predicates have left, row by row: what two
 * samples need to be joined, and what tells how many combinations several columns have.
 *
 * @param source the same for samples of the same rows
 * @param places of the rows within their sample; a relation is compared with itself between rows
 *   of even and of odd places, since a sampled row is no evidence of another one like it
 * @param columns of the whole sample, by the column's place
 * @param ordered columns whose rows are in some order: two samples of such columns meet, or do not,
 *   by chance of where they were taken
 * @param complete whether these are all rows of the relation
 * @param all those of all rows of the sample, where predicates have left only some of them
 * @param groups row groups that the sample is from
 * @param filled those of them that predicates have left rows of
 * @param covered rows that it was spread over
 */
final class SampledKeys private (
    val source: String,
    places: Array[Int],
    columns: Map[Int, HashedColumn],
    ordered: Set[Int],
    val complete: Boolean,
    all: Option[SampledKeys],
    val groups: Int,
    val filled: Int,
    val covered: Long
) {

  /** The same of all rows of the sample, whatever predicates have left of them. */
  def whole: SampledKeys = all.getOrElse(this)

  val rows: Int = places.length

  /**
   * Driver memory once each column has been counted, in bytes. What several results share counts for
   * each of them, since any may be the last that keeps it.
   */
  def bytes: Long = 500L + 4L * rows + columns.size * (300L + 16L * rows) +
    all.fold(columns.valuesIterator.map(_.bytes).sum)(_.bytes)

  def has(column: Int): Boolean = columns.contains(column)

  def kindOf(column: Int): Option[DataType] = columns.get(column).map(_.kind)

  /** Whether rows with equal values can be looked for in the sample of another relation. */
  def canMeet(column: Int): Boolean = complete || !ordered(column)

  /**
   * Those of some rows of the sample.
   *
   * @param rows their places, ascending
   * @param filled row groups that they are from
   */
  def only(rows: Array[Int], filled: Int): SampledKeys =
    if (rows.length == this.rows) this
    else
      new SampledKeys(
        source,
        rows.map(places),
        columns,
        ordered,
        complete,
        Some(whole),
        groups,
        filled,
        covered
      )

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
    changes.computeIfAbsent(
      column,
      _ =>
        columns.get(column).map(_.neighbours).filter(_.length >= 2 * SampledKeys.leastPairs).map {
          values =>
            val pairs = values.length / 2
            ((0 until pairs).count(i => values(2 * i) != values(2 * i + 1)) + 1.0) / pairs
        }
    )

  private val changes = new ConcurrentHashMap[Int, Option[Double]]()

  /** Of a large relation no order is sampled twice, but its lines may lie side by side. */
  private def neighboursAgree(column: Int, other: Int): Boolean =
    (for (one <- columns.get(column); another <- columns.get(other)) yield {
      val (keys, values) = (one.neighbours, another.neighbours)
      var (pairs, alike, same, agreeing, i) = (0, 0, 0, 0, 0)
      while (i < keys.length) {
        val complete =
          keys(i) != 0 && keys(i + 1) != 0 && values(i) != 0 && values(i + 1) != 0
        if (complete) {
          val (equal, agrees) = (keys(i) == keys(i + 1), values(i) == values(i + 1))
          pairs += 1
          if (agrees) alike += 1
          if (equal) same += 1
          if (equal && agrees) agreeing += 1
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
    val (sorted, keys) = (byKey(column), columns(column).hashes)
    val values = columns(other).hashes
    var (pairs, agreeing, i) = (0, 0, 1)
    while (i < sorted.length) {
      val (before, row) = (sorted(i - 1), sorted(i))
      if (keys(before) == keys(row)) {
        pairs += 1
        if (values(before) == values(row)) agreeing += 1
      }
      i += 1
    }
    pairs >= SampledKeys.leastNeighbours && {
      val chance = repeats(other)
      val beyond = (agreeing.toDouble / pairs - chance) / (1.0 - chance)
      chance < 0.99 && beyond >= SampledKeys.leastAgreement
    }
  }

  private val sortedRows = new ConcurrentHashMap[Int, Array[Int]]()

  /** Places in the sample of rows with a value, ascending by its hash. */
  private def byKey(column: Int): Array[Int] = sortedRows.computeIfAbsent(
    column,
    _ => if (all.isEmpty) columns(column).order else columns(column).order.filter(left.get)
  )

  private lazy val left: java.util.BitSet = {
    val found = new java.util.BitSet()
    places.foreach(found.set)
    found
  }

  /** Chance that two rows have the same value, or both have none. */
  private def repeats(column: Int): Double = {
    val found = counts(Seq(column))
    val missing = (rows - found.sorted.length).toDouble / rows
    missing * missing + found.squares / rows / rows
  }

  private val counted = new ConcurrentHashMap[Seq[Int], KeyCounts]()

  /** How often each combination of values occurs; rows with a null among them are left out. */
  def counts(wanted: Seq[Int]): KeyCounts = counted.computeIfAbsent(wanted, _ => count(wanted))

  private def count(wanted: Seq[Int]): KeyCounts = wanted match {
    case Seq(column) =>
      val hashes = columns(column).hashes
      // The lowest bit keeps the half that the row belongs to, beside its neighbours of equal key.
      KeyCounts(byKey(column).map(row => (hashes(row).toLong << 1) | (row & 1L)))
    case _ => combinations(wanted.map(columns).toArray)
  }

  private def combinations(hashed: Array[HashedColumn]): KeyCounts = {
    val keys = new Array[Long](rows)
    var (row, present) = (0, 0)
    while (row < rows) {
      var (column, hash, isNull) = (0, 17L, false)
      while (column < hashed.length && !isNull) {
        isNull = hashed(column).nulls.get(places(row))
        hash = byteswap64(hash * 31 + hashed(column).hashes(places(row)))
        column += 1
      }
      if (!isNull) {
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
   * All rows of a sample.
   *
   * @param columns those that can be compared, by their places
   */
  def of(
      source: String,
      sample: RelationSample,
      columns: Map[Int, HashedColumn],
      ordered: Set[Int],
      complete: Boolean
  ): SampledKeys = new SampledKeys(
    source,
    Array.range(0, sample.rows),
    columns,
    ordered,
    complete,
    None,
    sample.sizes.count(_ > 0),
    sample.sizes.count(_ > 0),
    sample.covered
  )

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
      val (ours, theirs) = (left.sorted(i) >> 1, right.sorted(j) >> 1)
      val (nextOurs, nextTheirs) =
        (if (ours <= theirs) left.end(i) else i, if (theirs <= ours) right.end(j) else j)
      if (ours == theirs) found(left.occurrences(i, nextOurs), right.occurrences(j, nextTheirs))
      i = nextOurs
      j = nextTheirs
    }
  }
}
