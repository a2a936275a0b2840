package io.selinger.conf

import io.selinger.core.{Mode, RuleInfo, Switches}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.selinger.ConfEntry

/**
 * A setting of ours: a Spark conf with what the documentation and `selinger_settings()` say besides.
 *
 * @param category the heading under which it is documented
 * @param unit of its value: `bytes`, `ms`, `share`, `factor`, `count`, `flag` or `choice`
 */
final case class Setting[A](entry: ConfEntry[A], category: String, unit: String) {
  def key: String = entry.key
  def doc: String = entry.doc
  def default: String = entry.default

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

  val EXPLAIN_FORMAT: Setting[String] = Setting(
    ConfEntry.choice(
      key("explain.format"),
      "text",
      Seq("text", "json"),
      "Form of the Selinger section in explain: text for people, json for programs."
    ),
    "general",
    "choice"
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
      64L << 20,
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
      64L << 20,
      "Driver memory for sampled values, shared by all sessions. 0 keeps none."
    ),
    "statistics",
    "bytes"
  )

  // ---- joins --------------------------------------------------------------------------------

  val BROADCAST_MAX_BYTES: Setting[Long] = Setting(
    ConfEntry.bytes(
      key("join.broadcastMaxBytes"),
      0L,
      "Largest build side to broadcast, as the memory that its hash table needs. 0: a 128th of " +
        "the smaller of driver and executor heap, at most 256 MiB. If " +
        "spark.sql.autoBroadcastJoinThreshold is set, it is the limit instead; -1 there means " +
        "that nothing is broadcast without a hint."
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
      "Share of the cost of the join order written that another order must save to replace it; " +
        "twice as much where the rows of a relation are only a default."
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
      10000L,
      "Pairs of sub-plans that the exact search for a join order may look at. Queries with more " +
        "are ordered greedily."
    ),
    "joins",
    "count"
  )

  // ---- cost ---------------------------------------------------------------------------------

  val CBO_WEIGHT: Setting[Double] = Setting(
    ConfEntry.number(
      key("cbo.weight"),
      0.7,
      "Weight of rows against bytes in the cost of an operator: weight × rows + (1 − weight) × " +
        "bytes, each in units of time."
    )(
      value => value >= 0.0 && value <= 1.0,
      "must be between 0 and 1"
    ),
    "cost",
    "share"
  )

  // ---- rules --------------------------------------------------------------------------------

  val READ_FOOTER_STATISTICS: RuleInfo = RuleInfo(
    "readFooterStatistics",
    "statistics",
    "on demand, while a plan's size is estimated",
    "Reads row counts, null counts, value ranges and column sizes from the footers of Parquet " +
      "and ORC files."
  )

  val SAMPLE_PREDICATES: RuleInfo = RuleInfo(
    "samplePredicates",
    "statistics",
    "on demand, while a plan's size is estimated",
    "Reads some rows of the columns that predicates mention from several row groups of Parquet " +
      "or stripes of ORC " +
      "files, and evaluates the predicates on them."
  )

  val SELECT_JOIN_OPERATOR: RuleInfo = RuleInfo(
    "selectJoinOperator",
    "strategy",
    "injectPlannerStrategy",
    "Chooses broadcast hash, shuffled hash, sort-merge or nested loop for each join by the " +
      "memory and the time that it takes."
  )

  val REORDER_JOINS: RuleInfo = RuleInfo(
    "reorderJoins",
    "logical",
    "injectPreCBORule",
    "Puts inner joins into the order that costs least."
  )

  val SHARE_ESTIMATES: RuleInfo = RuleInfo(
    "shareEstimates",
    "statistics",
    "injectPreCBORule, injectPlannerStrategy",
    "Puts sizes of filtered relations that were counted or sampled into Spark's own statistics, " +
      "for its broadcasts, dynamic partition pruning and runtime filters."
  )

  val rules: Seq[RuleInfo] = Seq(
    READ_FOOTER_STATISTICS,
    SAMPLE_PREDICATES,
    REORDER_JOINS,
    SELECT_JOIN_OPERATOR,
    SHARE_ESTIMATES
  )

  /** Rules that the user has to ask for; the others are on. */
  val onRequest: Set[RuleInfo] = Set(SHARE_ESTIMATES)

  private val ruleSwitches: Map[String, Setting[Boolean]] = rules.map { rule =>
    rule.id -> Setting(
      ConfEntry.flag(rule.switch, default = !onRequest(rule), rule.description),
      "rules",
      "flag"
    )
  }.toMap

  /** Every setting, in the order of the documentation. */
  val all: Seq[Setting[_]] = Seq(
    MODE,
    FAIL_ON_ERROR,
    PLANNING_BUDGET_MS,
    EXPLAIN_FORMAT,
    FOOTER_MAX_FILES,
    FOOTER_BUDGET_MS,
    FOOTER_THREADS,
    FOOTER_CACHE_MAX_BYTES,
    SAMPLING_BUDGET_MS,
    SAMPLING_MAX_ROWS,
    SAMPLING_CACHE_MAX_BYTES,
    BROADCAST_MAX_BYTES,
    BROADCAST_TOTAL_SHARE,
    HASH_MEMORY_SHARE,
    HASH_MEMORY_MARGIN,
    JOIN_MIN_GAIN,
    ORDER_MIN_GAIN,
    ORDER_MAX_PAIRS,
    CBO_WEIGHT
  ) ++ rules.map(rule => ruleSwitches(rule.id))

  /** The session's switches, read anew at every call. */
  object switches extends Switches {
    override def mode: Mode = Mode.parse(MODE.value).getOrElse(Mode.Off)
    override def enabled(rule: RuleInfo): Boolean = ruleSwitches(rule.id).value
    override def failOnError: Boolean = FAIL_ON_ERROR.value
    override def budgetMs: Long = PLANNING_BUDGET_MS.value
  }
}
