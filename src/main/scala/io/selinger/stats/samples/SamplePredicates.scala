package io.selinger.stats.samples

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  Guard,
  Hook,
  NodeText,
  Origin,
  Outcome,
  PlanningPass,
  Reason,
  RuleDescription,
  RuleKind
}
import io.selinger.stats.{
  ColumnSummary,
  RelationSample,
  RelationStatistics,
  RowGroups,
  SampleAnswer,
  SampledGroup,
  StoredSample
}
import io.selinger.stats.files.{FooterReader, SampleReader}
import io.selinger.stats.relations.{FileRelation, KeyColumns}
import java.util.concurrent.TimeUnit
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.InvokeLike
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.StructField

/**
 * What a sample says of a relation under predicates.
 *
 * @param applied those predicates that were evaluated on the sample
 * @param groups how many rows matched them in each row group; all rows where there are none
 * @param covered share of the relation's rows that the sample was spread over
 * @param complete whether the sample is the whole relation
 * @param alike how much the rows of a row group are alike in the columns of `applied`, 0 to 1
 * @param columns of the rows that match
 * @param keys their values, where these can be compared with those of other relations
 * @param counted columns whose distinct values are known of all rows
 */
final case class SampledRelation(
    applied: Seq[Expression],
    groups: Seq[SampledGroup],
    covered: Double,
    complete: Boolean,
    alike: Double,
    columns: Map[ExprId, ColumnSummary],
    keys: Map[ExprId, SampledKey] = Map.empty,
    counted: Set[ExprId] = Set.empty
) {
  def rows: Int = groups.map(_.rows).sum
  def matched: Int = groups.map(_.matched).sum
}

/**
 * Predicates evaluated on samples of file scans: the rule `samplePredicates`.
 *
 * Only what has no effect but its result is evaluated: no user code, no subqueries, nothing random.
 * One relation's predicates are evaluated together, so that correlation counts.
 */
