package io.selinger.stats

import org.apache.spark.sql.types.StructField

/** Rows of a relation that were collected before, so that planning reads no data files. */
trait StoredSample {

  /** The same for the same rows. */
  def id: String

  /** At most `maxRows` of the rows, in these columns. */
  def sample(columns: Seq[StructField], maxRows: Int): SampleAnswer
}
