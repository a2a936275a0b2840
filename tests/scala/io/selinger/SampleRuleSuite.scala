package io.selinger

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedRule,
  Hook,
  NodeText,
  Outcome,
  Reason,
  RuleDescription,
  RuleKind
}
import io.selinger.testing.Plans
import org.apache.spark.sql.catalyst.expressions.{And, Expression, ExpressionSet}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}

/**
 * A rule as an author would add it: this class with its description, one line in the list, and a
 * suite. Settings, injection, `selinger_rules()`, explain and the contract follow from these.
 *
 * {{{
 *   SELECT * FROM items WHERE id + id > 3 AND name <> color AND id + id > 3
 * }}}
 */
final class DropRepeatedConjuncts
    extends GuardedRule(DropRepeatedConjuncts, SelingerConf.switches) {

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case filter @ Filter(condition, child) =>
      val all = conjuncts(condition)
      val kept = ExpressionSet(all).toSeq
      if (kept.size == all.size) {
        // Spark runs this hook until nothing changes: what was dropped before says more.
        if (!Decision.recordedAt(filter).exists(_.rule == info.id)) {
          Decision.record(
            filter,
            decision(filter, Outcome.Declined, DropRepeatedConjuncts.AllDiffer)
          )
        }
        filter
      } else {
        val shorter = Filter(kept.reduceLeft(And(_, _)), child)
        Decision.record(
          shorter,
          decision(shorter, Outcome.Changed, DropRepeatedConjuncts.ConjunctDropped)
        )
        shorter
      }
  }

  private def decision(filter: Filter, outcome: Outcome, reason: Reason) =
    Decision(info.id, NodeText.of(filter), NodeText.key(filter), outcome, reason)

  private def conjuncts(condition: Expression): Seq[Expression] = condition match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case other => Seq(other)
  }
}

object DropRepeatedConjuncts
    extends RuleDescription(
      "dropRepeatedConjuncts",
      RuleKind.Logical,
      "Drops conditions that a filter has twice."
    ) {

  val ConjunctDropped: Reason =
    Reason("CONJUNCT_DROPPED", "The filter had this condition twice.", "Nothing to do.")
  val AllDiffer: Reason =
    Reason("ALL_CONJUNCTS_DIFFER", "No condition of the filter is there twice.", "Nothing to do.")

  override def hooks: Seq[Hook] =
    Seq(Hook.LateBatch("Filters have been merged by then.")(_ => new DropRepeatedConjuncts))
  override def reasons: Seq[Reason] = Seq(ConjunctDropped, AllDiffer)
  override def example: String = "SELECT * FROM items WHERE id + id > 3 AND name <> color"
}

object SampleRuleSuite {
  val registry: Registry = Registry(Registry.all.rules :+ DropRepeatedConjuncts)

  val queries: Map[(RuleDescription, Reason), String] = Map(
    // Spark drops equal conditions itself, earlier, unless it is told not to.
    (DropRepeatedConjuncts, DropRepeatedConjuncts.ConjunctDropped) ->
      """-- set spark.sql.optimizer.excludedRules=org.apache.spark.sql.catalyst.optimizer.BooleanSimplification
        |SELECT * FROM items WHERE id + id > 3 AND name <> color AND id + id > 3""".stripMargin,
    (DropRepeatedConjuncts, DropRepeatedConjuncts.AllDiffer) -> DropRepeatedConjuncts.example
  )
}

class SampleRuleSuite
    extends RuleContract(Registry(Seq(DropRepeatedConjuncts)), named = SampleRuleSuite.queries) {

  test("its switch, its activity and its decisions are there without another file") {
    withSession(new SelingerExtension(SampleRuleSuite.registry)) { session =>
      val error = intercept[IllegalArgumentException](
        session.sql(s"SET ${DropRepeatedConjuncts.switch}=perhaps")
      )
      assert(error.getMessage.contains(DropRepeatedConjuncts.switch))
      val df = session.range(9).toDF().where("id * 2 > 3 AND id % 2 = 1")
      assert(df.collect().map(_.getLong(0)).toSeq == Seq(3, 5, 7))
      assert(Plans.decisions(df, "dropRepeatedConjuncts").nonEmpty)
      val row = session
        .sql("SELECT calls, kind, hook FROM selinger_rules() WHERE rule = 'dropRepeatedConjuncts'")
        .head()
      assert(row.getLong(0) > 0)
      assert(row.getString(1) == "logical")
      assert(row.getString(2) == "experimental.extraOptimizations")
    }
  }
}
