package io.selinger.conf

import io.selinger.core.{Amounts, Mode, RuleDescription, Switches}
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.selinger.ConfEntry

/**
 * A setting of ours: a Spark conf with what the documentation and `selinger_settings()` say besides.
 *
 * @param category the heading under which it is documented
 * @param unit of its value: `bytes`, `ms`, `share`, `factor`, `count`, `flag`, `path` or `choice`
 */
final case class Setting[A](entry: ConfEntry[A], category: String, unit: String) {
  def key: String = entry.key
  def doc: String = entry.doc
  def default: String = entry.default

  /** The default as people read it: `64 MiB`. */
  def shownDefault: String =
    if (unit == "bytes") Amounts.bytes(JavaUtils.byteStringAsBytes(default).toDouble) else default

  /** The value in the session of the calling thread; never keep it. */
  def value: A = entry.value

  /** The value as the user would write it. */
  def text: String = SQLConf.get.getConfString(key, default)
}

/** Every setting of Selinger. Entries are read at each call, so `SET` works at once. */
object SelingerConf {

  private def key(name: String) = s"spark.selinger.$name"

  private def share(name: String, default: Double, doc: String) =
    ConfEntry.number(key(name), default, doc)(
      value => value > 0.0 && value <= 1.0,
      "must be greater than 0 and at most 1"
    )

  // ---- general ------------------------------------------------------------------------------

  val MODE: Setting[String] = Setting(
    ConfEntry.choice(
      key("mode"),
      Mode.On.label,
      Mode.all.map(_.label),
      "on: plans are changed; advise: decisions are made and explained, plans stay as they are; " +
        "off: nothing is done."
    ),
    "general",
    "choice"
  )

  val FAIL_ON_ERROR: Setting[Boolean] = Setting(
    ConfEntry.flag(
      key("failOnError"),
      false,
      "An error inside Selinger fails the query instead of being recorded and passed over. " +
        "For tests and bug reports."
    ),
    "general",
    "flag"
  )

  val PLANNING_BUDGET_MS: Setting[Long] = Setting(
    ConfEntry.count(
      key("planning.budgetMs"),
      2000L,
      "Time that Selinger may spend on one planning pass of one query. When it is used up, the " +
        "rest of the plan is left to Spark, and explain says so."
    ),
    "general",
    "ms"
  )

  val SMALL_TABLE_MAX_BYTES: Setting[Long] = Setting(
    ConfEntry.bytes(
      key("planning.smallTableMaxBytes"),
      "256k",
      "A query is left to Spark if each of its tables has at most this size, in files or in memory: " +
        "planning it otherwise would take longer than it could save. A table whose size cannot be " +
        "seen without reading anything counts as large. 0: every query is planned."
    ),
    "general",
    "bytes"
  )

  val PREFETCH: Setting[Boolean] = Setting(
    ConfEntry.flag(
      key("planning.prefetch"),
      true,
      "While Spark optimizes a query with joins or GROUP BY, threads in the background begin to read " +
        "the footers and samples of its tables, several tables at a time. Set it to false to have them " +
        "read one after the other, and only when a decision needs them."
    ),
    "general",
    "flag"
  )

  val WARM_UP: Setting[Boolean] = Setting(
    ConfEntry.flag(
      key("planning.warmUp"),
      true,
      "When the first session of a driver begins to be used, a background thread plans some small " +
        "made-up queries, so that the classes that planning needs are loaded before your first " +
        "query needs them. They are planned and not run; other extensions see their plans, too. " +
        "Set it when the session is built, since it happens once in the life of a driver."
    ),
    "general",
    "flag"
  )

  val EXPLAIN_FORMAT: Setting[String] = Setting(
    ConfEntry.choice(
      key("explain.format"),
      "text",
      Seq("text", "json", "report"),
      "Form of the Selinger section in explain: text for people; json for programs; report for " +
        "bug reports: JSON with the plan, in which literals and paths are left out."
    ),
    "general",
    "choice"
  )

  val EXPLAIN_ALL: Setting[Boolean] = Setting(
    ConfEntry.flag(
      key("explain.all"),
      false,
      "The Selinger section in explain shows every decision with all its numbers. false: only what " +
        "changed."
    ),
    "general",
    "flag"
  )

  // ---- statistics ---------------------------------------------------------------------------

