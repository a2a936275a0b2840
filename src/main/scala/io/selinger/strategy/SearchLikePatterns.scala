package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedPhysicalRule,
  Hook,
  Mode,
  NodeText,
  Outcome,
  Reason,
  RuleDescription,
  RuleKind
}
import io.selinger.exec.{LikePattern, LikeTexts}
import org.apache.spark.sql.catalyst.expressions.{Expression, Like, Literal}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

/**
 * Searches the texts of a LIKE pattern with several % one after the other. Spark does so for patterns with
 * at most one text between two %, and runs a regular expression on each row for all others.
 *
 * Fires on LIKE in projections, filters, conditions of joins and aggregations whose pattern is a
 * constant of two or more texts with % between them; all others are passed over: those with an
 * underscore, those that Spark refuses, and texts with a collation.
 *
 * {{{
 *   SELECT … FROM orders WHERE comment NOT LIKE '%special%requests%'
 *   Before:  Filter, regular expression .*special.*requests.*
 *   After:   Filter, which searches "special", and "requests" behind it
 * }}}
 *
 * Correct because: a text that matches also matches with each part at its leftmost place behind the part
 * before. % stands for any characters, line breaks too. Parts of valid UTF-8 are found in bytes
 * where they are found in characters (see LikePattern). Null stays null, and no row raises an error.
 * Not done: underscores; patterns of a column; LIKE ALL and LIKE ANY of many patterns; RLIKE; what sorts,
 * windows and the operator of ORDER BY with LIMIT compute.
 * Cost: planning O(n) in the expressions. Never slower than the regular expression, which reads the same
 * characters after it has decoded them.
 * Runs before columnar transitions, when plans are otherwise complete: all rules before, and filters
 * that are pushed down, see the LIKE that the query has. A second run finds none.
 * Conf: spark.selinger.searchLikePatterns.enabled.  References: Spark's LikeSimplification; DuckDB and
 * Velox match such patterns part by part.
 */
final class SearchLikePatterns
    extends GuardedPhysicalRule(SearchLikePatterns, SelingerConf.switches) {
  import SearchLikePatterns._

  override protected def prepare(plan: SparkPlan, mode: Mode): SparkPlan = plan.transformUp {
    case operator => acting(operator, mode)(ComputedValues.changed(operator)(searched))
  }

  private def acting(operator: SparkPlan, mode: Mode)(rewritten: SparkPlan): SparkPlan =
    if (rewritten.fastEquals(operator)) operator
    else {
      val kept = if (mode == Mode.On) rewritten else operator
      for (logical <- operator.logicalLink)
        Decision.record(
          kept,
          Decision(
            rule = id,
            node = NodeText.of(logical),
            key = NodeText.key(logical),
            outcome = Outcome.acting(mode),
            reason = PatternSearched,
            chosen = Some("search of its texts"),
            stock = Some("regular expression"),
            setting = Some(switch),
            settingTo = Some("false"),
            title = Some(names(operator).fold("LIKE")(columns => s"LIKE of $columns"))
          )
        )
      kept
    }
}

object SearchLikePatterns
    extends RuleDescription(
      "searchLikePatterns",
      RuleKind.Strategy,
      "Searches the texts of a LIKE pattern with several % directly, instead of running a regular " +
        "expression on each row."
    ) {

  val PatternSearched: Reason = Reason(
    "PATTERN_SEARCHED",
    "The texts between the % of a LIKE pattern are searched one after the other, without a regular " +
      "expression. The results are the same.",
    "Nothing to do."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.BeforeColumnar("Rules and statistics before it see the LIKE that the query has.")(_ =>
      new SearchLikePatterns
    )
  )

  override def reasons: Seq[Reason] = Seq(PatternSearched)

  override def example: String = "SELECT * FROM reasons WHERE text NOT LIKE '%did%not%'"

  /** Patterns of fewer texts have become comparisons in Spark's optimizer, unless they have an escape. */
  private val fewestTexts = 2

  private object Searched {
    def unapply(expression: Expression): Option[LikeTexts] = expression match {
      case Like(text, Literal(pattern: UTF8String, StringType), escape)
          if text.dataType == StringType =>
        LikePattern
          .of(pattern.toString, escape)
          .filter(_.texts.size >= fewestTexts)
          .map(LikeTexts(text, _))
      case _ => None
    }
  }

  /** The same expression with its patterns searched; itself where there are none. */
  private def searched(expression: Expression): Expression = expression.transformDown {
    case Searched(texts) => texts
  }

  /** Of the columns whose texts are searched; none where these are elements of arrays. */
  private def names(operator: SparkPlan): Option[String] = Some(
    operator.expressions
      .flatMap(_.collect { case Searched(texts) => texts.references.toSeq.map(_.name) })
      .flatten
      .distinct
      .mkString(", ")
  ).filter(_.nonEmpty)
}