object SamplePredicates
    extends RuleDescription(
      "samplePredicates",
      RuleKind.Statistics,
      "Reads some rows of the columns that filters use, from several row groups of Parquet or " +
        "stripes of ORC files, and evaluates the filters on them."
    ) {

  override def hooks: Seq[Hook] =
    Seq(Hook.OnDemand("Only relations whose size decides something are worth reading."))

  override def reasons: Seq[Reason] =
    Seq(Reason.PredicatesSampled, Reason.ColumnsSampled, Reason.SampleUnavailable)

  override def example: String =
    "SELECT * FROM sales JOIN items ON sales.item = items.id WHERE items.name LIKE '%bike%'"

  // More columns would not fit the time anyway.
  private val mostColumns = 32

  // Intraclass correlation of the values, above which other row groups have other values.
  private val mostAlike = 0.05

  // Their number follows from one that is set for footers: both wait for the same storage.
  private val mostThreads = 16L

  /**
   * What a sample says of `relation` under those of `predicates` that can be evaluated on it, and
   * of the columns that the plan joins or groups by; `None` where the rule is off, where there is
   * nothing to ask, or where nothing could be read.
   */
  def evaluate(
      relation: FileRelation,
      statistics: RelationStatistics,
      predicates: Seq[Expression]
  ): Option[SampledRelation] =
    Guard.value[Option[SampledRelation]](this, SelingerConf.switches, relation.plan, None) {
      sourceOf(relation, statistics).flatMap { source =>
        val wanted = new Question(relation, statistics, predicates)
        if (wanted.columns.isEmpty) None else ask(source, wanted)
      }
    }

  /** Where sampled rows come from: from what was collected of all files, else from the files. */
  private sealed trait Source {
    def id: String
    def budgetMs(limits: SampleLimits): Long
    def sample(question: Question, fields: Seq[StructField], limits: SampleLimits): SampleAnswer
  }

  private final case class FromStore(stored: StoredSample) extends Source {
    override def id: String = stored.id
    // Nothing is read but what was collected: the time is that of the whole plan.
    override def budgetMs(limits: SampleLimits): Long = math.max(
      limits.budgetMs,
      (SelingerConf.PLANNING_BUDGET_MS.value - PlanningPass.current.usedMs).toLong
    )
    override def sample(
        question: Question,
        fields: Seq[StructField],
        limits: SampleLimits
    ): SampleAnswer = stored.sample(fields, limits.maxRows)
  }

  private final case class FromFiles(reader: SampleReader, groups: RowGroups) extends Source {
    override def id: String = groups.id
    override def budgetMs(limits: SampleLimits): Long = limits.budgetMs
    override def sample(
        question: Question,
        fields: Seq[StructField],
        limits: SampleLimits
    ): SampleAnswer =
      SampleStore.sample(reader, groups, fields, question.relation.hadoop, limits)
  }

  private def sourceOf(relation: FileRelation, statistics: RelationStatistics): Option[Source] =
    statistics.sample.map(FromStore(_)).orElse(
      relation.reader.samples
        .filter(_ => statistics.groups.chosen.nonEmpty)
        .map(FromFiles(_, statistics.groups))
    )

  /** Which columns are needed for which predicates. */
  private final class Question(
      val relation: FileRelation,
      val statistics: RelationStatistics,
      predicates: Seq[Expression]
  ) {

    /** The columns that the plan joins or groups by. */
    private val keyIds: Set[ExprId] = KeyColumns.keys

    /** Columns of the files that the question can be about. */
    private val inFiles: Map[ExprId, Attribute] = {
      val partitions = relation.partitionSchema.fieldNames.map(FooterReader.columnName).toSet
      val mentioned = predicates.flatMap(_.references.toSeq).map(_.exprId).toSet
      relation.plan.output
        .filter(column => keyIds(column.exprId) || mentioned(column.exprId))
        .filter(column => SampleReader.supports(column.dataType) && known(column))
        .filterNot(column => partitions(FooterReader.columnName(column.name)))
        .map(column => column.exprId -> column)
        .toMap
    }

    private def known(column: Attribute): Boolean =
      statistics.columns.contains(FooterReader.columnName(column.name))

    val (evaluable, others) = {
      val data = predicates.filterNot(relation.partitionFilters(predicates).contains)
      data.partition(predicate =>
        isHarmless(predicate) && predicate.references.nonEmpty &&
          predicate.references.forall(column => inFiles.contains(column.exprId))
      )
    }

    /** Null tests alone are answered by the footers' counts. */
    private val asked: Seq[Expression] =
      if (evaluable.forall(isCounted)) Nil else evaluable

    def isCounted(predicate: Expression): Boolean = predicate match {
      case IsNotNull(column: Attribute) => hasNulls(column)
      case IsNull(column: Attribute) => hasNulls(column)
      case _ => false
    }

    private def hasNulls(column: Attribute): Boolean =
      statistics.columns
        .get(FooterReader.columnName(column.name))
        .exists(_.nullFraction.isDefined)

    /** Those that nothing counts first. */
    private val keys: Seq[Attribute] = inFiles.valuesIterator
      .filter(column => keyIds(column.exprId))
      .toSeq
      .sortBy(column => (isCounted(column), column.exprId.id))

    /** Whether its values were counted, by dictionaries or by `analyze`. */
    def isCounted(column: Attribute): Boolean = {
      val name = FooterReader.columnName(column.name)
      statistics.dictionaries.contains(name) || statistics.keys.contains(name)
    }

    val columns: Seq[Attribute] = {
      val mentioned = asked.flatMap(_.references.toSeq.map(column => inFiles(column.exprId)))
      (mentioned ++ keys).distinctBy(_.exprId).take(mostColumns).sortBy(_.name)
    }

    /** Those of the predicates that are asked for, bound to `columns`. */
    lazy val bound: Seq[Expression] = {
      val places = columns.map(_.exprId).zipWithIndex.toMap
      predicatesAsked.map(_.transform { case column: AttributeReference =>
        BoundReference(places(column.exprId), column.dataType, nullable = true)
      })
    }

    /** Without those whose columns were too many. */
    lazy val predicatesAsked: Seq[Expression] = {
      val present = AttributeSet(columns)
      asked.filter(_.references.subsetOf(present))
    }
  }

  /**
   * Whether evaluating it does nothing but compute, and not for long: it may be evaluated where the
   * user did not.
   */
  private def isHarmless(predicate: Expression): Boolean =
    predicate.deterministic && !SubqueryExpression.hasSubquery(predicate) && !predicate.exists {
      case _: Attribute => false
      case _: UserDefinedExpression | _: ApplyFunctionExpression | _: InvokeLike |
          _: Unevaluable | _: PlanExpression[_] | _: DynamicPruning =>
        true
      // One value can take any time or memory, which no deadline between rows would notice.
      case _: RLike | _: RegExpReplace | _: RegExpExtractBase | _: RegExpCount | _: RegExpInStr |
          _: StringSplit | _: StringRepeat | _: StringSpace | _: StringLPad | _: StringRPad |
          _: Sequence | _: ArrayRepeat | _: HigherOrderFunction =>
        true
      case _ => false
    }

  private def ask(source: Source, question: Question): Option[SampledRelation] = {
    val start = System.nanoTime()
    val limits = limitsNow
    val key = SampleQuestion(
      source.id,
      limits.maxRows,
      question.columns.map(c => FooterReader.columnName(c.name) -> c.dataType),
      question.bound
    )
    val (result, complete) = SampleStore.known(key, limits) match {
      case Some(known) => (Some(known), true)
      case None => compute(source, question, key, limits, start)
    }
    val ms = (System.nanoTime() - start) / 1e6
    SamplingTime.add(ms)
    if (!complete) PlanningPass.current.cutShort()
    val relation = result.map(relationOf(question, _))
    record(question, relation, complete, ms)
    relation
  }

  /** The result, and whether all of the time that it asked for was there. */
  private def compute(
      source: Source,
      question: Question,
      key: SampleQuestion,
      limits: SampleLimits,
      start: Long
  ): (Option[SampleResult], Boolean) = {
    val fields = question.columns.map(column =>
      StructField(column.name, column.dataType, nullable = true, column.metadata)
    )
    val answer = source.sample(question, fields, limits)
    val deadline = start + TimeUnit.MILLISECONDS.toNanos(source.budgetMs(limits))
    val result = answer.sample.map(evaluated(question, key, answer, _, limits, deadline))
    // What was left out for lack of time may be there the next time.
    val complete = answer.complete && System.nanoTime() <= deadline
    if (complete) result.foreach(SampleStore.keep(key, _, limits))
    (result, complete)
  }

  private def evaluated(
      question: Question,
      key: SampleQuestion,
      answer: SampleAnswer,
      sample: RelationSample,
      limits: SampleLimits,
      deadline: Long
  ): SampleResult = {
    def placesOf(i: Int) = key.predicates(i).collect { case bound: BoundReference => bound.ordinal }
    val possible =
      key.predicates.indices.filter(i => placesOf(i).forall(answer.usable.contains))
    val evaluation = Option
      .when(possible.nonEmpty)(sample.evaluate(possible.map(key.predicates(_)), deadline))
      // Where only null tests could be evaluated, the footers' counts say more.
      .filterNot(_.applied.forall(i => question.isCounted(question.predicatesAsked(possible(i)))))
    // What follows from all rows can wait, predicates have the time that is left.
    val whole = unfiltered(question, key, answer, sample, limits)
    evaluation.fold(whole) { evaluation =>
      val applied = evaluation.applied.map(possible(_))
      val keys = whole.keys.only(
        sample.placesOf(evaluation.left),
        evaluation.groups.count(_.matched > 0)
      )
      SampleResult(
        applied,
        evaluation.groups,
        sample.covered,
        applied.flatMap(placesOf).distinct.map(whole.columns(_).alike).maxOption.getOrElse(0.0),
        whole.columns.map { case (i, column) =>
          i -> keys.summary(i, sample.columns(i)).copy(alike = column.alike)
        },
        keys
      )
    }
  }

  /** What the sample says of the relation under no predicates. */
  private def unfiltered(
      question: Question,
      key: SampleQuestion,
      answer: SampleAnswer,
      sample: RelationSample,
      limits: SampleLimits
  ): SampleResult = {
    val alone = key.copy(predicates = Nil)
    def result = {
      val facts =
        answer.usable.iterator.map(i =>
          i -> SampleStore.facts(key, answer, sample, i, limits)
        ).toMap
      SampleResult(
        Nil,
        sample.sizes.map(size => SampledGroup(size, size)),
        sample.covered,
        0.0,
        facts.map { case (i, column) => i -> column.summary.copy(alike = column.alike) },
        SampledKeys.wholeSample(
          key.groups,
          sample,
          facts.collect { case (i, ColumnFacts(_, _, Some(hashed))) => i -> hashed },
          facts.collect { case (i, column) if column.alike > mostAlike => i }.toSet,
          isComplete(question, sample.rows)
        )
      )
    }
    if (answer.complete) {
      SampleStore.known(alone, limits).filter(_.columns.keySet == answer.usable).getOrElse {
        val found = result
        SampleStore.keep(alone, found, limits)
        found
      }
    } else result
  }

  private def isComplete(question: Question, rows: Int): Boolean =
    question.statistics.bound.exists(_ <= rows)

  private def relationOf(question: Question, result: SampleResult): SampledRelation = {
    val total = question.statistics.rows.value
    val rows = result.groups.map(_.rows).sum
    SampledRelation(
      result.applied.map(question.predicatesAsked(_)),
      result.groups,
      if (total > 0) math.min(1.0, result.covered / total) else 1.0,
      isComplete(question, rows),
      result.alike,
      result.columns.map { case (i, summary) => question.columns(i).exprId -> summary },
      question.columns.indices
        .filter(result.keys.has)
        .map(i => question.columns(i).exprId -> SampledKey(result.keys, i))
        .toMap,
      question.columns.filter(question.isCounted).map(_.exprId).toSet
    )
  }

  private def limitsNow =
    SampleLimits(
      SamplingTime.leftMs,
      SelingerConf.SAMPLING_MAX_ROWS.value.min(1000000L).toInt,
      SelingerConf.FOOTER_THREADS.value.min(mostThreads).toInt,
      SelingerConf.SAMPLING_CACHE_MAX_BYTES.value
    )

  private def record(
      question: Question,
      result: Option[SampledRelation],
      complete: Boolean,
      ms: Double
  ): Unit = {
    val plan: LogicalPlan = question.relation.plan
    val applied = result.fold(Seq.empty[Expression])(_.applied)
    val left = (question.evaluable ++ question.others).filterNot(applied.contains).filterNot {
      case _: IsNotNull => true
      case _ => false
    }
    val reason = result match {
      case None => Reason.SampleUnavailable
      case Some(known) if known.applied.nonEmpty => Reason.PredicatesSampled
      case Some(_) if left.nonEmpty => Reason.SampleUnavailable
      case Some(_) => Reason.ColumnsSampled
    }
    val counts = result.toSeq.flatMap { known =>
      Seq(
        Evidence("rows sampled", known.rows.toDouble, "rows", Origin.Exact),
        Evidence("row groups sampled", known.groups.size.toDouble, "groups", Origin.Exact)
      ) ++ Option.when(known.applied.nonEmpty)(
        Evidence("sampled rows that match", known.matched.toDouble, "rows", Origin.Exact)
      )
    }
    PlanningPass.current.inform(
      plan,
      Decision(
        rule = id,
        node = NodeText.shorten(s"Scan ${question.relation.name}"),
        key = NodeText.key(plan),
        outcome = Outcome.Informed,
        reason = reason,
        evidence = counts :+ Evidence("time to read", ms, "ms", Origin.Measured),
        detail = Option.when(left.nonEmpty)(
          NodeText.shorten(
            left.map(NodeText.readable).mkString("estimated by formulas: ", ", ", "")
          )
        ),
        setting = Option.unless(complete)(SelingerConf.SAMPLING_BUDGET_MS.key),
        settingTo = Option.unless(complete) {
          // 0 means that nothing is sampled.
          math.max(SelingerConf.SAMPLING_BUDGET_MS.value * 4, 300L).toString
        }
      )
    )
  }
}
