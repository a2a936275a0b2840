package io.selinger.stats

/** How many of the rows matched in one row group of a sample. */
final case class SampledGroup(matched: Int, rows: Int)

/**
 * The share of rows that a predicate keeps, from how many of a sample it keeps. Pure functions.
 *
 * A sample consists of rows at random places in some row groups, at even distances of a relation.
 * Rows of one row group are more alike than others (files are sorted by date, say), so a sample is
 * worth fewer rows than it has; by how many less is the design effect of cluster sampling:
 * Kish, Survey Sampling, 1965.
 */
object SampledShare {

  /** Of the normal distribution, one-sided: 99.9 %. */
  private val quantile = 3.09

  /** Rows of one row group are this much alike at least, whatever the sample says. */
  private val leastAlike = 0.05

  /** Fewer row groups say nothing of the others. */
  val leastGroups: Int = 4

  /**
   * The expected share, never zero. Formulas count as one match in as many rows as they expect one
   * in: where the sample is too small to see anything they decide, where it is not it does. The
   * less the matches agree with the formulas, the less these count: a value that the sample has
   * fifty times is frequent, however rare it should be.
   *
   * @param prior the formulas' estimate, above 0
   */
  def expected(matched: Int, rows: Int, prior: Double): Double = {
    val share = math.max(1e-18, math.min(1.0, prior))
    val weight = atLeast(matched, rows * share)
    math.min(1.0, (matched + weight) / (rows + weight / share))
  }

  /** Chance of at least `count` events where `mean` are expected (Poisson). */
  private[stats] def atLeast(count: Int, mean: Double): Double =
    if (count <= mean || count == 0) 1.0
    else {
      val logFactorial = (2 to count).iterator.map(i => math.log(i.toDouble)).sum
      val first = math.exp(count * math.log(mean) - mean - logFactorial)
      // The terms fall by at least mean / (count + 1) < 1 each.
      val terms = Iterator.iterate((first, count + 1)) { case (term, i) =>
        (term * mean / i, i + 1)
      }
      math.min(1.0, terms.map(_._1).take(1000).takeWhile(_ > 1e-300).sum)
    }

  /**
   * A share that is exceeded once in a thousand times at most.
   *
   * The rows that the sample was spread over count as sampled at random, at half their number. For
   * those of other row groups the design effect 1 + (m − 1)ρ is allowed for, where m is the rows
   * of a group and ρ twice the likeness that the sample shows plus 0.05: of a sorted column only
   * the number of row groups counts.
   *
   * @param covered share of the relation's rows that the sample was spread over
   * @param alike how much the rows of a group are alike in the predicate's columns, 0 to 1
   */
  def upperBound(groups: Seq[SampledGroup], covered: Double, alike: Double): Double = {
    val rows = groups.map(_.rows.toDouble).sum
    if (rows <= 0) 1.0
    else {
      val share = groups.map(_.matched.toDouble).sum / rows
      val likeness = 2 * math.max(alike, intraclass(groups.map(moments))) + leastAlike
      combined(share, rows, groups.size, covered, math.min(1.0, likeness))
    }
  }

  /**
   * The same of rows of which no more is known than from how many row groups they are.
   *
   * @param ordered whether rows of one row group may be all alike: then only their number counts
   */
  def upperBound(
      share: Double,
      rows: Int,
      groups: Int,
      covered: Double,
      ordered: Boolean
  ): Double = {
    val likeness = if (ordered) 1.0 else leastAlike
    combined(math.min(1.0, share), rows.toDouble, groups, covered, likeness)
  }

  /** The upper bounds of covered and of other rows, by how many each are. */
  private def combined(
      share: Double,
      rows: Double,
      groups: Int,
      covered: Double,
      likeness: Double
  ): Double = {
    val inside = wilson(share, rows / 2)
    val outside =
      if (groups < leastGroups) 1.0
      else {
        val designEffect = 1.0 + (rows / groups - 1.0) * likeness
        wilson(share, rows / math.max(2.0, designEffect))
      }
    val known = math.max(0.0, math.min(1.0, covered))
    math.min(1.0, known * inside + (1.0 - known) * outside)
  }

  /** Upper end of Wilson's score interval: "Probable Inference", JASA 1927. */
  private[stats] def wilson(share: Double, rows: Double): Double = {
    val square = quantile * quantile
    val spread = math.sqrt(share * (1 - share) / rows + square / (4 * rows * rows))
    math.min(1.0, (share + square / (2 * rows) + quantile * spread) / (1 + square / rows))
  }

  /** Numbers of one group: how many, their mean and their variance (by `count`). */
  final case class Moments(count: Int, mean: Double, variance: Double)

  private def moments(group: SampledGroup): Moments = {
    val share = if (group.rows == 0) 0.0 else group.matched.toDouble / group.rows
    Moments(group.rows, share, share * (1 - share))
  }

  /** Intraclass correlation by analysis of variance: 0 for groups alike, 1 where each has one value. */
  def intraclass(groups: Seq[Moments]): Double = {
    val filled = groups.filter(_.count > 0)
    val rows = filled.map(_.count.toDouble).sum
    if (filled.size < 2 || rows <= filled.size) 0.0
    else {
      val mean = filled.map(g => g.mean * g.count).sum / rows
      val between =
        filled.map(g => g.count * (g.mean - mean) * (g.mean - mean)).sum / (filled.size - 1)
      val within = filled.map(g => g.count * g.variance).sum / (rows - filled.size)
      val size = rows / filled.size
      val total = between + (size - 1) * within
      if (total <= 0) 0.0 else math.max(0.0, math.min(1.0, (between - within) / total))
    }
  }
}
