package io.selinger.stats

import org.apache.hadoop.fs.{FileStatus, Path}
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

/** Where samples come from. */
class RowGroupsSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  private def file(i: Int, modified: Long = 1): FileStatus =
    new FileStatus(1000, false, 1, 1L << 20, modified, new Path(s"/nowhere/$i"))

  private val files: Gen[List[Seq[Long]]] =
    Gen.listOf(Gen.listOf(Gen.oneOf(Gen.const(0L), Gen.choose(1L, 1000000L))))

  test("each part of the relation is represented once, by a row group with rows") {
    forAll(files) { groups =>
      val found = RowGroups.spread(groups.zipWithIndex.map { case (rows, i) => file(i) -> rows })
      if (groups.flatten.sum == 0) assert(found == RowGroups.none)
      else {
        assert(found.chosen.map(_.parts).sum == RowGroups.parts)
        assert(found.chosen.distinctBy(g => (g.file.getPath, g.index)).size == found.chosen.size)
        found.chosen.foreach { group =>
          assert(group.rows > 0)
          assert(groups(group.file.getPath.getName.toInt)(group.index) == group.rows)
        }
      }
    }
  }

  test("a large row group stands for more parts than a small one") {
    val found = RowGroups.spread(Seq(file(1) -> Seq(900L, 100L)))
    assert(found.chosen.map(g => g.index -> g.parts).toMap == Map(0 -> 14, 1 -> 2))
  }

  test("of many row groups, those at even distances") {
    val found = RowGroups.spread((0 until 160).map(i => file(i) -> Seq(10L)))
    assert(found.chosen.map(_.file.getPath.getName.toInt / 10) == (0 until 16))
  }

  test("the id follows the versions of the files") {
    def id(modified: Long) = RowGroups.spread(Seq(file(1, modified) -> Seq(100L))).id
    assert(id(1) == id(1) && id(1) != id(2))
  }
}
