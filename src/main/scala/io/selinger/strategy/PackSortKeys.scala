package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedPhysicalRule,
  Hook,
  Mode,
  NodeText,
  Outcome,
  RaisedErrors,
  Reason,
  RuleDescription,
  RuleKind
}
import io.selinger.estimate.plans.ValueBounds
import io.selinger.exec.sorting.{PackedOrder, PackedSortExec}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{SortExec, SparkPlan}
import org.apache.spark.sql.types.{BooleanType, DecimalType}
import scala.math.BigDecimal.RoundingMode

/**
 * Sorts by several numbers, days or times as by one number. Spark sorts by a single number without
 * comparing rows (radix sort). By several keys it compares rows, most of them in full, because the keys that
 * windows partition by repeat.
 *
 * Fires on a sort by several keys when
 *   1. its first two keys or more are numbers that
 *      one number of 63 bits has room for              else SORT_KEYS_NOT_PACKED
 *
 * {{{
 *   SELECT item, day, sum(amount) OVER (PARTITION BY item ORDER BY day) FROM sales
 *   Before:  Window                            After:  Window
 *            +- Sort [item, day]                       +- PackedSort [item, day], packed(item, day)
 * }}}
 *
 * Correct because: the packed number orders rows as its keys do, descending keys and nulls included. How
 * large a key is expected to be comes from its type or from the footers of the files (ValueBounds). A row with
 * a larger value has no number: the operator sorts such rows by all keys and merges both results. If only a
 * part of the last key fits, or further keys cannot be packed, they decide as before where packed numbers
 * are equal. Keys that can raise an error are not packed, since Spark computes keys after the first only
 * where those before are equal.
 * Not done: texts, floating-point numbers, wide decimals; first rows of an order (ORDER BY with LIMIT), which
 * Spark finds without a sort.
 * Cost: planning O(n) in the keys, and the bounds of columns, which other rules ask for as well. One
 * multiplication a key for each row sorted.
 * Runs before columnar transitions, when all sorts are there and adaptive execution looks for no sort any
 * more. A second run finds no such sort.
 * Conf: spark.selinger.packSortKeys.enabled.  References: key normalization, Graefe, Implementing Sorting in
 * Database Systems, ACM Computing Surveys 2006.
 */
final class PackSortKeys extends GuardedPhysicalRule(PackSortKeys, SelingerConf.switches) {
  import PackSortKeys._

  override protected def prepare(plan: SparkPlan, mode: Mode): SparkPlan = plan.transformUp {
    case sort: SortExec if sort.sortOrder.size > 1 =>
      sort.collectFirst(Function.unlift((node: SparkPlan) => node.logicalLink)) match {
        case Some(input) => decided(sort, input, mode)
        case None => sort
      }
  }

  private def decided(sort: SortExec, input: LogicalPlan, mode: Mode): SparkPlan = {
    val packed = PackedOrder.of(sort.sortOrder, largest(_, input))
    val result =
      packed.fold[SparkPlan](sort)(order =>
        PackedSortExec(sort.sortOrder, order.key, order.rest, sort.global, sort.child)
      )
    val kept = if (mode == Mode.On) result else sort
    Decision.record(kept, decision(sort, input, packed, mode))
    kept
  }
}

object PackSortKeys
    extends RuleDescription(
      "packSortKeys",
      RuleKind.Strategy,
      "Packs several sort keys into one number, so that Spark sorts without comparing rows, or compares fewer."
    ) {

  override def hooks: Seq[Hook] = Seq(
    Hook.BeforeColumnar(
      "All sorts are in the plan by then, and rules of Spark that look for sorts have run."
    )(_ => new PackSortKeys)
  )

  val Packed: Reason = Reason(
    "SORT_KEYS_PACKED",
    "According to their types, or to the ranges in the footers of the files, the sort keys fit into one number " +
      "of 63 bits. So Spark sorts without comparing rows.",
    "Nothing to do."
  )

  val PackedInPart: Reason = Reason(
    "SORT_KEYS_PACKED_IN_PART",
    "Not all sort keys fit into one number of 63 bits. The first ones are packed into one; the last of these " +
      "may lose its lowest bits. Rows with equal numbers are compared by the shortened key and the other keys.",
    "Nothing to do."
  )

  val NotPacked: Reason = Reason(
    "SORT_KEYS_NOT_PACKED",
    "The first two sort keys cannot be packed into one number: one has another type (text, floating point, " +
      "wide decimal), may raise an error, or may have too large values.",
    "Use integer or date columns of Parquet or ORC files in ORDER BY, PARTITION BY and join keys, where you can."
  )

  override def reasons: Seq[Reason] = Seq(NotPacked, PackedInPart, Packed)

  override def example: String =
    "SELECT item, sold, sum(amount) OVER (PARTITION BY item ORDER BY sold) FROM sales"

  /** What the unscaled absolute values of a key are expected not to exceed; none if it may raise an error. */
  private def largest(key: Expression, input: LogicalPlan): Option[BigInt] =
    Option.when(key.deterministic && RaisedErrors.isSafe(key)) {
      key.dataType match {
        case BooleanType => BigInt(1)
        case decimal: DecimalType => unscaled(key, input, decimal.scale)
        case _ => unscaled(key, input, 0)
      }
    }

  private def unscaled(key: Expression, input: LogicalPlan, scale: Int): BigInt =
    ValueBounds.largest(key, input).fold(BigInt(1) << java.lang.Long.SIZE) { most =>
      (most * BigDecimal(10).pow(scale)).setScale(0, RoundingMode.UP).toBigInt
    }

  private def decision(
      sort: SortExec,
      input: LogicalPlan,
      packed: Option[PackedOrder],
      mode: Mode
  ): Decision = {
    val keys = names(sort.sortOrder.map(_.child))
    Decision(
      rule = id,
      node = NodeText.shorten(s"Sort by $keys"),
      key = s"sort by $keys of ${NodeText.key(input)}",
      outcome = if (packed.isEmpty) Outcome.Declined else Outcome.acting(mode),
      reason = packed.fold(NotPacked)(order => if (order.rest.isEmpty) Packed else PackedInPart),
      detail =
        packed.filter(_.rest.nonEmpty).map(order => s"in one number: ${names(order.key.children)}"),
      setting = Option.unless(packed.isEmpty)(switch),
      settingTo = Option.unless(packed.isEmpty)("false")
    )
  }

  private def names(keys: Seq[Expression]): String =
    keys.map(NodeText.readable).mkString(", ")
}
