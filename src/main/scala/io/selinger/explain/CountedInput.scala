package io.selinger.explain

import io.selinger.core.{Amounts, Evidence, JoinSides, Origin, Phase, ReducedRows}
import org.apache.spark.sql.catalyst.expressions.{
  BloomFilterMightContain,
  DynamicPruningExpression,
  Literal
}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.{Exchange, ReusedExchangeExec}
import org.apache.spark.sql.execution.joins.BaseJoinExec

/**
 * An input of a join after the run.
 *
 * @param name the tables that it reads
 * @param estimated rows before the query ran
 * @param actual rows that came
 * @param isReduced whether a runtime filter removed rows before they were counted
 */
final case class CountedInput(
    name: String,
    estimated: Double,
    origin: Origin,
    actual: Double,
    isReduced: Boolean
) {

  /** By what factor the estimate is wrong, in either direction. */
  def error: Double = math.max(
    math.max(1.0, estimated) / math.max(1.0, actual),
    math.max(1.0, actual) / math.max(1.0, estimated)
  )

  /** `customers: 1.2 M rows estimated, 30,000 came`. */
  def text: String = {
    val reduced = if (isReduced) " (after a runtime filter)" else ""
    s"$name: ${Amounts.count(estimated)} rows estimated, ${Amounts.count(actual)} came$reduced"
  }
}

object CountedInput {

  // Estimates are as good as that or worse in every optimizer; it changes no plan.
  private val harmless = 2.0

  // Whatever is wrong about fewer rows, no plan is slow because of it.
  private val fewRows = 1000.0

  private val operators = "selectJoinOperator"

  /** Of the joins of a plan whose inputs have been read, each once. */
  def of(root: SparkPlan): Seq[CountedInput] = {
    val before = estimates(root)
    Joins.in(root, isLimited = false).flatMap { case (join, isLimited) =>
      if (isLimited) Nil
      else
        for {
          decision <- PlanDecisions.ofNode(join).find(_.rule == operators).toSeq
          (sides, evidence) <- before.get(decision.key).toSeq
          (name, side, input) <- Seq(
            (sides.left, "left", join.left),
            (sides.right, "right", join.right)
          )
          rows <- evidence.find(_.name == s"$side rows").toSeq
          actual <- Rows.of(input).filter(_ > 0.0).toSeq
        } yield CountedInput(name, rows.value, rows.origin, actual, Rows.isReduced(input))
    }.distinct
  }

  /** What was expected of the sides of joins before the query ran, by the keys of their decisions. */
  private[explain] def estimates(root: SparkPlan): Map[String, (JoinSides, Seq[Evidence])] =
    PlanDecisions
      .collect(root, current = false)
      .filter(d => d.rule == operators && d.phase == Phase.Static)
      .flatMap(d => d.sides.map(sides => d.key -> (sides, d.evidence)))
      .toMap

  /** The worst estimate, with its cause and what helps; that all were good, if so. */
  def summary(inputs: Seq[CountedInput]): Option[String] =
    inputs.filterNot(_.isReduced).sortBy(rank).headOption.map { worst =>
      if (isHarmless(worst)) {
        s"Estimates: right within a factor of 2, or about few rows, for ${inputs.size} inputs of joins."
      } else {
        s"Worst estimate: ${worst.text}, ${Amounts.factor(worst.error)} × off. " +
          s"${cause(worst)} ${cure(worst)}"
      }
    }

  private def isHarmless(input: CountedInput): Boolean =
    input.error < harmless || math.max(input.estimated, input.actual) < fewRows

  private def rank(input: CountedInput) = (isHarmless(input), -input.error)

  private def cause(input: CountedInput): String =
    if (input.name.endsWith("(grouped)")) "How many groups there are was computed by formulas."
    else if (isJoined(input)) {
      "How many rows of a join match was computed by formulas, as if its columns were independent."
    } else
      input.origin match {
        case Origin.Default => "Nothing was known of these rows, so their number was assumed."
        case Origin.Derived =>
          "Formulas computed how many rows the filters keep, as if columns were independent."
        case Origin.Sampled => "The number was taken from a sample of the rows."
        case _ => "The rows were counted before the query's filters."
      }

  private def cure(input: CountedInput): String =
    if (input.origin == Origin.Sampled && !isJoined(input)) {
      "Raise spark.selinger.stats.sampling.maxRows to sample more."
    } else "Run selinger.analyze on the tables named to know more about their columns."

  private def isJoined(input: CountedInput): Boolean = input.name.contains('(')

  private object Joins {

    /** @param isLimited whether an operator above may stop reading before the last row */
    def in(plan: SparkPlan, isLimited: Boolean): Seq[(BaseJoinExec, Boolean)] = plan match {
      case adaptive: AdaptiveSparkPlanExec => in(adaptive.executedPlan, isLimited)
      case stage: QueryStageExec => in(stage.plan, isLimited = false)
      case command: CommandResultExec => in(command.commandPhysicalPlan, isLimited)
      case limit: LimitExec => below(limit, isLimited = true)
      case _: Exchange | _: SortExec | _: BaseAggregateExec => below(plan, isLimited = false)
      case join: BaseJoinExec => (join, isLimited) +: below(join, isLimited)
      case other => below(other, isLimited)
    }

    private def below(plan: SparkPlan, isLimited: Boolean) =
      plan.children.flatMap(in(_, isLimited)) ++ plan.subqueries.flatMap(in(_, isLimited = false))
  }

  /** Rows by the metrics of the operators that have run. */
  private[explain] object Rows {

    def of(plan: SparkPlan): Option[Double] = plan match {
      case adaptive: AdaptiveSparkPlanExec => of(adaptive.executedPlan)
      case stage: QueryStageExec => of(stage.plan)
      case reused: ReusedExchangeExec => of(reused.child)
      case union: UnionExec =>
        val parts = union.children.map(of)
        Option.when(parts.forall(_.isDefined))(parts.flatten.sum)
      case other => counted(other).orElse(passedOn(other).flatMap(of))
    }

    /** By the operator's own metric. */
    def counted(plan: SparkPlan): Option[Double] =
      Seq("numOutputRows", "shuffleRecordsWritten", "pythonNumRowsReceived")
        .flatMap(plan.metrics.get)
        .map(_.value.toDouble)
        .headOption

    /** The input of an operator that returns the rows that it reads. */
    private def passedOn(plan: SparkPlan): Option[SparkPlan] = plan match {
      case one: UnaryExecNode => Some(one.child)
      case other => other.children.headOption.filter(_.outputSet == other.outputSet)
    }

    def isReduced(plan: SparkPlan): Boolean = plan match {
      case adaptive: AdaptiveSparkPlanExec => isReduced(adaptive.executedPlan)
      case stage: QueryStageExec => isReduced(stage.plan)
      case reused: ReusedExchangeExec => isReduced(reused.child)
      case other => filtersAtRuntime(other) || other.children.exists(isReduced)
    }

    private def filtersAtRuntime(plan: SparkPlan): Boolean =
      ReducedRows.isMarked(plan) || plan.expressions.exists(_.exists {
        case _: BloomFilterMightContain => true
        case DynamicPruningExpression(_: Literal) => false
        case _: DynamicPruningExpression => true
        case _ => false
      })
  }
}
