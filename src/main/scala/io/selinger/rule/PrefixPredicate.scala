package io.selinger.rule

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

/**
 * Comparisons of the first n characters of a text column as comparisons of the column. A comparison with
 * a text of just n characters asks how the column begins.
 *
 * Let p be the first n characters of s, and c a text of at most n characters that is valid UTF-8. Bytes
 * decide the order, and the first byte of a character says how long it is, in any s.
 *
 *   - c has n characters: p = c just when s begins with c.
 *   - c has fewer: p = c just when s = c, since p of a longer s has more characters than c.
 *   - p >= c just when s >= c: p is the beginning of s, so s >= p >= c. And if s >= c, then either s begins
 *     with c, and so does p, or s has a larger byte than c at the first place where they differ. This
 *     place is within the first n characters of s, so p has it too.
 *
 * All of them are null just where s is null.
 */
private[rule] object PrefixPredicate {

  private val mostValues = 16

  /** The predicate on the column; none where there is none, or where `isStored` does not hold for it. */
  def of(predicate: Expression, isStored: Attribute => Boolean): Option[Expression] =
    predicate match {
      case Not(child) => of(child, isStored).map(Not(_))
      case In(Prefix(column, n), values)
          if isStored(column) && values.nonEmpty && values.size <= mostValues =>
        val texts = values.map { case Text(text) => Some(text); case _ => None }
        val each = texts.flatten.map(equal(column, n, _))
        Option.when(texts.forall(_.isDefined) && each.forall(_.isDefined))(
          each.flatten.reduceLeft(Or(_, _))
        )
      case comparison @ BinaryComparison(Prefix(column, n), Text(text)) if isStored(column) =>
        compared(comparison, column, n, text)
      case BinaryComparison(Text(_), Prefix(_, _)) => of(turned(predicate), isStored)
      case _ => None
    }

  def isFunction(value: Expression): Boolean = Prefix.unapply(value).isDefined

  private def compared(
      comparison: BinaryComparison,
      column: Attribute,
      n: Int,
      text: UTF8String
  ): Option[Expression] = {
    val literal = Literal(text, column.dataType)
    lazy val begins = StartsWith(column, literal)
    val isWhole = text.numChars() == n
    comparison match {
      case _ if text.numChars() > n => None
      case _: EqualTo => equal(column, n, text)
      case _: EqualNullSafe => equal(column, n, text).map(And(IsNotNull(column), _))
      case _: GreaterThanOrEqual => Some(GreaterThanOrEqual(column, literal))
      case _: LessThan => Some(LessThan(column, literal))
      case _: GreaterThan if isWhole => Some(And(GreaterThan(column, literal), Not(begins)))
      case _: GreaterThan => Some(GreaterThan(column, literal))
      case _: LessThanOrEqual if isWhole => Some(Or(LessThan(column, literal), begins))
      case _: LessThanOrEqual => Some(LessThanOrEqual(column, literal))
      case _ => None
    }
  }

  private def equal(column: Attribute, n: Int, text: UTF8String): Option[Expression] = {
    val literal = Literal(text, column.dataType)
    if (text.numChars() > n) None
    else if (text.numChars() == n) Some(StartsWith(column, literal))
    else Some(EqualTo(column, literal))
  }

  private def turned(predicate: Expression): Expression = predicate match {
    case EqualTo(a, b) => EqualTo(b, a)
    case EqualNullSafe(a, b) => EqualNullSafe(b, a)
    case LessThan(a, b) => GreaterThan(b, a)
    case LessThanOrEqual(a, b) => GreaterThanOrEqual(b, a)
    case GreaterThan(a, b) => LessThan(b, a)
    case GreaterThanOrEqual(a, b) => LessThanOrEqual(b, a)
    case other => other
  }

  private object Prefix {
    def unapply(value: Expression): Option[(Attribute, Int)] = value match {
      case Substring(column: Attribute, Literal(1, _), Literal(n: Int, _))
          if n > 0 && column.dataType == StringType =>
        Some((column, n))
      case _ => None
    }
  }

  private object Text {
    def unapply(value: Expression): Option[UTF8String] = value match {
      case Literal(text: UTF8String, StringType) if text.isValid => Some(text)
      case _ => None
    }
  }
}
