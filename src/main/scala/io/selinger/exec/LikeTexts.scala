package io.selinger.exec

import org.apache.spark.sql.catalyst.expressions.{Expression, Predicate, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/**
 * Whether a text matches a pattern of LIKE that consists of texts with % between them. The texts are
 * searched one after the other in the bytes, without a regular expression. Null where the text is.
 */
final case class LikeTexts(child: Expression, pattern: LikePattern)
    extends UnaryExpression
    with Predicate {
  override def nullable: Boolean = child.nullable
  override def nullIntolerant: Boolean = true
  override def prettyName: String = "like_texts"
  override def toString: String = s"$child LIKE ${pattern.text}"

  override protected def nullSafeEval(value: Any): Any = value match {
    case text: UTF8String => pattern.matches(text)
    case other => throw new IllegalStateException(s"not a text: $other")
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val known = ctx.addReferenceObj("pattern", pattern)
    defineCodeGen(ctx, ev, text => s"$known.matches($text)")
  }

  override protected def withNewChildInternal(newChild: Expression): LikeTexts =
    copy(child = newChild)
}

/**
 * A pattern of LIKE without an underscore that stands for a character.
 *
 * @param text the pattern as it was written
 * @param texts what it searches, in this order; none is empty
 * @param begins whether the first of them is where the text begins
 * @param ends whether the last of them is where the text ends
 */
final case class LikePattern(text: String, texts: Seq[UTF8String], begins: Boolean, ends: Boolean) {
  import LikePattern._

  @transient private lazy val searched: Array[Array[Byte]] = texts.map(_.getBytes).toArray

  /**
   * The leftmost place of each text leaves the most room for the next one. Texts of whole characters are
   * found in the bytes just where they are found in the characters, as the first byte of a character is
   * never a later byte of another one, not even in invalid UTF-8.
   */
  def matches(text: UTF8String): Boolean = {
    val (base, offset) = (text.getBaseObject, text.getBaseOffset)
    val parts = searched
    var (from, until) = (0, text.numBytes())
    var (next, last) = (0, parts.length)
    var found = true
    if (begins) {
      found = isAt(base, offset, until, parts(0), 0)
      from = parts(0).length
      next = 1
    }
    if (found && ends) {
      // A pattern without % is the whole text.
      val start = if (next == last) 0 else until - parts(last - 1).length
      found = if (next == last) from == until
      else start >= from && isAt(base, offset, until, parts(last - 1), start)
      until = start
      last -= 1
    }
    while (found && next < last) {
      val place = placeOf(base, offset, until, parts(next), from)
      found = place >= 0
      from = place + parts(next).length
      next += 1
    }
    found
  }
}

object LikePattern {

  /**
   * None where the pattern is empty, where an underscore stands for a character, where Spark refuses the
   * pattern, or where it has characters that Java's regular expressions see in another way than bytes tell:
   * those of two UTF-16 units, and U+FFFD, which Java reads instead of invalid bytes.
   */
  def of(pattern: String, escape: Char): Option[LikePattern] = {
    val parts = Seq.newBuilder[String]
    val part = new StringBuilder
    var (place, isPlain) = (0, true)
    while (isPlain && place < pattern.length) {
      pattern.charAt(place) match {
        case char if char == escape =>
          place += 1
          val escaped = pattern.lift(place)
          isPlain = escaped.exists(next => next == '_' || next == '%' || next == escape)
          part ++= escaped
        case '%' =>
          parts += part.result()
          part.clear()
        case char =>
          isPlain = char != '_'
          part += char
      }
      place += 1
    }
    val all = (parts += part.result()).result()
    Option.when(isPlain && pattern.nonEmpty && !all.exists(_.exists(isSeenOtherwise)))(
      LikePattern(
        pattern,
        all.filter(_.nonEmpty).map(UTF8String.fromString),
        all.head.nonEmpty,
        all.last.nonEmpty
      )
    )
  }

  private def isSeenOtherwise(char: Char): Boolean = char.isSurrogate || char == '\uFFFD'

  private def isAt(base: Any, offset: Long, until: Int, part: Array[Byte], place: Int): Boolean = {
    var same = place + part.length <= until
    var i = 0
    while (same && i < part.length) {
      same = Platform.getByte(base, offset + place + i) == part(i)
      i += 1
    }
    same
  }

  /** The first place from one on, or -1. */
  private def placeOf(base: Any, offset: Long, until: Int, part: Array[Byte], from: Int): Int = {
    val (first, last) = (part(0), until - part.length)
    var place = from
    while (
      place <= last &&
      !(Platform.getByte(base, offset + place) == first && isAt(base, offset, until, part, place))
    ) place += 1
    if (place <= last) place else -1
  }
}
