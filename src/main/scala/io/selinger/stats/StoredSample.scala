package io.selinger.stats

import org.apache.spark.sql.types.StructField

/** Rows of a relation that were collected before, so that planning reads no data files. */
trait StoredSample {

  /** The same for the same rows. */
  def id: String

  /** At most `maxRows` of the rows, in these columns. */
  def sample(columns: Seq[StructField], maxRows: Int): SampleAnswer
}

/**
 * @param sample of the columns that were asked for; those that could not be read are empty
 * @param usable places of the others
 * @param complete whether all row groups that were wanted are in it
 * @param ms time that this call took
 */
final case class SampleAnswer(
    sample: Option[RelationSample],
    usable: Set[Int],
    complete: Boolean,
    ms: Double
)
