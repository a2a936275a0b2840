package io.selinger.core

/** Which part of the optimizer a rule belongs to. */
sealed abstract class RuleKind(val label: String)

object RuleKind {

  /** Tells what is known about data; changes no plan by itself. */
  case object Statistics extends RuleKind("statistics")

  /** Rewrites logical plans. */
  case object Logical extends RuleKind("logical")

  /** Chooses physical operators. */
  case object Strategy extends RuleKind("strategy")

  /** Changes physical plans between the stages of a running query. */
  case object Adaptive extends RuleKind("adaptive")
}

/**
 * How a rule describes itself, once, beside its code: usually its companion object. The registry
 * lists the descriptions; settings, injection, `selinger_rules()`, documentation, explain and the
 * contract tests are made from that list.
 *
 * @param id class name in lowerCamel; `spark.selinger.<id>.enabled` is its switch
 * @param summary what it does for the user, one sentence
 * @param onByDefault whether it runs without being asked for
 * @param paysOnSmallTables whether it runs where all tables of a query are small, too: see [[LargestTable]]
 */
abstract class RuleDescription(
    val id: String,
    val kind: RuleKind,
    val summary: String,
    val onByDefault: Boolean = true,
    val paysOnSmallTables: Boolean = false
) {

  /** Where Spark calls it, and why there, in the order of a query's life. */
  def hooks: Seq[Hook]

  /** The reasons that its decisions give, those of its preconditions first. */
  def reasons: Seq[Reason]

  /** The smallest query that it helps, in SQL. */
  def example: String

  final def switch: String = s"spark.selinger.$id.enabled"

  final override def toString: String = id
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
  def enabled(rule: RuleDescription): Boolean
  def failOnError: Boolean
  def budgetMs: Long

  /** Queries whose largest table has at most so many bytes are left to Spark; 0 leaves none. */
  def smallTableBytes: Long = 0L

  /** The setting that this comes from. */
  def smallTableKey: String = ""
}