  val FOOTER_MAX_FILES: Setting[Long] = Setting(
    ConfEntry.count(
      key("stats.footerMaxFiles"),
      2000L,
      "Footers read at most for one relation. Of a relation with more files, files at even " +
        "distances are read and the rest is extrapolated by bytes."
    ),
    "statistics",
    "count"
  )

  val FOOTER_BUDGET_MS: Setting[Long] = Setting(
    ConfEntry.count(
      key("stats.footerBudgetMs"),
      1000L,
      "Time to wait for the footers of one relation. What has not arrived by then is " +
        "extrapolated by bytes."
    ),
    "statistics",
    "ms"
  )

  val FOOTER_THREADS: Setting[Long] = Setting(
    ConfEntry.count(
      key("stats.footerThreads"),
      8L,
      "Threads that read the footers of one relation. They end when they have read what they began."
    ),
    "statistics",
    "count"
  )

  val FOOTER_CACHE_MAX_BYTES: Setting[Long] = Setting(
    ConfEntry.bytes(
      key("stats.footerCacheMaxBytes"),
      "64m",
      "Driver memory for footer statistics, shared by all sessions. 0 keeps none."
    ),
    "statistics",
    "bytes"
  )

  val SAMPLING_BUDGET_MS: Setting[Long] = Setting(
    ConfEntry.amount(
      key("stats.sampling.budgetMs"),
      300L,
      "Time to wait for sampled rows while one plan is made, for all its relations together. What " +
        "has not arrived by then serves the next query. 0: nothing is sampled."
    ),
    "statistics",
    "ms"
  )

  val SAMPLING_MAX_ROWS: Setting[Long] = Setting(
    ConfEntry.count(
      key("stats.sampling.maxRows"),
      10000L,
      "Rows sampled of one relation at most, spread over up to 16 of its row groups."
    ),
    "statistics",
    "count"
  )

  val SAMPLING_CACHE_MAX_BYTES: Setting[Long] = Setting(
    ConfEntry.bytes(
      key("stats.sampling.cacheMaxBytes"),
      "64m",
      "Driver memory for sampled values, shared by all sessions. 0 keeps none."
    ),
    "statistics",
    "bytes"
  )

  val KEYS_MAX_ROWS: Setting[Long] = Setting(
    ConfEntry.amount(
      key("keys.maxRows"),
      1048576L,
      "Rows that a table may have for its key to be proven while a query is planned: the columns of the " +
        "key are read in full. 0: nothing is read; keys that selinger_declare_key has checked are used."
    ),
    "statistics",
    "count"
  )

  val STATS_LOCATION: Setting[String] = Setting(
    ConfEntry.text(
      key("stats.location"),
      "",
      "Folder in which selinger_analyze and selinger_declare_key keep what they find, on any Hadoop file " +
        "system, such as " +
        "s3a://bucket/selinger-stats. Empty: nothing can be collected."
    ),
    "statistics",
    "path"
  )

  val COLLECTED_CACHE_MAX_BYTES: Setting[Long] = Setting(
    ConfEntry.bytes(
      key("stats.collectedCacheMaxBytes"),
      "64m",
      "Driver memory for collected statistics, shared by all sessions. 0 keeps none."
    ),
    "statistics",
    "bytes"
  )

  val EXPORT_BUDGET_MS: Setting[Long] = Setting(
    ConfEntry.count(
      key("stats.exportBudgetMs"),
      10000L,
      "Time to read footers and samples of one relation while its statistics are exported. What " +
        "has not arrived by then is left out of the file."
    ),
    "statistics",
    "ms"
  )

  // ---- joins --------------------------------------------------------------------------------

  val BROADCAST_MAX_BYTES: Setting[Long] = Setting(
    ConfEntry.bytes(
      key("join.broadcastMaxBytes"),
      "0",
      "Largest build side to broadcast, as the memory that its hash table needs. 0: a 128th of " +
        "the smaller of driver and executor heap, at most 256 MiB. This limits the hash table of " +
        "the expected rows. Its size at the upper bound of the rows (99.9 %) may be four times " +
        "the limit. If the value is 0 and the rows were counted, the limit itself is four times " +
        "as large, but at most 256 MiB. If spark.sql.autoBroadcastJoinThreshold is set, it is " +
        "the limit instead; -1 there means that nothing is broadcast without a hint."
    ),
    "joins",
    "bytes"
  )

