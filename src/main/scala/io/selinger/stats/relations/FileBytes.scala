package io.selinger.stats.relations

import io.selinger.core.{PassKey, PlanningPass}
import org.apache.spark.sql.execution.datasources.FileIndex

/** Bytes of all files of an index, which goes through the list of files each time that it is asked. */
object FileBytes {

  private val key = new PassKey[java.lang.Double]("bytes of files")

  def of(index: FileIndex): Double =
    PlanningPass.current.memo(key, index)(Double.box(index.sizeInBytes.toDouble)).doubleValue
}
