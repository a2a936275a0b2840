package io.selinger.core

/**
 * A rule as users meet it: in confs, `selinger_rules()`, explain and the documentation.
 *
 * @param id class name in lowerCamel; `spark.selinger.<id>.enabled` is its switch
 * @param kind `statistics`, `logical`, `strategy` or `adaptive`
 * @param hook where Spark calls it
 * @param description what it does for the user, one sentence
 */
final case class RuleInfo(id: String, kind: String, hook: String, description: String) {
  def switch: String = s"spark.selinger.$id.enabled"
}

/** `on` acts, `advise` decides and explains but leaves plans alone, `off` does nothing. */
sealed abstract class Mode(val label: String)

object Mode {
  case object On extends Mode("on")
  case object Advise extends Mode("advise")
  case object Off extends Mode("off")

  val all: Seq[Mode] = Seq(On, Advise, Off)

  def parse(label: String): Option[Mode] = all.find(_.label == label)
}

/** The user's switches. Implementations read the session's confs at every call. */
trait Switches {
  def mode: Mode
  def enabled(rule: RuleInfo): Boolean
  def failOnError: Boolean
  def budgetMs: Long
}
