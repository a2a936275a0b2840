package io.selinger.exec

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference,
  BindReferences,
  Expression,
  Like,
  Literal,
  MutableProjection
}
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite
import scala.util.{Random, Try}

/** Patterns of LIKE that are searched part by part, compared with Spark's regular expressions. */
class LikeTextsSuite extends AnyFunSuite {

  private val column = AttributeReference("s", StringType)()
  private val seed = sys.env.getOrElse("SELINGER_SEED", "7").toLong

  private def spark(pattern: String, escape: Char): Expression =
    BindReferences.bindReference(
      Like(column, Literal(UTF8String.fromString(pattern), StringType), escape): Expression,
      Seq(column)
    )

  private def found(pattern: String, text: String, escape: Char = '\\'): Option[Boolean] =
    LikePattern.of(pattern, escape).map(_.matches(UTF8String.fromString(text)))

  private def pick[A](random: Random, these: Seq[A]): A = these(random.nextInt(these.size))

  // Few characters, so that patterns are found: of one to four bytes, a line break, and bytes that are
  // no UTF-8 where another character follows, or none.
  private val characters =
    Seq("a", "b", "ab", "ä", "€", "😀", "\n", "%", "_", "\\").map(_.getBytes("UTF-8"))
  private val invalid =
    Seq(Array(0xc3), Array(0xe2, 0x82), Array(0xf0, 0x90), Array(0x80), Array(0xff))
      .map(_.map(_.toByte))

  private def text(random: Random): UTF8String = UTF8String.fromBytes(
    Seq.fill(random.nextInt(9))(
      if (random.nextInt(12) == 0) pick(random, invalid) else pick(random, characters)
    ).flatten.toArray
  )

  private def pattern(random: Random): String = Seq.fill(1 + random.nextInt(6))(
    pick(random, Seq("%", "%", "%", "a", "b", "ä", "€", "\n", "\\%", "\\_", "\\\\"))
  ).mkString

  test("random texts and patterns: the same as Spark, interpreted and in generated code") {
    val random = new Random(seed)
    val counts = scala.collection.mutable.Map.empty[Boolean, Int].withDefaultValue(0)
    (1 to 400).foreach { _ =>
      val like = pattern(random)
      val ours = LikePattern.of(like, '\\').getOrElse(fail(s"not accepted: $like"))
      val generated = MutableProjection.create(Seq(LikeTexts(column, ours)), Seq(column))
      val bound = BindReferences.bindReference(LikeTexts(column, ours): Expression, Seq(column))
      val expected = spark(like, '\\')
      (UTF8String.fromString("") +: Seq.fill(50)(text(random))).foreach { value =>
        val row = InternalRow(value)
        val wanted = expected.eval(row)
        def where = s"'$value' (${value.getBytes.toSeq}) LIKE '$like', seed $seed"
        assert(bound.eval(row) == wanted, where)
        assert(generated(row).getBoolean(0) == wanted, where)
        counts(wanted == true) += 1
      }
      assert(bound.eval(InternalRow(null)) == null && generated(InternalRow(null)).isNullAt(0))
    }
    assert(counts(true) > 1000 && counts(false) > 1000)
  }

  test("beginnings, ends and parts do not overlap") {
    assert(found("a%a", "a").contains(false))
    assert(found("a%a", "aa").contains(true))
    assert(found("%ab%b%", "aab").contains(false))
    assert(found("%ab%b%", "abab").contains(true))
    assert(found("ab%b", "ab").contains(false))
    assert(found("ab", "ab").contains(true))
    assert(found("ab", "abab").contains(false))
    assert(found("", "").isEmpty)
    assert(found("%", "").contains(true))
  }

  test("patterns with an underscore, and what Spark refuses, are left alone") {
    Seq("a_b%c%", "%_", "a\\", "a%\\b%c").foreach(p => assert(found(p, "a").isEmpty, p))
    Seq("a\\", "a%\\b%c").foreach(p =>
      assert(Try(spark(p, '\\').eval(InternalRow(UTF8String.fromString("a")))).isFailure, p)
    )
  }

  test("escape characters are the query's") {
    assert(found("%a/%%b%", "xa%yb", '/').contains(true))
    assert(found("%a/%%b%", "xayb", '/').contains(false))
    assert(found("%a\\%b", "a\\b", '/').contains(true))
    assert(found("a//%b", "a/xb", '/').contains(true))
  }

  test("characters that regular expressions see in another way than bytes tell are left alone") {
    Seq("%😀%a%", "%\uFFFD%a%", "%\uD83D%a%").foreach(p => assert(found(p, "a").isEmpty, p))
    // Texts may have them.
    assert(found("%a%b%", "😀a😀b").contains(true))
  }
}
