package io.selinger.reference

import io.selinger.core.RuleDescription
import io.selinger.testing.Plans
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SparkPlan
import scala.util.Try

/**
 * A family of Spark's rules: what Spark does, what Selinger adds, and the queries that show both.
 *
 * @param rules of Spark 4.3, by their class names. Each of them changes the plan of some query of the family
 * @param parts classes of Spark that belong to the family and do not report what they change
 * @param spark what Spark does
 * @param selinger what Selinger adds, or [[Family.Nothing]]
 * @param lacking what neither adds yet, beginning with "Not added yet:", or nothing
 */
final case class Family(
    name: String,
    rules: Seq[String],
    parts: Seq[String],
    spark: String,
    selinger: String,
    lacking: String,
    queries: Seq[FamilyQuery]
) {

  /** Rules of Selinger that some query shows. */
  def added: Seq[RuleDescription] = queries.flatMap(_.added).distinct

  /** What the table says of Selinger. "Nothing left to add." stands alone, or not at all. */
  def adds: String =
    (if (added.isEmpty && lacking.nonEmpty) Seq(lacking) else Seq(selinger, lacking))
      .filter(_.nonEmpty)
      .mkString(" ")
}

object Family {
  val Nothing = "Nothing left to add."
}

/**
 * One query of a family.
 *
 * @param file in `tests/sql/families`, without `.sql`. Settings may stand at its beginning
 * @param added rules of Selinger that decide something about the query. If there are none, Selinger must
 *   leave the plan as it is
 * @param shows what must hold for the plan of stock Spark, and for Selinger's where it leaves the plan
 */
final case class FamilyQuery(file: String, added: RuleDescription*)(val shows: Shows)

/**
 * An expectation on a query that has been planned.
 *
 * @param text what is expected, for the message of a failed test
 */
final case class Shows(text: String)(val holds: DataFrame => Boolean) {
  def and(other: Shows): Shows =
    Shows(s"$text, and ${other.text}")(df => holds(df) && other.holds(df))
}

object Shows {

  /** On the optimized logical plan. */
  def optimized(text: String)(holds: LogicalPlan => Boolean): Shows =
    Shows(text)(df => holds(Plans.execution(df).optimizedPlan))

  /** On the operators of the physical plan, root first. */
  def physical(text: String)(holds: Seq[SparkPlan] => Boolean): Shows =
    Shows(text)(df => holds(Plans.physical(df)))

  /** Names of the joins, root first, as decisions name them. */
  def joins(names: String*): Shows =
    Shows(s"the joins are ${names.mkString(", ")}")(Plans.joins(_) == names)

  def fails(message: String): Shows = Shows(s"planning fails with '$message'") { df =>
    Try(Plans.execution(df).optimizedPlan).failed.toOption.exists(_.getMessage.contains(message))
  }
}