  val BROADCAST_TOTAL_SHARE: Setting[Double] = Setting(
    share(
      "join.broadcastTotalShare",
      0.06,
      "Share of the smaller of driver and executor heap that the broadcasts of one query may " +
        "fill together. Tables up to 10 MiB are broadcast all the same."
    ),
    "joins",
    "share"
  )

  val HASH_MEMORY_SHARE: Setting[Double] = Setting(
    share(
      "join.hashMemoryShare",
      0.4,
      "Share of one task's execution memory that the hash table of a shuffled hash join may " +
        "fill. Such a join cannot spill."
    ),
    "joins",
    "share"
  )

  val HASH_MEMORY_MARGIN: Setting[Double] = Setting(
    ConfEntry.number(
      key("join.hashMemoryMargin"),
      1.5,
      "Factor by which a hash table may turn out larger than computed and still fit."
    )(
      _ >= 1.0,
      "must be at least 1"
    ),
    "joins",
    "factor"
  )

  val JOIN_MIN_GAIN: Setting[Double] = Setting(
    ConfEntry.number(
      key("join.minGain"),
      0.25,
      "Share of the cost of Spark's operator that another one must save to replace it: less is " +
        "within the error of estimates."
    )(
      value => value >= 0.0 && value < 1.0,
      "must be at least 0 and less than 1"
    ),
    "joins",
    "share"
  )

  val ORDER_MIN_GAIN: Setting[Double] = Setting(
    ConfEntry.number(
      key("ordering.minGain"),
      0.2,
      "Share of the cost of the written order that another order must save. More is asked where " +
        "rows are estimates, and with more joins. A quarter is enough if the order is no worse " +
        "at the upper bound of rows. Orders shared by several parts must save half of this share " +
        "of their total cost."
    )(
      value => value >= 0.0 && value < 1.0,
      "must be at least 0 and less than 1"
    ),
    "joins",
    "share"
  )

  val ORDER_MAX_PAIRS: Setting[Long] = Setting(
    ConfEntry.count(
      key("ordering.maxPairs"),
      5000L,
      "How many possible joins the exact search may look at. Larger queries are ordered by " +
        "faster, approximate methods."
    ),
    "joins",
    "count"
  )

  // ---- merging ------------------------------------------------------------------------------

  val MERGE_MIN_GAIN: Setting[Double] = Setting(
    ConfEntry.number(
      key("merge.minGain"),
      0.1,
      "Share of their cost that computing several aggregations over the same data together must " +
        "save, and so computing an aggregation as window functions over rows that the query reads anyway, " +
        "and grouping a table instead of joining it with itself. " +
        "0: this is done wherever it is possible, whatever it costs."
    )(
      value => value >= 0.0 && value < 1.0,
      "must be at least 0 and less than 1"
    ),
    "merging",
    "share"
  )

  // ---- aggregates ---------------------------------------------------------------------------

  val EAGER_MIN_GAIN: Setting[Double] = Setting(
    ConfEntry.number(
      key("aggregate.eager.minGain"),
      0.25,
      "Share of the rows read by joins and by the aggregate above them that a partial aggregate " +
        "below must save, its own input counted against it. 0: whenever it is possible, even if " +
        "nothing is known of the rows."
    )(
      value => value >= 0.0 && value < 1.0,
      "must be at least 0 and less than 1"
    ),
    "aggregates",
    "share"
  )

  val EAGER_MIN_ROWS: Setting[Long] = Setting(
    ConfEntry.amount(
      key("aggregate.eager.minRows"),
      100000L,
      "Rows that pushAggregateBelowJoin, deduplicateSemiJoins and reduceGroupedInput must save at least: " +
        "for fewer, their code takes longer to generate than it saves. A rule ignores it if its own " +
        "minimum gain is 0."
    ),
    "aggregates",
    "count"
  )

  val JOIN_LATER_MIN_GAIN: Setting[Double] = Setting(
    ConfEntry.number(
      key("aggregate.joinLaterMinGain"),
      0.05,
      "Share of the time of an aggregation over joins that must be saved by joining tables to its groups, " +
        "instead of its rows. 0: whenever it is possible, even if nothing is known of the rows."
    )(
      value => value >= 0.0 && value < 1.0,
      "must be at least 0 and less than 1"
    ),
    "aggregates",
    "share"
  )

