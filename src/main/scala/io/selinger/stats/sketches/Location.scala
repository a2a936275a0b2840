package io.selinger.stats.sketches

import io.selinger.conf.SelingerConf

/** Where statistics are kept, as the user has said. */
private[sketches] object Location {

  /** @throws java.lang.IllegalArgumentException that says how to set it */
  def required(): String = {
    val location = SelingerConf.STATS_LOCATION.value
    if (location.isEmpty) {
      val key = SelingerConf.STATS_LOCATION.key
      throw new IllegalArgumentException(
        s"Nobody has said where collected statistics are kept: SET $key = <a folder on any file " +
          "system that this Spark can reach>, once for all sessions in spark-defaults.conf"
      )
    }
    location
  }
}
