package io.selinger.reference

import io.selinger.reference.Family.Nothing
import io.selinger.strategy.{AwaitBuildSide, SelectJoinOperator, ShuffleByCommonKeys}

/** The operators of joins, in the order in which Spark prefers them. */
private object JoinFamilies {

  private val selection = Seq("JoinSelection")

  private val broadcastHash = Family(
    "Join selection: broadcast hash join",
    Nil,
    selection,
    "Where one side has at most 10 MiB (spark.sql.autoBroadcastJoinThreshold) by the size of its files.",
    "Decides by the rows and their width, and by cost and memory. Where that is uncertain, shuffles the side first that may be small, and measures it.",
    "",
    Seq(
      FamilyQuery("join_broadcast_hash", SelectJoinOperator)(Shows.joins("SortMergeJoin")),
      FamilyQuery("join_broadcast_measured", AwaitBuildSide)(Shows.joins("SortMergeJoin")),
      FamilyQuery("join_broadcast_groups", AwaitBuildSide)(Shows.joins("SortMergeJoin"))
    )
  )

  private val shuffledHash = Family(
    "Join selection: shuffled hash join",
    Nil,
    selection,
    "Only with a hint, if spark.sql.join.preferSortMergeJoin is false, or at a re-plan below spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold, which is 0 by default.",
    "Chooses it where it costs less than sorting and the hash table is proven to fit.",
    "Not added yet: the hash table cannot spill.",
    Seq(
      FamilyQuery("join_shuffled_hash", SelectJoinOperator)(Shows.joins("SortMergeJoin"))
    )
  )

  private val sortMerge = Family(
    "Join selection: sort-merge join, and shuffles",
    Nil,
    selection,
    "Wherever keys can be sorted and no side can be broadcast. Each operator demands a shuffle by its own keys.",
    "Keeps the join where no hash table is safe. Shuffles once by the keys that two operators have in common.",
    "",
    Seq(
      FamilyQuery("join_sort_merge")(Shows.joins("SortMergeJoin")),
      FamilyQuery("shuffles", ShuffleByCommonKeys)(
        Shows.physical("rows are shuffled twice")(PlanShape.names(_).count(_ == "Exchange") == 2)
      )
    )
  )

  private val nestedLoop = Family(
    "Join selection: broadcast nested loop join",
    Nil,
    selection,
    "Without equal keys, where one side is small or the type of the join demands it.",
    "Broadcasts the small side also where Spark takes the files for large.",
    "Not added yet: an operator for conditions on ranges.",
    Seq(
      FamilyQuery("join_nested_loop", SelectJoinOperator)(Shows.joins("CartesianProduct"))
    )
  )

  private val cartesian = Family(
    "Join selection: cartesian product",
    Nil,
    selection :+ "CheckCartesianProducts",
    "Inner joins without equal keys of two large sides. Without any condition they are an error, if spark.sql.crossJoin.enabled is false.",
    Nothing,
    "",
    Seq(
      FamilyQuery("join_cartesian_product")(Shows.joins("CartesianProduct")),
      FamilyQuery("cartesian_products")(Shows.fails("cartesian product"))
    )
  )

  private val hints = Family(
    "Hints (future work of the slides)",
    Nil,
    "EliminateResolvedHint" +: selection,
    "The hints BROADCAST, MERGE, SHUFFLE_HASH and SHUFFLE_REPLICATE_NL decide first.",
    Nothing,
    "",
    Seq(FamilyQuery("hints")(Shows.joins("SortMergeJoin")))
  )

  val all: Seq[Family] = Seq(broadcastHash, shuffledHash, sortMerge, nestedLoop, cartesian, hints)
}
