package io.selinger.testing

import java.util.concurrent.ConcurrentHashMap
import scala.util.control.NoStackTrace

/**
 * Remembers the classes that there are not. The compiler of generated code tries many names of which
 * only one is a class, and the JVM would look into hundreds of jars for each of the others, each time.
 */
private final class MissingClasses(parent: ClassLoader) extends ClassLoader(parent) {
  private val missing = ConcurrentHashMap.newKeySet[String]()

  override protected def loadClass(name: String, resolve: Boolean): Class[_] = {
    if (missing.contains(name)) throw new ClassNotFoundException(name) with NoStackTrace
    try super.loadClass(name, resolve)
    catch {
      case error: ClassNotFoundException =>
        val _ = missing.add(name)
        throw error
    }
  }
}

object MissingClasses {

  /** For this thread and all that it starts: those of a Spark, if it has not been started yet. */
  def remember(): Unit = {
    val thread = Thread.currentThread
    thread.getContextClassLoader match {
      case _: MissingClasses => ()
      case other => thread.setContextClassLoader(new MissingClasses(other))
    }
  }
}
