package io.selinger.testing

import io.selinger.stats.{ColumnSample, RelationSample}
import io.selinger.stats.samples.{HashedColumn, SampledKey, SampledKeys, SampledRelation}
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.types.DataType

/** Hand-made samples. */
object Samples {

  /** What a sample tells of the keys of a relation, and of nothing else. */
  def keysOnly(plan: LocalRelation, keys: SampledKeys): SampledRelation = SampledRelation(
    applied = Nil,
    groups = Nil,
    covered = 1.0,
    complete = false,
    alike = 0.0,
    columns = Map.empty,
    keys = plan.output.zipWithIndex.map { case (c, i) => c.exprId -> SampledKey(keys, i) }.toMap
  )

  /** All rows of these columns, in one row group. */
  def keys(
      source: String,
      kinds: Seq[DataType],
      complete: Boolean = false,
      ordered: Set[Int] = Set.empty
  )(
      columns: Seq[Any]*
  ): SampledKeys =
    keysBeside(source, kinds, complete, ordered)(columns.map(_ -> Nil): _*)

  /**
   * The same, each column with values of rows side by side, in pairs one after the other.
   *
   * @param covered rows that the sample was spread over; just these if not given
   */
  def keysBeside(
      source: String,
      kinds: Seq[DataType],
      complete: Boolean = false,
      ordered: Set[Int] = Set.empty,
      covered: Option[Long] = None
  )(
      columns: (Seq[Any], Seq[Any])*
  ): SampledKeys = {
    val rows = columns.map(_._1.size).maxOption.getOrElse(0)
    val sampled = columns.map { case (values, neighbours) =>
      ColumnSample(Seq(values.toIndexedSeq), neighbours.toIndexedSeq)
    }.toIndexedSeq
    val hashed = sampled.zip(kinds).zipWithIndex.flatMap { case ((column, kind), i) =>
      HashedColumn.hash(column, kind).map(i -> _)
    }
    SampledKeys.wholeSample(
      source,
      RelationSample(sampled, Seq(rows), covered.getOrElse(rows.toLong)),
      hashed.toMap,
      ordered,
      complete
    )
  }
}