  val CODED_TEXTS_MIN_GAIN: Setting[Double] = Setting(
    ConfEntry.number(
      key("aggregate.codedTextsMinGain"),
      0.03,
      "Share of the time of an aggregation that must be saved by grouping by numbers instead of texts, after " +
        "the time for collecting the texts is subtracted. 0: whenever it is possible, even if the number " +
        "of rows to group is unknown."
    )(
      value => value >= 0.0 && value < 1.0,
      "must be at least 0 and less than 1"
    ),
    "aggregates",
    "share"
  )

  val MAX_DICTIONARY_BYTES: Setting[Long] = Setting(
    ConfEntry.bytes(
      key("aggregate.maxDictionaryBytes"),
      "16m",
      "Size of the different texts in the grouping columns of one table, up to which rows are grouped by " +
        "numbers instead. Each task that turns texts into numbers, or numbers back into texts, holds a copy " +
        "of them. 0: never."
    ),
    "aggregates",
    "bytes"
  )

  val EARLY_TOP_N_MIN_GAIN: Setting[Double] = Setting(
    ConfEntry.number(
      key("sort.earlyTopNMinGain"),
      0.05,
      "Share of the time of a join with ORDER BY and LIMIT that must be saved by taking the first rows of an " +
        "input before it is joined. 0: whenever it is possible, even if nothing is known of the rows."
    )(
      value => value >= 0.0 && value < 1.0,
      "must be at least 0 and less than 1"
    ),
    "joins",
    "share"
  )

  val SPLIT_DISTINCT_MIN_GAIN: Setting[Double] = Setting(
    ConfEntry.number(
      key("aggregate.splitDistinctMinGain"),
      0.2,
      "Share of the time of an aggregation with several DISTINCT that must be saved by reading its files " +
        "once for each of them, instead of copying the rows. 0: whenever it is possible, even if nothing " +
        "is known of the rows."
    )(
      value => value >= 0.0 && value < 1.0,
      "must be at least 0 and less than 1"
    ),
    "aggregates",
    "share"
  )

  val DEDUPLICATE_MIN_GAIN: Setting[Double] = Setting(
    ConfEntry.number(
      key("aggregate.deduplicateMinGain"),
      0.3,
      "Share of the time to shuffle and sort the right side of a semi or anti join that must be saved " +
        "by removing its duplicates first. At least " + EAGER_MIN_ROWS.key + " rows must be saved too. " +
        "0: whenever it is possible, even if nothing is known of the rows."
    )(
      value => value >= 0.0 && value < 1.0,
      "must be at least 0 and less than 1"
    ),
    "aggregates",
    "share"
  )

  val REDUCE_GROUPED_MIN_GAIN: Setting[Double] = Setting(
    ConfEntry.number(
      key("aggregate.reduceInputMinGain"),
      0.25,
      "Share of the cost of an aggregation, or of window functions, that must be saved by filtering their " +
        "input by the keys of a join. At least " + EAGER_MIN_ROWS.key + " rows must be saved too. " +
        "0: whenever it is possible, without a look at cost, rows or the size of a broadcast."
    )(
      value => value >= 0.0 && value < 1.0,
      "must be at least 0 and less than 1"
    ),
    "aggregates",
    "share"
  )

  val CASCADE_MIN_GAIN: Setting[Double] = Setting(
    ConfEntry.number(
      key("aggregate.cascadeMinGain"),
      0.4,
      "Share of the aggregated rows that must be saved to compute the grouping sets of ROLLUP, CUBE " +
        "and GROUPING SETS from each other. Without it, each row is copied for each grouping set. " +
        "0: always, even if nothing is known about the data."
    )(
      value => value >= 0.0 && value < 1.0,
      "must be at least 0 and less than 1"
    ),
    "aggregates",
    "share"
  )

  val RANK_FILTER_MIN_GAIN: Setting[Double] = Setting(
    ConfEntry.number(
      key("aggregate.rankFilterMinGain"),
      0.5,
      "Share of the rows that the filter of ranks must be expected to drop. Below it, no filter is " +
        "added. 0: wherever it is possible, even if nothing is known about the data."
    )(
      value => value >= 0.0 && value < 1.0,
      "must be at least 0 and less than 1"
    ),
    "aggregates",
    "share"
  )

