package io.selinger.estimate.plans

import io.selinger.stats.RelationStatistics
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.stats.relations.FileRelation
import io.selinger.stats.samples.{SamplePredicates, SampledRelation}
import io.selinger.stats.sketches.UseCollectedStatistics
import org.apache.spark.sql.catalyst.expressions.Expression

/** What footers and collected statistics say of files, and a sample of their rows, if there is one. */
private[plans] final case class FileFacts(
    statistics: RelationStatistics,
    sample: Option[SampledRelation]
)

private[plans] object FileFacts {

  /**
   * Of the files that `relation` reads under `predicates`; `None` where no footer is read.
   *
   * @param tried those of the predicates that are to be evaluated on the sample
   */
  def of(
      relation: FileRelation,
      predicates: Seq[Expression],
      tried: Seq[Expression]
  ): Option[FileFacts] =
    ReadFooterStatistics.read(relation, predicates).map { footers =>
      val statistics = UseCollectedStatistics.refine(relation, footers, predicates)
      FileFacts(statistics, SamplePredicates.evaluate(relation, statistics, tried))
    }
}
