package org.apache.spark.sql.selinger

import org.apache.spark.sql.classic.SparkSession

/** Spark clones sessions for Spark Connect and for streams, and keeps the method to itself. */
object ClonedSession {
  def of(session: SparkSession): SparkSession = session.cloneSession()
}
