package io.selinger.reference

import io.selinger.ordering.ReorderJoins
import io.selinger.reference.Family.Nothing
import io.selinger.reference.PlanShape._
import io.selinger.rule.{
  ComputeAggregateAsWindow,
  DeduplicateSemiJoins,
  EliminateGrouping,
  EliminateJoins,
  GroupSelfJoins,
  JoinAfterGrouping,
  MergeSubplansByCost,
  PushTopNBelowJoin,
  ReduceGroupedInput,
  RemoveImpliedLookups,
  ReuseFinerGroups,
  ShareSimilarAggregates
}
import io.selinger.strategy.{FilterRanksBeforeSort, PackSortKeys, PushJoinKeysIntoScan}
import org.apache.spark.sql.catalyst.expressions.{
  CreateNamedStruct,
  GreaterThan,
  IsNotNull,
  ScalarSubquery,
  Size
}
import org.apache.spark.sql.catalyst.plans.{
  Inner,
  JoinType,
  LeftAnti,
  LeftOuter,
  LeftSemi,
  RightOuter
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.SortExec

/** Families that rewrite operators. */
private object LogicalFamilies {

  private def joined(types: JoinType*): Shows =
    Shows.optimized(s"the joins are ${types.mkString(", ")}")(joinTypes(_) == types)

  private val setOperations = Family(
    "Set operations and DISTINCT (replace operators)",
    Seq(
      "ReplaceIntersectWithSemiJoin",
      "ReplaceExceptWithFilter",
      "ReplaceExceptWithAntiJoin",
      "ReplaceDistinctWithAggregate",
      "RewriteExceptAll",
      "RewriteIntersectAll"
    ),
    Nil,
    "INTERSECT becomes a semi join, EXCEPT an anti join or a filter, DISTINCT a GROUP BY. INTERSECT ALL and EXCEPT ALL count rows in a union of both sides.",
    "Removes duplicates from the right side of the semi and anti joins before it is shuffled.",
    "Not added yet: INTERSECT ALL and EXCEPT ALL group all rows of both sides, also where one side is small.",
    Seq(
      FamilyQuery("set_operations", DeduplicateSemiJoins)(
        Shows.optimized("there is a semi and an anti join, and no set operation")(plan =>
          joinTypes(plan).toSet == Set(LeftSemi, LeftAnti) && !has[SetOperation](plan) &&
            !has[Distinct](plan)
        )
      ),
      FamilyQuery("set_operations_all")(
        Shows.optimized("rows are counted in unions, and repeated")(plan =>
          has[Union](plan) && has[Generate](plan) && !has[SetOperation](plan)
        )
      )
    )
  )

  private val aggregateCleanUp = Family(
    "Clean-up of GROUP BY",
    Seq(
      "RemoveLiteralFromGroupExpressions",
      "RemoveRepetitionFromGroupExpressions",
      "RemoveRedundantAggregates"
    ),
    Nil,
    "Literals and repeated columns leave the keys. A GROUP BY without functions below a coarser one is left out.",
    "Groups by the proven key of a joined table instead of its other columns, and joins the table to the groups. Leaves out DISTINCT and GROUP BY by a proven key.",
    "Not added yet: columns that a key determines stay among the keys where a function uses the table.",
    Seq(
      FamilyQuery("aggregate_cleanup")(
        Shows.optimized("the only key is a column")(plan =>
          aggregates(plan).forall(a => a.groupingExpressions.size == 1 && groupsByColumns(a))
        )
      ),
      FamilyQuery("aggregate_redundant")(
        Shows.optimized("there is one aggregation")(aggregates(_).size == 1)
      ),
      FamilyQuery("group_by_key", EliminateGrouping)(
        Shows.optimized("there are two keys")(
          aggregates(_).map(_.groupingExpressions.size) == Seq(2)
        )
      ),
      FamilyQuery("group_by_joined_key", JoinAfterGrouping)(
        Shows.optimized("there are two keys, above the join")(plan =>
          aggregates(plan).map(_.groupingExpressions.size) == Seq(2) &&
            aggregates(plan).forall(has[Join](_))
        )
      )
    )
  )

  private val filters = Family(
    "Filters through other operators",
    Seq("PushDownPredicates", "InferWindowGroupLimit"),
    Seq("PushPredicateThroughNonJoin", "CombineFilters"),
    "Filters go below projections, aggregations, windows, unions and other operators, into the scans. A filter on a rank becomes a limit in each partition, after the sort.",
    "Drops rows by their rank before the sort.",
    "",
    Seq(
      FamilyQuery("filters_through_operators")(
        Shows.optimized("filters are on all scans and nowhere else")(plan =>
          filtersAreInScans(plan) && allLeavesAreFiltered(plan)
        )
      ),
      FamilyQuery("filters_on_ranks", FilterRanksBeforeSort)(
        Shows.physical("there is a limit on the sorted rows of each partition")(operators =>
          names(operators).contains("WindowGroupLimit")
        )
      )
    )
  )

  private val filtersThroughJoins = Family(
    "Filters through joins",
    Seq("PushDownPredicates", "PushExtraPredicateThroughJoin"),
    Seq("PushPredicateThroughJoin"),
    "Filters and join conditions go to the side that has their columns, and what an OR implies for one side, too.",
    "Takes the keys of the small side, when it has been read, as a filter of the scan of the large side.",
    "",
    Seq(
      FamilyQuery("filters_through_joins", PushJoinKeysIntoScan)(
        Shows.optimized("both scans are filtered")(allLeavesAreFiltered)
      )
    )
  )

  private val limits = Family(
    "Limits and sorts",
    Seq("LimitPushDown", "EliminateLimits", "EliminateSorts", "FoldablePropagation"),
    Nil,
    "A limit goes below a union and to the preserved side of an outer join, and of two limits the smaller one stays. Sorts are left out below aggregations, below other sorts, and by constants.",
    "Takes the first rows of a sorted input before it is joined: below outer joins, LATERAL VIEW OUTER, and inner joins of which each row is proven to have a match. Packs several numeric sort keys into one number.",
    "Not added yet: a sort stays below one that begins with a constant.",
    Seq(
      FamilyQuery("limits")(
        Shows.optimized(
          "each side of the union has a limit, and the global limit is the smaller one"
        )(plan =>
          plan.collect { case union: Union => union }.forall(_.children.forall(
            has[LocalLimit](_)
          )) &&
            plan.collect { case limit: GlobalLimit => limit.maxRows } == Seq(Some(5L))
        )
      ),
      FamilyQuery("limits_outer_join")(
        Shows.optimized("the left side of the join has a limit")(
          _.collect { case join: Join => join.left }.forall(has[LocalLimit](_))
        )
      ),
      FamilyQuery("sorts")(
        Shows.optimized("there is one sort, by one column")(
          _.collect { case sort: Sort => sort.order.size } == Seq(1)
        )
      ),
      FamilyQuery("sorts_by_constants")(Shows.optimized("nothing is sorted")(!has[Sort](_))),
      FamilyQuery("limits_sorted", PushTopNBelowJoin)(
        Shows.optimized("there is no limit below the join")(
          _.collect { case join: Join => join }.forall(!has[LocalLimit](_))
        )
      ),
      FamilyQuery("sorts_by_numbers", PackSortKeys)(
        Shows.physical("rows are sorted by two keys")(
          _.collect { case sort: SortExec => sort.sortOrder.size } == Seq(2)
        )
      ),
      FamilyQuery("sorts_kept")(
        Shows.optimized("there are two sorts")(_.collect { case sort: Sort => sort }.size == 2)
      )
    )
  )

  private val columns = Family(
    "Column pruning, projections through unions",
    Seq("ColumnPruning", "PushProjectionThroughUnion", "SchemaPruning"),
    Nil,
    "Scans read the columns and the fields of structs that are used, below unions and aggregations as well.",
    Nothing,
    "",
    Seq(
      FamilyQuery("column_pruning")(
        Shows.physical("each scan reads one column, and no maximum is computed")(operators =>
          columnsRead(operators).sortBy(_.head) == Seq(Seq("k"), Seq("k"), Seq("point")) &&
            !operators.exists(_.expressions.exists(_.sql.contains("max(")))
        )
      )
    )
  )

  private val joinOrder = Family(
    "Join order: as written, by cost, star schema",
    Seq("ReorderJoin", "CostBasedJoinReorder"),
    Seq("StarSchemaDetection"),
    "Joins are kept in the order written, where a condition connects them. With spark.sql.cbo.joinReorder.enabled, inner joins of tables that were analysed are ordered by cost; star schemas are detected, if they are switched on.",
    "Orders joins of every type by the time of their operators and shuffles (the enhanced cost formula of the slides' future work), with rows from footers and samples. Nothing has to be analysed or switched on. Orders that Spark chooses by cost are left as they are.",
    "",
    Seq(
      FamilyQuery("join_order_written", ReorderJoins)(
        Shows.optimized("the first join is that of the first two connected tables")(plan =>
          joinTypes(plan) == Seq(Inner, Inner) && joinedFirst(plan)("quantity")
        )
      ),
      FamilyQuery("join_order_cost")(
        Shows.optimized("the smallest relation is joined first")(plan =>
          plan.collect { case join: Join if !join.children.exists(has[Join](_)) => join }
            .exists(_.children.exists(_.collectLeaves().flatMap(_.maxRows).contains(10L)))
        )
      )
    )
  )

  private val outerJoins = Family(
    "Outer-join elimination, five cases",
    Seq("EliminateOuterJoin"),
    Nil,
    "Where a filter drops the rows that an outer join fills with nulls: full and both sides filtered, left and the right side, right and the left side become inner joins (1 to 3); full and one side filtered becomes a left or right outer join (4, 5).",
    Nothing,
    "",
    Seq(Inner, Inner, Inner, LeftOuter, RightOuter).zipWithIndex.map { case (joinType, i) =>
      FamilyQuery(s"outer_join_${i + 1}")(joined(joinType))
    }
  )

  private val unusedJoins = Family(
    "Joins that are not needed",
    Seq("EliminateOuterJoin"),
    Seq("DistinctKeyVisitor"),
    "An outer join whose filled side is not used is left out below DISTINCT, and below a projection where a GROUP BY makes the key unique.",
    "Leaves out outer joins with a table by columns whose values are proven to be unique, and inner joins where each row is proven to have one match.",
    "Not added yet: self-joins on a key stay where both places use columns.",
    Seq(
      FamilyQuery("outer_join_unused")(joined()),
      FamilyQuery("outer_join_below_aggregate")(joined()),
      FamilyQuery("outer_join_unique_table", EliminateJoins)(joined(LeftOuter)),
      FamilyQuery("foreign_key_join", EliminateJoins)(joined(Inner)),
      FamilyQuery("self_join_on_key", EliminateJoins)(joined(Inner))
    )
  )

  private val inferredFilters = Family(
    "Inferred filters",
    Seq("InferFiltersFromConstraints", "InferFiltersFromGenerate"),
    Nil,
    "A filter on one join key is inferred for the other, keys are not null, and exploded arrays are not empty.",
    "Where Spark infers the same IN for both sides, looks up the keys of the smaller side only.",
    "Not added yet: nothing is inferred for semi and anti joins that were IN and EXISTS.",
    Seq(
      FamilyQuery("inferred_filters")(
        Shows.optimized("both sides have k > 20, and the array is not empty")(plan =>
          expressions(plan).count(_.isInstanceOf[GreaterThan]) >= 3 && computes[Size](plan) &&
            computes[IsNotNull](plan)
        )
      ),
      FamilyQuery("inferred_lookups", RemoveImpliedLookups)(joined(Inner, LeftSemi, LeftSemi)),
      FamilyQuery("inferred_semi_join")(
        joined(LeftSemi).and(
          Shows.optimized("k > 20 stands once")(plan =>
            expressions(plan).count(_.isInstanceOf[GreaterThan]) == 1
          )
        )
      )
    )
  )

  private val combined = Family(
    "Combined operators",
    Seq("CollapseProject", "CombineUnions", "CollapseRepartition", "CollapseWindow"),
    Seq("CombineFilters"),
    "Neighbouring projections, filters, unions, limits and repartitions become one, and so do windows with the same partitions and order.",
    Nothing,
    "Not added yet: windows whose partitions or orders differ in part are sorted for each.",
    Seq(
      FamilyQuery("combined_operators")(
        Shows.optimized("no projection, filter, union or repartition is above another one")(plan =>
          !neighbours[Project](plan) && !neighbours[Filter](plan) && !neighbours[Union](plan) &&
            !neighbours[RepartitionOperation](plan)
        )
      ),
      FamilyQuery("combined_windows")(
        Shows.optimized("there is one window")(windows(_) == 1)
      ),
      FamilyQuery("windows_in_part_equal")(
        Shows.optimized("there are two windows")(windows(_) == 2)
      )
    )
  )

  private val predicateSubqueries = Family(
    "IN and EXISTS",
    Seq("RewritePredicateSubquery", "PullupCorrelatedPredicates"),
    Nil,
    "IN and EXISTS become semi joins, NOT EXISTS and NOT IN anti joins.",
    "Removes duplicates from the right side, where there are many. Groups a table instead of joining it with itself, where only keys with different values are asked for.",
    "",
    Seq(
      FamilyQuery("self_join_of_keys", GroupSelfJoins)(joined(LeftSemi, Inner)),
      FamilyQuery("predicate_subqueries", DeduplicateSemiJoins)(
        Shows.optimized("there are a semi and an anti join without an aggregation")(plan =>
          joinTypes(plan).toSet == Set(LeftSemi, LeftAnti) && aggregates(plan).isEmpty
        )
      )
    )
  )

  private val scalarSubqueries = Family(
    "Scalar subqueries",
    Seq("RewriteCorrelatedScalarSubquery", "PullupCorrelatedPredicates", "MergeSubplans"),
    Nil,
    "A correlated scalar subquery becomes an outer join with all groups. Uncorrelated ones over the same rows are computed together.",
    "Computes only the groups that the join uses. A correlated aggregate over the table that the query reads anyway becomes a window where that costs less. Computes uncorrelated subqueries together also where their filters differ and the estimated cost is lower.",
    "",
    Seq(
      FamilyQuery("correlated_scalar_subqueries", ReduceGroupedInput)(
        Shows.optimized("groups are joined, and their input is not filtered by items")(plan =>
          joinTypes(plan) == Seq(Inner) && aggregates(plan).forall(!has[Join](_))
        )
      ),
      FamilyQuery("correlated_same_table", ComputeAggregateAsWindow)(
        Shows.physical("the table is read twice")(columnsRead(_).size == 2)
      ),
      FamilyQuery("scalar_subqueries", MergeSubplansByCost)(
        Shows.optimized("both subqueries are one")(subqueries(_) == 1)
      ),
      FamilyQuery("scalar_subqueries_filtered", MergeSubplansByCost)(
        Shows.optimized("there are two subqueries")(subqueries(_) == 2)
      )
    )
  )

  private def windows(plan: LogicalPlan): Int = plan.collect { case window: Window => window }.size

  /** How many subqueries differ. */
  private def subqueries(plan: LogicalPlan): Int =
    expressions(plan).collect { case query: ScalarSubquery =>
      query.plan.canonicalized
    }.distinct.size

  private val usedTwice = Family(
    "Parts that are used several times",
    Seq("InlineCTE"),
    Nil,
    "CTEs are inlined. Shuffles of equal plans are reused.",
    "Computes groups once that are used with several filters, and coarse groups from finer ones.",
    "Not added yet: other CTEs are computed again where their uses differ.",
    Seq(
      FamilyQuery("parts_used_twice", ShareSimilarAggregates)(
        Shows.optimized("there are two aggregations that differ")(plan =>
          aggregates(plan).map(_.canonicalized).distinct.size == 2
        )
      ),
      FamilyQuery("finer_groups", ReuseFinerGroups)(
        Shows.physical("the table is read twice")(columnsRead(_).size == 2)
      )
    )
  )

  private val aliases = Family(
    "Redundant aliases, fields of new structs",
    Seq("RemoveRedundantAliases", "RemoveNoopOperators", "SimplifyExtractValueOps"),
    Nil,
    "Aliases that rename nothing and projections that change nothing are left out. A field that is taken out of a struct, array or map made in the query is computed without it.",
    Nothing,
    "",
    Seq(
      FamilyQuery("redundant_aliases")(
        Shows.optimized("one projection takes columns only")(plan =>
          projects(plan) == 1 && !computes[CreateNamedStruct](plan)
        )
      ),
      FamilyQuery("noop_projections")(
        Shows.optimized("there is no projection")(projects(_) == 0)
      )
    )
  )

  private val localRelations = Family(
    "Local and empty relations",
    Seq("ConvertToLocalRelation", "PropagateEmptyRelation"),
    Nil,
    "Rows that are written in the query are computed while it is planned. Joins and other operators over nothing are left out.",
    Nothing,
    "Not added yet: a filter that the value ranges of footers contradict still opens the files.",
    Seq(
      FamilyQuery("local_relations")(
        Shows.optimized("the plan is one list of rows")(_.isInstanceOf[LocalRelation])
      ),
      FamilyQuery("filter_contradicted")(
        Shows.optimized("the table is filtered")(allLeavesAreFiltered)
      )
    )
  )

  val all: Seq[Family] = Seq(
    setOperations,
    aggregateCleanUp,
    filters,
    filtersThroughJoins,
    limits,
    columns,
    joinOrder,
    outerJoins,
    unusedJoins,
    inferredFilters,
    combined,
    predicateSubqueries,
    scalarSubqueries,
    usedTwice,
    aliases,
    localRelations
  )
}
