package io.selinger.stats.samples

import com.google.common.cache.{Cache, CacheBuilder}
import io.selinger.stats.{ColumnSample, ColumnSummary, RelationSample}
import java.util.concurrent.ConcurrentHashMap
import java.util.stream.IntStream
import org.apache.spark.sql.types.DataType
import scala.util.hashing.byteswap64

/**
 * Columns of those sampled rows of a relation that predicates have left, row by row: what two
 * samples need to be joined, and what tells how many combinations several columns have.
 *
 * @param source the same for samples of the same rows
 * @param places of the rows within their sample; a relation is compared with itself between rows
 *   of even and of odd places, since a sampled row is no evidence of another one like it
 * @param columns of the whole sample, by the column's place
 * @param ordered columns whose rows are in some order: whether two samples of such columns have equal
 *   values depends on where they were taken
 * @param complete whether these are all rows of the relation
 * @param unfiltered those of all rows of the sample, where predicates have left only some of them
 * @param groups row groups that the sample is from
 * @param filled row groups of which predicates have left some rows
 * @param covered rows of the relation that the sample was spread over
 */
final class SampledKeys private (
    val source: String,
    places: Array[Int],
    columns: Map[Int, HashedColumn],
    ordered: Set[Int],
    val complete: Boolean,
    unfiltered: Option[SampledKeys],
    val groups: Int,
    val filled: Int,
    val covered: Long
) {

  /** The same of all rows of the sample, whatever predicates have left of them. */
  def whole: SampledKeys = unfiltered.getOrElse(this)

  val rows: Int = places.length

  /**
   * Driver memory once each column has been counted, in bytes. What several results share counts for
   * each of them, since any may be the last that keeps it.
   */
  def bytes: Long = 500L + 4L * rows + columns.size * (300L + 16L * rows) +
    unfiltered.fold(columns.valuesIterator.map(_.bytes).sum)(_.bytes)

  def has(column: Int): Boolean = columns.contains(column)

  def kindOf(column: Int): Option[DataType] = columns.get(column).map(_.kind)

  /** Whether joining this column with the sample of another relation says something of the join. */
  def canJoin(column: Int): Boolean = complete || !ordered(column)

  /**
   * The keys of some rows of the sample.
   *
   * @param rows their places, ascending
   * @param filled row groups that they are from
   */
  def only(rows: Array[Int], filled: Int): SampledKeys =
    if (rows.length == this.rows) this
    else
      new SampledKeys(
        source,
        java.util.Arrays.stream(rows).map(places(_)).toArray,
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
   * A functional dependency: whether rows with the same value in `column` have the same value in
   * `other`, as all lines of an order have one customer. `false` where the sample has too few rows to
   * tell. Rows from all over the relation are the better witnesses: the lines of an order that lie side by
   * side have one customer and one day, but a customer orders on several days.
   */
  def determines(column: Int, other: Int): Boolean =
    dependencies.computeIfAbsent(
      (column, other),
      _ => sampledRowsAgree(column, other).getOrElse(whole.neighboursOfAllAgree(column, other))
    )

  private val neighbours = new ConcurrentHashMap[(Int, Int), Boolean]()

  /** The same for whatever predicates have left. */
  private def neighboursOfAllAgree(column: Int, other: Int): Boolean =
    neighbours.computeIfAbsent((column, other), _ => neighboursAgree(column, other))

  /**
   * Runs of equal values, as a share of the rows: how many rows differ in one of the columns from the row
   * before, where a null counts as a value. The columns have no more combinations of values than runs.
   * `None` where too few rows were sampled together with the next one.
   */
  def runShare(columns: Seq[Int]): Option[Double] =
    if (unfiltered.isEmpty) runShares.computeIfAbsent(columns, countRuns)
    else whole.runShare(columns)

  private def countRuns(wanted: Seq[Int]): Option[Double] = {
    val values = wanted.flatMap(columns.get).map(_.neighbours)
    Option.when(
      values.nonEmpty && values.size == wanted.size &&
        values.forall(_.length >= 2 * SampledKeys.leastPairs)
    ) {
      val pairs = values.head.length / 2
      val changes = IntStream
        .range(0, pairs)
        .filter(pair => values.exists(column => column(2 * pair) != column(2 * pair + 1)))
        .count()
      (changes + 1.0) / pairs
    }
  }

  private val runShares = new ConcurrentHashMap[Seq[Int], Option[Double]]()

  /** Of a large relation no order is sampled twice, but its lines may lie side by side. */
  private def neighboursAgree(column: Int, other: Int): Boolean =
    (for (key <- columns.get(column); value <- columns.get(other)) yield {
      val (keys, values) = (key.neighbours, value.neighbours)
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

  /** `None` where too few sampled rows have the same value as another one. */
  private def sampledRowsAgree(column: Int, other: Int): Option[Boolean] = {
    val (sorted, keys, values) = (byKey(column), columns(column).hashes, columns(other).hashes)
    // If more pairs differ, the others cannot be enough, however many there are.
    val most = (sorted.length * (1.0 - SampledKeys.leastAgreement)).toInt + 1
    var (pairs, differing) = (0, 0)
    var i = 1
    while (i < sorted.length && differing <= most) {
      val before = sorted(i - 1)
      val row = sorted(i)
      if (keys(before) == keys(row)) {
        pairs += 1
        if (values(before) != values(row)) differing += 1
      }
      i += 1
    }
    if (differing > most) Some(false)
    else
      Option.when(pairs >= SampledKeys.leastNeighbours) {
        val chance = equalByChance(other)
        val beyond = ((pairs - differing).toDouble / pairs - chance) / (1.0 - chance)
        chance < 0.99 && beyond >= SampledKeys.leastAgreement
      }
  }

  private val sortedRows = new ConcurrentHashMap[Int, Array[Int]]()

  /** Places in the sample of rows with a value, those of equal hashes together. */
  private def byKey(column: Int): Array[Int] = sortedRows.computeIfAbsent(
    column,
    _ => if (unfiltered.isEmpty) columns(column).order else columns(column).orderOf(places, kept)
  )

  /** What the values that a column of the sample has in these rows amount to. */
  def summary(column: Int, values: ColumnSample): ColumnSummary = columns.get(column) match {
    case Some(hashed) => hashed.summary(rows, byKey(column), values)
    case None => ColumnSummary.summarize(places.iterator.map(values(_)))
  }

  private lazy val kept: java.util.BitSet = {
    val found = new java.util.BitSet()
    places.foreach(found.set)
    found
  }

  /** Chance that two rows have the same value, or both have none. */
  private def equalByChance(column: Int): Double = {
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
      val sorted = byKey(column)
      val keys = new Array[Long](sorted.length)
      var i = 0
      while (i < keys.length) {
        keys(i) = HashedColumn.halved(hashes(sorted(i)), sorted(i))
        i += 1
      }
      KeyCounts(keys)
    case _ => combinations(wanted.map(columns).toArray)
  }

  // By 32 bits: among 10,000 rows hardly a pair has equal hashes by chance, among a million some hundred.
  private def combinations(hashed: Array[HashedColumn]): KeyCounts = {
    val keys = new Array[Long](rows)
    var row = 0
    var present = 0
    while (row < rows) {
      val place = places(row)
      var column = 0
      var hash = 17L
      while (column < hashed.length && !hashed(column).nulls.get(place)) {
        hash = byteswap64(hash * 31 + hashed(column).hashes(place))
        column += 1
      }
      if (column == hashed.length) {
        keys(present) = HashedColumn.halved((hash >>> 32).toInt, place)
        present += 1
      }
      row += 1
    }
    KeyCounts(HashSort.sorted(keys, present, from = 1))
  }

  // Queries that join two relations ask for the same numbers, as long as both are kept.
  private val pairsWith: Cache[SampledKeys, ConcurrentHashMap[(Seq[Int], Seq[Int]), EqualPairs]] =
    CacheBuilder.newBuilder().weakKeys().build()

  /** How many rows have the values in `columns` that a row of `other` has in `otherColumns`. */
  def equalPairs(
      columns: Seq[Int],
      other: SampledKeys,
      otherColumns: Seq[Int]
  ): EqualPairs =
    pairsWith
      .get(other, () => new ConcurrentHashMap())
      .computeIfAbsent(
        (columns, otherColumns),
        _ => EqualPairs.count(this, columns, other, otherColumns)
      )
}

object SampledKeys {

  // Rows with a value that another row of the sample has as well.
  private val leastNeighbours = 30

  // Neighbours of which a share is taken.
  private val leastPairs = 100

  // Beyond chance (Cohen's kappa): what is meant to be one value may be null or late in places.
  private val leastAgreement = 0.9

  /**
   * The keys of all rows of a sample.
   *
   * @param columns those that can be compared, by their places
   */
  def wholeSample(
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
}
