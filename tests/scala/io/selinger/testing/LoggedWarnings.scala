package io.selinger.testing

import org.apache.logging.log4j.{Level, LogManager}
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.Property
import scala.collection.mutable

/** What Selinger logs. */
object LoggedWarnings {

  /** Warnings that `body` leads to, in their order. */
  def during(body: => Any): Seq[String] = {
    val found = mutable.Buffer.empty[String]
    val appender = new AbstractAppender("warnings", null, null, true, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit = found.synchronized {
        if (event.getLevel == Level.WARN) {
          val _ = found += event.getMessage.getFormattedMessage
        }
      }
    }
    LogManager.getLogger("io.selinger") match {
      case logger: Logger =>
        val level = logger.getLevel
        appender.start()
        logger.addAppender(appender)
        logger.setLevel(Level.WARN)
        try { val _ = body }
        finally {
          logger.removeAppender(appender)
          logger.setLevel(level)
          appender.stop()
        }
      case other => throw new IllegalStateException(s"not log4j's: ${other.getClass}")
    }
    found.toSeq
  }
}
