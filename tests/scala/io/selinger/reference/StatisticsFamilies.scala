package io.selinger.reference

import io.selinger.rule.ShareEstimates
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.stats.samples.SamplePredicates
import io.selinger.stats.sketches.UseCollectedStatistics
import io.selinger.strategy.{SelectJoinOperator, SizeShuffles}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, Join, LeafNode, LogicalPlan}

/** What is known about data, and what is estimated of it. */
private object StatisticsFamilies {

  private def noRows(text: String)(of: PartialFunction[LogicalPlan, LogicalPlan]): Shows =
    Shows.optimized(s"Spark knows no rows of $text")(plan =>
      plan.collect(of).nonEmpty && plan.collect(of).forall(_.stats.rowCount.isEmpty)
    )

  private val filters = Family(
    "Statistics: cardinality of filters",
    Nil,
    Seq("FilterEstimation"),
    "Needs ANALYZE TABLE and spark.sql.cbo.enabled. Otherwise a filter is as large as its input, and a table as large as its files.",
    "Reads rows, nulls and value ranges from footers, and evaluates the filter on a sample.",
    "",
    Seq(
      FamilyQuery("statistics_filter", ReadFooterStatistics, SamplePredicates)(
        noRows("filters") { case filter: Filter => filter }
      )
    )
  )

  private val joins = Family(
    "Statistics: cardinality of joins and aggregations",
    Nil,
    Seq("JoinEstimation", "AggregateEstimation"),
    "Needs the distinct values of the keys. Otherwise a join is the product of its sides, and an aggregation as large as its input.",
    "Takes distinct values from dictionaries and samples, joins the samples, counts combinations of keys, and keeps an upper bound. Few groups are shuffled into few partitions.",
    "",
    Seq(
      FamilyQuery("statistics_join", SelectJoinOperator)(
        Shows.optimized("the join has the product of its sides")(plan =>
          plan.collect { case join: Join => join }.exists(join =>
            join.stats.sizeInBytes >= join.children.map(_.stats.sizeInBytes).product
          )
        )
      ),
      FamilyQuery("statistics_aggregate", SizeShuffles)(
        noRows("aggregations") { case aggregate: Aggregate => aggregate }
      )
    )
  )

  private val sketches = Family(
    "Statistics: histograms, sketches, partitions (future work of the slides)",
    Nil,
    Seq("Histogram"),
    "Histograms of equal height for columns that were analysed with spark.sql.statistics.histogram.enabled. Of partitions only rows and size.",
    "selinger_analyze keeps sketches for each file, and merges those of the files that are read: quantiles, frequent values, distinct values, shared keys.",
    "",
    Seq(
      FamilyQuery("statistics_sketches", UseCollectedStatistics)(
        noRows("relations") { case leaf: LeafNode => leaf }
      )
    )
  )

  private val shared = Family(
    "Statistics: Spark's own decisions",
    Nil,
    Seq("BasicStatsPlanVisitor"),
    "Broadcasts, dynamic partition pruning and runtime filters follow the sizes that Spark knows.",
    "Puts sizes that were counted or sampled into Spark's statistics, if its rule is switched on.",
    "",
    Seq(
      FamilyQuery("statistics_shared", ShareEstimates)(
        noRows("relations") { case leaf: LeafNode => leaf }
      )
    )
  )

  val all: Seq[Family] = Seq(filters, joins, sketches, shared)
}
