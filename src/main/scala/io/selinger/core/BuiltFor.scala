package io.selinger.core

/** The Spark line that this jar was compiled for. */
object BuiltFor {

  /** Why this jar must keep its hands off this version of Spark, if it must. */
  def unsupported(version: String): Option[String] = {
    val line = version.split('.').take(2).mkString(".")
    if (line == BuildInfo.sparkLine) None
    else
      Some(
        s"this jar was built for Spark ${BuildInfo.sparkLine} and runs on Spark $version; " +
          s"use selinger-spark-$line.jar, if there is one, or another Spark"
      )
  }
}
