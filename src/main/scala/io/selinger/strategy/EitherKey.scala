package io.selinger.strategy

import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  CaseWhen,
  Coalesce,
  Expression,
  If,
  IsNotNull,
  IsNull
}

/**
 * Of two equal keys of a full outer join the one that a row has, as `USING` and users write it.
 *
 * Both keys must be columns. Of a row without a partner, the other side's columns are null, but what is
 * computed from them need not be: in coalesce(if(a.x > 0, a.x, -1), b.y) the first is never null.
 */
private[strategy] object EitherKey {

  /** Whether `key` is the first of the two keys that is not null, in either order. */
  def is(key: Expression, left: Expression, right: Expression): Boolean = (left, right) match {
    case (_: Attribute, _: Attribute) =>
      firstOf(key).exists { case (first, second) =>
        (first.semanticEquals(left) && second.semanticEquals(right)) ||
        (first.semanticEquals(right) && second.semanticEquals(left))
      }
    case _ => false
  }

  /** The expression that counts, and the one that counts where the first is null. */
  private def firstOf(key: Expression): Option[(Expression, Expression)] = key match {
    case Coalesce(Seq(first, second)) => Some((first, second))
    case If(test, yes, no) => chosen(test, yes, no)
    case CaseWhen(Seq((test, yes)), Some(no)) => chosen(test, yes, no)
    case _ => None
  }

  private def chosen(
      test: Expression,
      yes: Expression,
      no: Expression
  ): Option[(Expression, Expression)] = test match {
    case IsNotNull(column) if column.semanticEquals(yes) => Some((yes, no))
    case IsNull(column) if column.semanticEquals(no) => Some((no, yes))
    case _ => None
  }
}
