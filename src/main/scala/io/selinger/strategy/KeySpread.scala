package io.selinger.strategy

import io.selinger.core.{Evidence, Origin, Quantity}
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.plans.LeafStatistics
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.internal.SQLConf

/**
 * How rows fall on the partitions of a shuffle by some keys.
 *
 * @param rows that are shuffled, or grouped before they are
 * @param size of the shuffle, none if unknown
 * @param values of the keys, none if unknown
 */
private[strategy] final case class KeySpread(
    rows: Quantity,
    partitions: Int,
    size: Option[ShuffleSize],
    values: Option[KeySpread.Values]
) {

  /** The largest partition has at most about twice its part, or Spark makes one of all. */
  def isEven: Boolean = isSmall || values.exists { found =>
    found.number.value >= KeySpread.valuesPerPartition.toDouble * partitions &&
    found.frequent.value * partitions <= rows.value
  }

  private def isKnown: Boolean = isSmall || values.isDefined

  private def isSmall: Boolean = SQLConf.get.getConf(SQLConf.COALESCE_PARTITIONS_ENABLED) &&
    size.exists(
      _.withMargin <= SQLConf.get.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE)
    )

  def evidence: Seq[Evidence] =
    values.toSeq.map(found =>
      Evidence("values of the common keys", found.number.value, "values", found.number.origin)
    ) ++
      Seq(Evidence("input of the first operator", rows.value, "rows", rows.origin)) ++
      values.map(found =>
        Evidence("the most frequent value", found.frequent.value, "rows", found.frequent.origin)
      ) ++
      Seq(Evidence("partitions", partitions.toDouble, "partitions", Origin.Exact)) ++
      size.map(each => Evidence("expected in the shuffle", each.expected, "bytes", each.origin))
}

private[strategy] object KeySpread {

  // With n values a partition, the largest of 16 has about 1 + sqrt(2 ln 16 / n) times its part of the
  // rows (Raab and Steger, Balls into Bins, RANDOM 1998): a third more.
  private val valuesPerPartition = 48

  /**
   * @param number of different ones
   * @param frequent rows that have the most frequent one
   */
  final case class Values(number: Quantity, frequent: Quantity)

  /** Of the rows of `plan` by `keys`; none if that cannot be estimated. */
  def of(
      keys: Seq[Expression],
      plan: LogicalPlan,
      partitions: Int,
      size: Option[ShuffleSize]
  ): Option[KeySpread] =
    for {
      input <- LeafStatistics.estimator.estimate(plan)
      columns = keys.collect { case key: Attribute => key }
      values = if (columns.size == keys.size) valuesOf(columns, plan, input) else None
      spread = KeySpread(input.rows, partitions, size, values)
      if spread.isKnown
    } yield spread

  private def valuesOf(
      keys: Seq[Attribute],
      plan: LogicalPlan,
      input: PlanEstimate
  ): Option[Values] = {
    val columns = keys.flatMap(key => input.columns.get(key.exprId).map(key -> _))
    // Of a key without a sample it is not known whether it has frequent values.
    val sampled = columns.filter { case (key, _) => input.domain(key).exists(_.sample.isDefined) }
    val shares = (if (sampled.isEmpty) columns else sampled).map { case (_, column) =>
      val nulls = column.nullFraction.getOrElse(0.0)
      (column.frequent.map(_.share * (1.0 - nulls)) :+ nulls).max
    }
    // No combination of values has more rows than the most frequent value of any key.
    val share = if (sampled.isEmpty) shares.maxOption else shares.minOption
    for {
      most <- share
      if columns.exists(_._2.distinct.isDefined) && keys.forall(plan.outputSet.contains)
      values <- LeafStatistics.estimator.estimate(Aggregate(keys, keys, plan))
    } yield Values(
      values.rows,
      Quantity(math.max(1.0, most * input.rows.value), Origin.Derived)
    )
  }
}