  val CASCADE_MAX_SETS: Setting[Long] = Setting(
    ConfEntry.count(
      key("aggregate.cascadeMaxSets"),
      64L,
      "Grouping sets at most that are computed from each other. Each may need a hash table of its " +
        "own in every task."
    ),
    "aggregates",
    "count"
  )

  val MAX_HASHED_LISTS: Setting[Long] = Setting(
    ConfEntry.count(
      key("aggregate.maxHashedLists"),
      1048576L,
      "Groups (estimated) up to which lists (collect_list, listagg) by one key of a fixed width are made in " +
        "a hash table, where Spark sorts. Making more of them by sorting is faster. Other keys, such as " +
        "texts or several columns, are hashed however many groups there are."
    ),
    "aggregates",
    "count"
  )

  val MAX_HASHED_OBJECTS: Setting[Long] = Setting(
    ConfEntry.count(
      key("aggregate.maxHashedObjects"),
      4096L,
      "Groups (estimated) up to which sets, percentiles, sketches and results of your own functions, by " +
        "one key of a fixed width, are made in a hash table, where Spark sorts. They need more memory " +
        "for each group than lists do (aggregate.maxHashedLists)."
    ),
    "aggregates",
    "count"
  )

  val MEASURED_PARTIAL_RATIO: Setting[Double] = Setting(
    ConfEntry.number(
      key("aggregate.measuredPartialRatio"),
      0.7,
      "Groups expected for each row of a task. From this value on, tasks measure how much partial " +
        "aggregation reduces their rows, and may skip it. 0: whatever is expected."
    )(
      value => value >= 0.0 && value <= 1.0,
      "must be between 0 and 1"
    ),
    "aggregates",
    "share"
  )

  val MEASURED_PARTIAL_MIN_ROWS: Setting[Long] = Setting(
    ConfEntry.amount(
      key("aggregate.measuredPartialMinRows"),
      1000000L,
      "Rows (estimated, of all tasks together) from which on tasks measure partial aggregation. With " +
        "fewer, most tasks would have read all their rows before they know."
    ),
    "aggregates",
    "count"
  )

  val PARTIAL_STOP_RATIO: Setting[Double] = Setting(
    ConfEntry.number(
      key("aggregate.partialStopRatio"),
      0.8,
      "Groups for each row above which a task skips partial aggregation. It is measured on 100,000 rows, " +
        "or more where many groups are expected (at most a million); then ten times as many rows, at " +
        "least a million, are passed on, and it is measured again. Only where the plan has " +
        "HeapHashAggregate, an operator of Selinger. 1: never skip."
    )(
      value => value > 0.0 && value <= 1.0,
      "must be greater than 0 and at most 1"
    ),
    "aggregates",
    "share"
  )

  // ---- cost ---------------------------------------------------------------------------------

  val CBO_WEIGHT: Setting[Double] = Setting(
    ConfEntry.number(
      key("cbo.weight"),
      0.7,
      "Weight of rows against bytes in the cost of an operator: weight × rows + (1 − weight) × " +
        "bytes, each in units of time. Higher: rows count more. Leave it, unless benchmarks on " +
        "your cluster say otherwise."
    )(
      value => value >= 0.0 && value <= 1.0,
      "must be between 0 and 1"
    ),
    "cost",
    "share"
  )

  // ---- simulated cluster --------------------------------------------------------------------

  private val simulation = " For planning from imported statistics; 0: as the session has it."

  val CLUSTER_CORES: Setting[Long] = Setting(
    ConfEntry.amount(
      key("cluster.cores"),
      0L,
      "Cores of all executors together that costs are computed for." + simulation
    ),
    "simulated cluster",
    "count"
  )

  val CLUSTER_EXECUTORS: Setting[Long] = Setting(
    ConfEntry.amount(
      key("cluster.executors"),
      0L,
      "Executors that these cores are spread over. Without it, each has as many cores as in the " +
        "session's own cluster." + simulation
    ),
    "simulated cluster",
    "count"
  )

  val CLUSTER_EXECUTOR_MEMORY: Setting[Long] = Setting(
    ConfEntry.bytes(
      key("cluster.executorMemoryBytes"),
      "0",
      "Heap of one executor that memory limits are computed for." + simulation
    ),
    "simulated cluster",
    "bytes"
  )

