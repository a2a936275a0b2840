package io.selinger.reference

import io.selinger.reference.PlanShape._
import io.selinger.rule.{CodeGroupedTexts, PushAggregateBelowJoin, SplitDistinctAggregates}
import io.selinger.strategy.{CascadeGroupingSets, SelectAggregateOperator, StopPartialAggregation}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Expand, Join}
import org.apache.spark.sql.types.StringType

/** The operators of aggregations. */
private object AggregateFamilies {

  private val strategy = Seq("Aggregation")

  private def operators(name: String, count: Int): Shows =
    Shows.physical(s"there are $count operators $name")(names(_).count(_ == name) == count)

  private val hash = Family(
    "Hash aggregate",
    Nil,
    strategy,
    "A partial aggregation in each task, a shuffle, and a final one; above joins.",
    "Aggregates the input of a join first, where that leaves few rows. Measures in each task what partial aggregation saves, and stops it if that is little.",
    "",
    Seq(
      FamilyQuery("aggregate_hash", StopPartialAggregation)(operators("HashAggregate", 2)),
      FamilyQuery("aggregate_below_join", PushAggregateBelowJoin)(
        Shows.optimized("the aggregation is above the join")(
          _.collect { case aggregate: Aggregate => aggregate }.map(has[Join](_)) == Seq(true)
        )
      )
    )
  )

  private val texts = Family(
    "Texts as grouping keys",
    Nil,
    strategy,
    "Each row's texts are hashed, compared and copied, in each task and behind the shuffle.",
    "Numbers the texts of small tables, and groups, sorts and ranks by the numbers.",
    "",
    Seq(
      FamilyQuery("aggregate_by_text", CodeGroupedTexts)(
        Shows.optimized("the key is a text")(
          _.collect { case aggregate: Aggregate =>
            aggregate.groupingExpressions.map(_.dataType)
          } ==
            Seq(Seq(StringType))
        )
      )
    )
  )

  private val others = Family(
    "Object hash and sort aggregates",
    Nil,
    strategy,
    "Functions whose state is an object use a hash table of at most 128 keys in each task, then sort. Where the state cannot be changed in place, such as the maximum of a text, rows are sorted.",
    "Groups both in a hash table that is limited by memory, and spills.",
    "",
    Seq(
      FamilyQuery("aggregate_object_hash", SelectAggregateOperator)(
        operators("ObjectHashAggregate", 2)
      ),
      FamilyQuery("aggregate_sort", SelectAggregateOperator)(operators("SortAggregate", 2))
    )
  )

  private val distinct = Family(
    "DISTINCT in aggregates",
    Seq("EliminateDistinct", "RewriteDistinctAggregates"),
    strategy,
    "DISTINCT is left out where it changes nothing. One takes four aggregations and two shuffles; several copy each row for each of them.",
    "Reads files once for each of several DISTINCT, with its own columns, where that costs less than copies of all rows.",
    "",
    Seq(
      FamilyQuery("distinct_needless")(operators("HashAggregate", 2)),
      FamilyQuery("distinct_one")(operators("HashAggregate", 4)),
      FamilyQuery("distinct_several", SplitDistinctAggregates)(
        Shows.optimized("rows are copied")(has[Expand](_)).and(operators("HashAggregate", 4))
      )
    )
  )

  private val groupingSets = Family(
    "Grouping sets",
    Nil,
    strategy,
    "ROLLUP, CUBE and GROUPING SETS copy each row for each set.",
    "Computes each set from a finer one.",
    "",
    Seq(
      FamilyQuery("grouping_sets", CascadeGroupingSets)(
        Shows.optimized("rows are copied")(has[Expand](_))
      )
    )
  )

  val all: Seq[Family] = Seq(hash, texts, others, distinct, groupingSets)
}
