package io.selinger.core

import com.google.common.collect.MapMaker
import java.util.concurrent.ConcurrentMap
import org.apache.spark.sql.execution.datasources.FileIndex

/** Bytes of all files of an index, which goes through the list of files each time that it is asked. */
object FileBytes {

  private final class Known {
    val bytes: ConcurrentMap[FileIndex, java.lang.Double] =
      new MapMaker().weakKeys().makeMap[FileIndex, java.lang.Double]()
  }

  private val key = new PassKey[Known]("bytes of files", ofQuery = true)

  /** Asked once in a query: there may be a million files. */
  def of(index: FileIndex): Double = {
    val pass = PlanningPass.current
    val known = pass.get(key).getOrElse {
      val none = new Known
      pass.put(key, none)
      none
    }
    known.bytes.computeIfAbsent(index, _ => Double.box(index.sizeInBytes.toDouble)).doubleValue
  }
}
