package io.selinger.reference

import io.selinger.reference.Family.Nothing
import io.selinger.reference.PlanShape._
import io.selinger.rule.UnwrapFunctionsInFilters
import io.selinger.stats.samples.SamplePredicates
import io.selinger.strategy.{ComputeDecimalsInLongs, SearchLikePatterns}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero

/** Families that rewrite expressions. */
private object ExpressionFamilies {

  private val constants = Family(
    "Finish analysis, constants and nulls",
    Seq(
      "FinishAnalysis",
      "NullPropagation",
      "ConstantPropagation",
      "ConstantFolding",
      "ReorderAssociativeOperator",
      "ReplaceNullWithFalseInPredicate",
      "CombineConcats"
    ),
    Seq("ComputeCurrentTime", "ReplaceExpressions", "RewriteNonCorrelatedExists"),
    "The current time is a constant of the query, and functions that are composed of others are replaced. Constants are computed once, also across additions and nested concat. They replace columns that are equal to them. What is null for certain is left out, and is false in a filter.",
    Nothing,
    "",
    Seq(
      FamilyQuery("constants")(
        Shows.optimized("one addition, one concat and no conditional are left")(plan =>
          expressions(plan).count(_.isInstanceOf[Add]) == 1 &&
            expressions(plan).count(_.isInstanceOf[Concat]) == 1 &&
            !computes[Coalesce](plan) && !computes[If](plan)
        )
      ),
      FamilyQuery("finish_analysis")(
        Shows.optimized("neither the current date nor nvl is computed")(plan =>
          !expressions(plan).exists(e => Set("current_date", "nvl").contains(e.prettyName))
        )
      )
    )
  )

  private val conditions = Family(
    "Conditions and comparisons",
    Seq(
      "BooleanSimplification",
      "SimplifyConditionals",
      "SimplifyBinaryComparison",
      "PushFoldableIntoBranches",
      "PruneFilters"
    ),
    Nil,
    "AND, OR, NOT, IF, CASE and comparisons lose what is always true or said twice, and filters that keep all rows are left out.",
    Nothing,
    "",
    Seq(
      FamilyQuery("boolean_conditions")(
        Shows.optimized("no conditional is left, and the common condition stands once")(plan =>
          !computes[If](plan) && !computes[CaseWhen](plan) && !computes[Or](plan)
        )
      )
    )
  )

  private val searches = Family(
    "IN lists and LIKE",
    Seq("OptimizeIn", "LikeSimplification"),
    Nil,
    "Repeated values leave IN, and long lists become a set. LIKE with a simple pattern becomes a search for a prefix, suffix or part.",
    "Measures on a sample what share of the rows a pattern keeps. Patterns of several texts with % between them are searched text by text, where Spark runs a regular expression.",
    "",
    Seq(
      FamilyQuery("in_lists")(
        Shows.optimized("one list of three values and one set")(plan =>
          expressions(plan).collect { case in: In => in.list.size } == Seq(3) &&
            computes[InSet](plan)
        )
      ),
      FamilyQuery("like_patterns", SamplePredicates)(
        Shows.optimized("there is no LIKE")(plan =>
          computes[Contains](plan) && !computes[Like](plan)
        )
      ),
      FamilyQuery("like_several_texts", SearchLikePatterns)(
        Shows.optimized("LIKE stays")(computes[Like](_))
      )
    )
  )

  private val casts = Family(
    "Casts, case conversions, functions in filters",
    Seq("SimplifyCasts", "SimplifyCaseConversionExpressions", "UnwrapCastInBinaryComparison"),
    Nil,
    "Casts that change nothing are left out, and of two case conversions the inner one. A cast of a column in a comparison moves to the constant, so that the files can be filtered.",
    "Functions of a column in filters, such as year(day) = 2000, become ranges of the column, so that parts of files are skipped.",
    "",
    Seq(
      FamilyQuery("casts")(
        Shows.optimized("no cast and one case conversion are left")(plan =>
          !computes[Cast](plan) && computes[Upper](plan) && !computes[Lower](plan)
        )
      ),
      FamilyQuery("functions_in_filters", UnwrapFunctionsInFilters)(
        Shows.optimized("the year is computed for each row")(computes[Year](_))
      )
    )
  )

  private val numbers = Family(
    "Decimals, floating-point keys",
    Seq("DecimalAggregates", "NormalizeFloatingNumbers"),
    Nil,
    "sum and avg of decimals of few digits are computed in longs or doubles. NaN and -0.0 are made equal where they are keys of GROUP BY, joins and windows.",
    "Computes wider decimals, their sums, products and casts in machine integers where the values fit.",
    "",
    Seq(
      FamilyQuery("decimals", ComputeDecimalsInLongs)(
        Shows.optimized("one of two sums is over longs")(plan =>
          expressions(plan).count(_.isInstanceOf[UnscaledValue]) == 1
        )
      ),
      FamilyQuery("floating_point_keys")(
        Shows.optimized("keys are normalized")(computes[NormalizeNaNAndZero](_))
      )
    )
  )

  val all: Seq[Family] = Seq(constants, conditions, searches, casts, numbers)
}
