package io.selinger.stats

import io.selinger.core.Origin
import io.selinger.stats.FooterMerge.File
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

/** The footers of several files taken together, without files. */
class FooterMergeSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  private def column(
      nulls: Option[Long] = Some(0),
      min: Option[Double] = Some(1),
      max: Option[Double] = Some(9),
      width: Option[Double] = Some(8)
  ): ColumnFooter = ColumnFooter(100, nulls, min, max, width)

  private def file(rows: Long, columns: (String, ColumnFooter)*): File =
    File(rows * 10, Some(FileFooter(rows, columns.toMap)))

  private def merged(files: File*): RelationStatistics =
    FooterMerge.merge(files).getOrElse(fail("nothing was merged"))

  test("footers of all files are exact and bound the rows") {
    val statistics = merged(file(10, "a" -> column()), file(20, "a" -> column(max = Some(30))))
    assert(statistics.rows.value == 30 && statistics.rows.origin == Origin.Exact)
    assert(statistics.bound.contains(30.0))
    assert(statistics.columns("a").min.contains(1.0) && statistics.columns("a").max.contains(30.0))
  }

  test("a missing footer makes the rows sampled, by bytes, and bounds nothing") {
    val statistics = merged(file(10, "a" -> column(nulls = Some(5))), File(300, None))
    assert(statistics.rows.value == 40 && statistics.rows.origin == Origin.Sampled)
    assert(statistics.bound.isEmpty)
    assert(statistics.columns("a").nullFraction.contains(0.5))
  }

  test("nothing is known where no footer was read") {
    assert(FooterMerge.merge(Seq(File(100, None), File(200, None))).isEmpty)
  }

  test("nothing is known where the only footers are of files without bytes") {
    assert(FooterMerge.merge(Seq(File(0, Some(FileFooter(0, Map.empty))), File(200, None))).isEmpty)
  }

  test("a relation without files has no rows, exactly") {
    val statistics = merged()
    assert(statistics.rows.value == 0 && statistics.bound.contains(0.0))
  }

  test(
    "a file that lacks a column may yield nulls or a default: neither nulls nor range are known"
  ) {
    val found = merged(file(10, "a" -> column(nulls = Some(1))), file(30)).columns("a")
    assert(found.nullFraction.isEmpty && found.min.isEmpty && found.max.isEmpty)
  }

  test("a file of nulls does not limit the range of the others") {
    val nulls = column(nulls = Some(5), min = None, max = None)
    val statistics = merged(file(5, "a" -> nulls), file(10, "a" -> column()))
    assert(statistics.columns("a").min.contains(1.0) && statistics.columns("a").max.contains(9.0))
  }

  test("a file of unknown range leaves the column without one") {
    val unknown = column(min = None, max = None)
    val statistics = merged(file(5, "a" -> unknown), file(10, "a" -> column()))
    assert(statistics.columns("a").min.isEmpty && statistics.columns("a").max.isEmpty)
  }

  test("unknown nulls of one file leave the column's unknown") {
    val statistics = merged(file(5, "a" -> column(nulls = None)), file(10, "a" -> column()))
    assert(statistics.columns("a").nullFraction.isEmpty)
  }

  test("widths are weighted by rows") {
    val statistics =
      merged(file(30, "a" -> column(width = Some(10))), file(10, "a" -> column(width = Some(50))))
    assert(statistics.columns("a").averageBytes.contains(20.0))
  }

  test("no rows: no null fraction, no width") {
    val statistics = merged(file(0, "a" -> column(min = None, max = None, width = None)))
    assert(statistics.columns("a").nullFraction.isEmpty)
    assert(statistics.columns("a").averageBytes.isEmpty)
  }

  private val files: Gen[File] = for {
    rows <- Gen.choose(0L, 1000L)
    nulls <- Gen.option(Gen.choose(0L, rows))
    low <- Gen.choose(-1e6, 1e6)
    span <- Gen.choose(0.0, 1e6)
    hasColumn <- Gen.oneOf(true, true, false)
    read <- Gen.oneOf(true, true, true, false)
    range = if (nulls.contains(rows)) None else Some((low, low + span))
    known = column(nulls, range.map(_._1), range.map(_._2))
  } yield File(
    rows * 12 + 100,
    if (read) Some(FileFooter(rows, if (hasColumn) Map("a" -> known) else Map.empty)) else None
  )

  test("whatever is merged stays consistent") {
    forAll(Gen.listOf(files)) { files =>
      FooterMerge.merge(files).foreach { statistics =>
        val counted = files.flatMap(_.footer).map(_.rows.toDouble).sum
        assert(statistics.rows.value >= counted)
        statistics.bound.foreach(bound =>
          assert(bound == counted && bound == statistics.rows.value)
        )
        statistics.columns.get("a").foreach { column =>
          assert(column.nullFraction.forall(share => share >= 0 && share <= 1))
          val ranges = files.flatMap(_.footer).flatMap(_.columns.get("a"))
          column.min.foreach(min => assert(ranges.flatMap(_.min).forall(_ >= min)))
          column.max.foreach(max => assert(ranges.flatMap(_.max).forall(_ <= max)))
        }
      }
    }
  }
}