  val CLUSTER_DRIVER_MEMORY: Setting[Long] = Setting(
    ConfEntry.bytes(
      key("cluster.driverMemoryBytes"),
      "0",
      "Heap of the driver that memory limits are computed for." + simulation
    ),
    "simulated cluster",
    "bytes"
  )

  // ---- tests --------------------------------------------------------------------------------

  /** No setting of `all`, which users see: nobody but a test wants wrong estimates. */
  val DISTORTION: ConfEntry[Long] = ConfEntry.amount(
    key("test.distortion"),
    0L,
    "Seed of random factors that estimates are multiplied by, so that a test shows that no " +
      "estimate changes an answer; 0: none."
  )

  /** Every setting but the switches of rules, in the order of the documentation. */
  val all: Seq[Setting[_]] = Seq(
    MODE,
    FAIL_ON_ERROR,
    PLANNING_BUDGET_MS,
    SMALL_TABLE_MAX_BYTES,
    WARM_UP,
    PREFETCH,
    EXPLAIN_FORMAT,
    EXPLAIN_ALL,
    FOOTER_MAX_FILES,
    FOOTER_BUDGET_MS,
    FOOTER_THREADS,
    FOOTER_CACHE_MAX_BYTES,
    SAMPLING_BUDGET_MS,
    SAMPLING_MAX_ROWS,
    SAMPLING_CACHE_MAX_BYTES,
    KEYS_MAX_ROWS,
    STATS_LOCATION,
    COLLECTED_CACHE_MAX_BYTES,
    EXPORT_BUDGET_MS,
    BROADCAST_MAX_BYTES,
    BROADCAST_TOTAL_SHARE,
    HASH_MEMORY_SHARE,
    HASH_MEMORY_MARGIN,
    JOIN_MIN_GAIN,
    ORDER_MIN_GAIN,
    ORDER_MAX_PAIRS,
    MERGE_MIN_GAIN,
    EAGER_MIN_GAIN,
    EAGER_MIN_ROWS,
    DEDUPLICATE_MIN_GAIN,
    JOIN_LATER_MIN_GAIN,
    CODED_TEXTS_MIN_GAIN,
    MAX_DICTIONARY_BYTES,
    EARLY_TOP_N_MIN_GAIN,
    SPLIT_DISTINCT_MIN_GAIN,
    REDUCE_GROUPED_MIN_GAIN,
    CASCADE_MIN_GAIN,
    CASCADE_MAX_SETS,
    RANK_FILTER_MIN_GAIN,
    MAX_HASHED_LISTS,
    MAX_HASHED_OBJECTS,
    MEASURED_PARTIAL_RATIO,
    MEASURED_PARTIAL_MIN_ROWS,
    PARTIAL_STOP_RATIO,
    CBO_WEIGHT,
    CLUSTER_CORES,
    CLUSTER_EXECUTORS,
    CLUSTER_EXECUTOR_MEMORY,
    CLUSTER_DRIVER_MEMORY
  )

  /** The setting that switches a rule on and off. */
  def switchOf(rule: RuleDescription): Setting[Boolean] =
    Setting(ConfEntry.flag(rule.switch, rule.onByDefault, rule.summary), "rules", "flag")

  /**
   * The value that a conf has in the session of the calling thread, ours or Spark's, as the user would
   * write it; none where it is not set and has no default.
   */
  def textOf(key: String): Option[String] = {
    val conf = SQLConf.get
    // Of a typed conf of Spark that is not set, `getConfString` with a default checks the default.
    if (conf.contains(key)) Some(conf.getConfString(key)) else ConfEntry.defaultOf(key)
  }

  /** The session's switches, read anew at every call. */
  object switches extends Switches {
    override def mode: Mode = Mode.parse(MODE.value).getOrElse(Mode.Off)
    override def enabled(rule: RuleDescription): Boolean = switchOf(rule).value
    override def failOnError: Boolean = FAIL_ON_ERROR.value
    override def budgetMs: Long = PLANNING_BUDGET_MS.value
    override def smallTableBytes: Long = SMALL_TABLE_MAX_BYTES.value
    override def smallTableKey: String = SMALL_TABLE_MAX_BYTES.key
  }
}
